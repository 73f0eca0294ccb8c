import { toIso } from '../../../src/model/instant.ts';
import { dropAliases, dropCanonical, part } from '../../../src/sandbox/data/aliases.ts';
import { shareOf } from '../../../src/sandbox/data/random.ts';
import { NEVER, type Reading } from '../../../src/sandbox/data/shape.ts';
import type { Customer, JsonObject, Link, StoredEvent } from '../../../src/sandbox/data/types.ts';
import type { Traits } from './traits.ts';

/**
 * The traits that change the form of a record, each as one step. The record belongs to this request and may be changed;
 * its link is shared with other records, so a change of the link must be idempotent and must not depend on the event.
 */
export function reshape(record: JsonObject, event: StoredEvent, traits: Traits, { count }: Reading): void {
  const { stream, at, id, click, customer, sale } = event;
  const isSeconds = traits.timestampForm === 'varies' && count % 2 === 0;
  if (traits.timestampForm) record.timestamp = timestampIn(isSeconds ? 'seconds' : traits.timestampForm, at);
  if (traits.clickTimeIsEventTime && stream !== 'clicks') part(record, 'click').timestamp = toIso(at);
  if (customer) reshapeCustomer(part(record, 'customer'), customer, traits, count);
  if (traits.unknownEnums && shareOf(click.id, 'enums') < 0.3) unknownEnums(record);
  if (traits.contradict && shareOf(id, 'contradict') < traits.contradict) contradict(record);
  if (traits.saleShape && sale) saleShape(record, traits.saleShape);
  if (traits.oldAliasesOnly) dropCanonical(record);
  if (traits.noAliases) dropAliases(record);
  if (traits.unknownFields) unknownFields(record);
  if (traits.emptyStrings) eachPart(record, emptyForNull);
  if (traits.absentKeys) eachPart(record, dropNulls);
}

function reshapeCustomer(record: JsonObject, { id, name }: Customer, traits: Traits, count: number): void {
  if (traits.volatile && name === null) record.name = `Reader ${count}`;
  if (shareOf(id, 'deleted') >= (traits.deletedCustomers ?? 0)) return;
  const nothing = { email: null, avatar: null, country: null };
  Object.assign(record, { externalId: id, name: 'Deleted customer', ...nothing, createdAt: toIso(0) });
}

export function reshapeLink(record: JsonObject, link: Link, traits: Traits, { count, now }: Reading): void {
  if (traits.volatile) {
    for (const name of ['clicks', 'leads', 'conversions', 'sales', 'saleAmount'] as const)
      record[name] = link[name] + count;
    record.updatedAt = toIso(now + count);
    if (link.lastClicked !== null) record.lastClicked = record.updatedAt;
  }
  if (traits.nulls && shareOf(link.id, 'nulls') < 0.3) record.lastClicked = NEVER;
  const never = traits.nulls ? null : traits.emptyStrings ? '' : NEVER;
  for (const name of Object.keys(record)) if (record[name] === NEVER) record[name] = never;
  if (traits.password) record.password = `secret-${link.key}`;
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

/** `String(date)` on a server that runs in UTC, whatever zone this one runs in. */
function jsDate(date: Date): string {
  const [weekday, day, month, year, time] = date.toUTCString().replace(',', '').split(' ');
  return `${weekday} ${month} ${day} ${year} ${time} GMT+0000 (Coordinated Universal Time)`;
}

function unknownEnums(record: JsonObject): void {
  part(record, 'click').trigger = 'deeplink';
  if (record.sale) part(record, 'sale').paymentProcessor = 'barter';
}

function contradict(record: JsonObject): void {
  Object.assign(record, { country: 'XX', browser: 'Netscape', url: 'https://acme.test/moved' });
  if (typeof record.saleAmount === 'number') record.saleAmount += 1;
}

function saleShape(record: JsonObject, shape: NonNullable<Traits['saleShape']>): void {
  if (shape === 'canonical') for (const name of ['saleAmount', 'invoice_id', 'payment_processor']) delete record[name];
  if (shape === 'flat') delete record.sale;
  if (shape === 'no-customer') delete record.customer;
}

function unknownFields(record: JsonObject): void {
  const click = part(record, 'click');
  click.ua = 'Mozilla/5.0 (X11; Linux x86_64)';
  click.asn = 64_496;
  part(record, 'link').utmId = 'utm_1';
  if (record.customer) part(record, 'customer').stripeCustomerId = 'cus_external';
  if (record.sale) part(record, 'sale').taxAmount = 190;
  record.ingestedBy = { region: 'eu-1', version: 3 };
}

function eachPart(record: JsonObject, change: (object: JsonObject) => void): void {
  change(record);
  for (const name of ['click', 'link', 'customer', 'sale']) if (record[name]) change(part(record, name));
}

const emptyForNull = (object: JsonObject): void => {
  for (const key of Object.keys(object)) if (object[key] === null && key !== 'metadata') object[key] = '';
};

const dropNulls = (object: JsonObject): void => {
  for (const key of Object.keys(object)) if (object[key] === null || object[key] === '') delete object[key];
};
