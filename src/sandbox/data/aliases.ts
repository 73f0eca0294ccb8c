import type { JsonObject } from './types.ts';

/** Deprecated name at the top of an event → the object and field that replaced it. */
const ALIASES: Readonly<Record<string, readonly ['click' | 'link', string]>> = {
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
};
export const SALE_ALIASES = ['saleAmount', 'invoice_id', 'payment_processor'];

export function dropAliases(record: JsonObject): void {
  for (const name of [...Object.keys(ALIASES), ...SALE_ALIASES]) delete record[name];
}

/** The link is shared with other records; leaving a field out twice does no harm. */
export function dropCanonical(record: JsonObject): void {
  for (const [object, field] of Object.values(ALIASES)) delete part(record, object)[field];
  if (record.sale) record.sale = { currency: part(record, 'sale').currency ?? null };
}

/** An object inside of a record. */
export function part(record: JsonObject, name: string): JsonObject {
  const value = record[name];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError(`${name} is no object`);
  return value;
}
