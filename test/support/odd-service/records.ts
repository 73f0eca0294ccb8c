import { parseInstant } from '../../model/instant.ts';
import { stringifyJson } from '../../model/json.ts';
import type { StreamName } from '../../model/streams.ts';
import type { Traits } from '../traits.ts';
import { shareOf } from './random.ts';
import { type Read, type Reading, readEvent } from './shape.ts';
import type { Click, Customer, Json, JsonObject, Link, NewEvent, StoredEvent } from './types.ts';

/** One event as the API returns it now: link and customer joined, traits applied. */
export function render(event: StoredEvent, reading: Reading): Read {
  return event.raw ? structuredClone(event.raw) : reshape(readEvent(event, reading), event, reading.traits);
}

interface Rendering {
  bytes(event: StoredEvent): number;
  /** The text of the page. */
  page(events: readonly StoredEvent[]): string;
}

/** The JSON texts of one answer. Each is made once, whether for its size or for its content. */
export function createRendering(reading: Reading): Rendering {
  const texts = new Map<StoredEvent, string>();
  const text = (event: StoredEvent): string => {
    const known = texts.get(event);
    if (known !== undefined) return known;
    // Only inserted records can hold integers that JSON.stringify refuses.
    const made = event.raw ? stringifyJson(event.raw) : JSON.stringify(render(event, reading));
    texts.set(event, made);
    return made;
  };
  return {
    bytes: (event) => Buffer.byteLength(text(event)),
    page: (events) => `[${events.map(text).join(',')}]`,
  };
}

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
 * The traits that change the form of a record, each as one step. The record belongs to this request and may be changed;
 * its link is shared with other records, so a change of the link must be idempotent and must not depend on the event.
 */
function reshape(record: Read, event: StoredEvent, traits: Traits): Read {
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

/** `String(date)` on a server that runs in UTC, whatever zone this one runs in. */
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

/** An inserted record as an event: it keeps its text, and gets the fields that windows and filters use. */
export function eventFromRecord(stream: StreamName, record: JsonObject, fallbackAt: number): NewEvent {
  const click = object(record.click);
  const link = object(record.link);
  const at = parseInstant(record.timestamp) ?? fallbackAt;
  const facts: Click = {
    id: text(click.id ?? record.click_id),
    at: parseInstant(click.timestamp) ?? at,
    link: linkFacts(link, record),
    place: {
      continent: text(click.continent ?? record.continent),
      country: text(click.country ?? record.country),
      region: text(click.region),
      city: text(click.city ?? record.city),
    },
    agent: {
      device: text(click.device ?? record.device),
      browser: text(click.browser ?? record.browser),
      os: text(click.os ?? record.os),
    },
    trigger: typeof click.trigger === 'string' ? click.trigger : null,
    referer: text(click.referer),
    refererUrl: text(click.refererUrl),
    ip: text(click.ip ?? record.ip),
  };
  const customer = record.customer === undefined ? undefined : customerFacts(object(record.customer), facts, at);
  return {
    stream,
    at: Math.floor(at),
    id: stream === 'clicks' ? facts.id : text(record.eventId),
    click: facts,
    metadata: record.metadata ?? null,
    ...(customer && { customer }),
    raw: structuredClone(record),
  };
}

function linkFacts(link: JsonObject, record: JsonObject): Link {
  const partnerId = nullable(link.partnerId);
  return {
    id: text(link.id ?? record.link_id),
    domain: text(link.domain ?? record.domain),
    key: text(link.key ?? record.key),
    url: text(link.url ?? record.url),
    externalId: nullable(link.externalId),
    tenantId: nullable(link.tenantId),
    partner: partnerId === null ? null : { id: partnerId, programId: text(link.programId), groupId: '', tagIds: [] },
    tags: (Array.isArray(link.tags) ? link.tags : []).map((tag) => {
      const { id, name, color } = object(tag);
      return { id: text(id), name: text(name), color: text(color) };
    }),
    folderId: nullable(link.folderId),
    utm: {
      source: nullable(link.utm_source),
      medium: nullable(link.utm_medium),
      campaign: nullable(link.utm_campaign),
      term: nullable(link.utm_term),
      content: nullable(link.utm_content),
    },
    rest: {},
    createdAt: 0,
    updatedAt: 0,
    lastClicked: null,
    clicks: 0,
    leads: 0,
    conversions: 0,
    sales: 0,
    saleAmount: 0,
  };
}

function customerFacts(customer: JsonObject, click: Click, at: number): Customer {
  return {
    id: text(customer.id),
    externalId: text(customer.externalId),
    name: nullable(customer.name),
    email: text(customer.email),
    country: text(customer.country),
    createdAt: at,
    click,
    purchases: 0,
  };
}

const object = (value: Json | undefined): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
const text = (value: Json | undefined): string =>
  typeof value === 'string' ? value : value === null || value === undefined ? '' : String(value);
const nullable = (value: Json | undefined): string | null => (typeof value === 'string' && value !== '' ? value : null);
