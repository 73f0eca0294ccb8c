import type { Json, JsonObject } from './types.ts';

/** Deprecated top-level name → the object and field that replaced it. */
const ALIASES: Readonly<Record<string, readonly ['click' | 'link' | 'sale', string]>> = {
  click_id: ['click', 'id'],
  link_id: ['link', 'id'],
  domain: ['link', 'domain'],
  key: ['link', 'key'],
  url: ['click', 'url'],
  continent: ['click', 'continent'],
  country: ['click', 'country'],
  city: ['click', 'city'],
  device: ['click', 'device'],
  browser: ['click', 'browser'],
  os: ['click', 'os'],
  qr: ['click', 'qr'],
  ip: ['click', 'ip'],
  saleAmount: ['sale', 'amount'],
  invoice_id: ['sale', 'invoiceId'],
  payment_processor: ['sale', 'paymentProcessor'],
};

/** Each alias with the object that holds its field, if the record has that object: only sales have a sale. */
const aliasesOf = (record: JsonObject): [alias: string, part: JsonObject, field: string][] =>
  Object.entries(ALIASES).flatMap(([alias, [name, field]]) =>
    record[name] ? [[alias, part(record, name), field]] : [],
  );

export function addAliases(record: JsonObject): void {
  for (const [alias, part, field] of aliasesOf(record)) record[alias] = asAlias(part[field] ?? null);
}

/** The alias of a boolean field is 1 or 0. */
const asAlias = (value: Json): Json => (typeof value === 'boolean' ? Number(value) : value);

export function dropAliases(record: JsonObject): void {
  for (const alias of Object.keys(ALIASES)) delete record[alias];
}

export function dropCanonical(record: JsonObject): void {
  // Copied, because other records share the link and derive their aliases from it.
  record.link = { ...part(record, 'link') };
  for (const [, part, field] of aliasesOf(record)) delete part[field];
}

export function part(record: JsonObject, name: string): JsonObject {
  const value = record[name];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError(`${name} is no object`);
  return value;
}
