import { shareOf } from './random.ts';
import type { Read } from './shape.ts';
import type { Traits } from './traits.ts';
import type { JsonObject, StoredEvent } from './types.ts';

/** Alias at the top of the event → the object and field that replaced it. */
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
const SALE_ALIASES = ['saleAmount', 'invoice_id', 'payment_processor'];

/**
 * The traits that change what a record looks like, each as one step. The record is this request's own and may be changed;
 * its link is shared with other records, so what is done to a link must not depend on the event, nor on how often.
 */
export function reshape(record: Read, event: StoredEvent, traits: Traits): Read {
  if (traits.timestampForm) record.timestamp = timestampIn(traits.timestampForm, event.at);
  if (traits.unknownEnums && shareOf(event.click.id, 'enums') < 0.3) unknownEnums(record);
  if (traits.contradict && shareOf(event.id, 'contradict') < traits.contradict) contradict(record);
  if (traits.saleShape && event.sale) saleShape(record, traits.saleShape);
  if (traits.oldAliasesOnly) dropCanonical(record);
  if (traits.noAliases) for (const name of [...Object.keys(ALIASES), ...SALE_ALIASES]) delete record[name];
  if (traits.unknownFields) unknownFields(record);
  if (traits.emptyStrings) eachPart(record, emptyForNull);
  if (traits.absentKeys) eachPart(record, dropNulls);
  return record;
}

function timestampIn(form: NonNullable<Traits['timestampForm']>, at: number): string {
  const iso = new Date(at).toISOString();
  switch (form) {
    case 'iso':
    case 'varies':
      return iso;
    case 'seconds':
      return `${iso.slice(0, 19)}Z`;
    case 'offset':
      return `${new Date(at + 2 * 3_600_000).toISOString().slice(0, -1)}+02:00`;
    case 'space':
      return iso.replace('T', ' ').replace('Z', '');
    case 'epoch':
      return String(Math.floor(at / 1000));
    case 'epoch-ms':
      return String(at);
    case 'jsdate':
      return jsDate(new Date(at));
  }
}

/** What `String(date)` gives on a server that runs in UTC, whatever zone this one runs in. */
function jsDate(date: Date): string {
  const [weekday, day, month, year, time] = date.toUTCString().replace(',', '').split(' ');
  return `${weekday} ${month} ${day} ${year} ${time} GMT+0000 (Coordinated Universal Time)`;
}

function unknownEnums(record: Read): void {
  part(record, 'click').trigger = 'deeplink';
  if (record.sale) part(record, 'sale').paymentProcessor = 'barter';
}

function contradict(record: Read): void {
  record.country = record.country === 'XX' ? 'YY' : 'XX';
  record.browser = 'Netscape';
  record.url = 'https://acme.test/moved';
  if (typeof record.saleAmount === 'number') record.saleAmount += 1;
}

function saleShape(record: Read, shape: NonNullable<Traits['saleShape']>): void {
  if (shape === 'canonical') for (const name of SALE_ALIASES) delete record[name];
  if (shape === 'flat') delete record.sale;
  if (shape === 'no-customer') delete record.customer;
}

function dropCanonical(record: Read): void {
  for (const [object, field] of Object.values(ALIASES)) delete part(record, object)[field];
  if (record.sale) {
    const { currency } = part(record, 'sale');
    record.sale = { currency: currency ?? null };
  }
}

function unknownFields(record: Read): void {
  const click = part(record, 'click');
  click.ua = 'Mozilla/5.0 (X11; Linux x86_64)';
  click.asn = 64_496;
  part(record, 'link').utmId = 'utm_1';
  if (record.customer) part(record, 'customer').stripeCustomerId = 'cus_external';
  if (record.sale) part(record, 'sale').taxAmount = 190;
  record.ingestedBy = { region: 'eu-1', version: 3 };
}

function eachPart(record: Read, change: (object: JsonObject) => void): void {
  change(record);
  for (const name of ['click', 'link', 'customer', 'sale']) if (record[name]) change(part(record, name));
}

const emptyForNull = (object: JsonObject): void => {
  for (const key of Object.keys(object)) if (object[key] === null && key !== 'metadata') object[key] = '';
};

const dropNulls = (object: JsonObject): void => {
  for (const key of Object.keys(object)) if (object[key] === null || object[key] === '') delete object[key];
};

function part(record: Read, name: string): JsonObject {
  const value = record[name];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError(`${name} is no object`);
  return value;
}
