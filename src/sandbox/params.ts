import { STREAM_NAMES, type StreamName } from '../model/streams.ts';
import type { StoredEvent } from './data/types.ts';

const INTERVALS = ['24h', '7d', '30d', '90d', '1y', 'mtd', 'qtd', 'ytd', 'all'] as const;
export type Interval = (typeof INTERVALS)[number];
const CONTINENTS = ['AF', 'AN', 'AS', 'EU', 'NA', 'OC', 'SA'];
const TRIGGER_VALUES = ['qr', 'link', 'pageview'];
const MAX_LIMIT = 1000;
const MAX_QUERY_LENGTH = 10_000;

/** Parameters with advanced filtering: one value, a list, or an exclusion. */
const ADVANCED = [
  'domain',
  'linkId',
  'tenantId',
  'tagId',
  'folderId',
  'partnerTagId',
  'groupId',
  'partnerId',
  'country',
  'city',
  'region',
  'continent',
  'device',
  'browser',
  'os',
  'trigger',
  'referer',
  'refererUrl',
  'url',
  'utm_source',
  'utm_medium',
  'utm_campaign',
  'utm_term',
  'utm_content',
] as const;
type AdvancedName = (typeof ADVANCED)[number];

interface AdvancedFilter {
  exclude: boolean;
  values: ReadonlySet<string>;
}

export interface EventsQuery {
  stream: StreamName;
  advanced: ReadonlyMap<AdvancedName, AdvancedFilter>;
  key: string | undefined;
  externalId: string | undefined;
  customerId: string | undefined;
  programId: string | undefined;
  tagIds: ReadonlySet<string> | undefined;
  root: boolean | undefined;
  qr: boolean | undefined;
  saleType: 'new' | 'recurring' | undefined;
  metadata: { key: string; value: string } | undefined;
  interval: Interval | undefined;
  start: string | undefined;
  end: string | undefined;
  timezone: string;
  page: number;
  limit: number;
  ascending: boolean;
}

/** Reads and checks the query, as strictly as the contract's table says. Unknown parameters are ignored. */
export function readQuery(params: URLSearchParams): EventsQuery {
  const text = (name: string): string | undefined => params.get(name) || undefined;
  const oneOf = <T extends string>(name: string, values: readonly T[]): T | undefined => {
    const given = text(name);
    const value = values.find((known) => known === given);
    if (given !== undefined && value === undefined) invalid(name, `expected one of ${values.join(', ')}`);
    return value;
  };
  const bool = (name: string): boolean | undefined => {
    const value = oneOf(name, ['true', 'false']);
    return value === undefined ? undefined : value === 'true';
  };
  const whole = (name: string, fallback: number, most: number, least = 1): number => {
    const given = text(name) ?? String(fallback);
    const value = /^\d+$/.test(given) ? Number(given) : -1;
    if (value < least || value > most) invalid(name, `expected a whole number from ${least} to ${most}`);
    return value;
  };

  const stream = oneOf('event', STREAM_NAMES) ?? 'clicks';
  const advanced = new Map<AdvancedName, AdvancedFilter>();
  for (const name of ADVANCED) {
    const given = text(name);
    if (given !== undefined) advanced.set(name, readAdvanced(name, given));
  }
  const key = text('key');
  if (key && !advanced.has('domain')) throw new HttpError('bad_request', 'key must be used together with domain');
  oneOf('sortBy', ['timestamp']);
  const order = oneOf('order', ['asc', 'desc']);
  return {
    stream,
    advanced,
    key,
    externalId: readExternalId(text('externalId')),
    customerId: text('customerId'),
    programId: text('programId'),
    tagIds: text('tagIds') ? new Set(text('tagIds')?.split(',')) : undefined,
    root: bool('root'),
    qr: bool('qr'),
    saleType: oneOf('saleType', ['new', 'recurring']),
    metadata: readMetadataQuery(text('query'), stream),
    interval: oneOf('interval', INTERVALS),
    start: text('start'),
    end: text('end'),
    timezone: readTimezone(text('timezone')),
    // Whether there is a page 0 is for the listing to say.
    page: whole('page', 1, Number.MAX_SAFE_INTEGER, 0),
    limit: whole('limit', 100, MAX_LIMIT),
    ascending: (oneOf('sortOrder', ['asc', 'desc']) ?? order ?? 'desc') === 'asc',
  };
}

export function invalid(name: string, why: string): never {
  throw new HttpError('unprocessable_entity', `invalid ${name}: ${why}`);
}

function readAdvanced(name: AdvancedName, given: string): AdvancedFilter {
  const exclude = given.startsWith('-');
  const plain = (value: string): string => (exclude && value.startsWith('-') ? value.slice(1) : value);
  const values = given
    .split(',')
    .map(plain)
    .filter((value) => value !== '');
  if (values.length === 0) invalid(name, 'no value');
  const known = name === 'continent' ? CONTINENTS : name === 'trigger' ? TRIGGER_VALUES : undefined;
  const odd = known && values.find((value) => !known.includes(value));
  if (odd !== undefined) invalid(name, `"${odd}" is not one of ${known?.join(', ')}`);
  return { exclude, values: new Set(values) };
}

function readExternalId(given: string | undefined): string | undefined {
  if (given !== undefined && !given.startsWith('ext_')) invalid('externalId', 'it must be prefixed with ext_');
  return given?.slice('ext_'.length);
}

function readMetadataQuery(given: string | undefined, stream: StreamName): EventsQuery['metadata'] {
  if (given === undefined) return undefined;
  if (given.length > MAX_QUERY_LENGTH) invalid('query', `longer than ${MAX_QUERY_LENGTH} characters`);
  if (stream === 'clicks') invalid('query', 'only lead and sale events have metadata');
  const match = /^metadata\['([^']+)'\]:'([^']*)'$/.exec(given);
  if (!match) invalid('query', "expected metadata['<key>']:'<value>'");
  return { key: match[1] ?? '', value: match[2] ?? '' };
}

function readTimezone(given = 'UTC'): string {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: given }).resolvedOptions().timeZone;
  } catch {
    return invalid('timezone', `"${given}" is no IANA time zone`);
  }
}

type Value = string | null | undefined | readonly string[];

/** The field that each parameter filters by. A link without partner has no group: it matches no value and survives every exclusion. */
const FIELD_OF: Record<AdvancedName, (event: StoredEvent) => Value> = {
  domain: ({ click }) => click.link.domain,
  linkId: ({ click }) => click.link.id,
  tenantId: ({ click }) => click.link.tenantId,
  tagId: ({ click }) => click.link.tags.map((tag) => tag.id),
  folderId: ({ click }) => click.link.folderId,
  partnerTagId: ({ click }) => click.link.partner?.tagIds,
  groupId: ({ click }) => click.link.partner?.groupId,
  partnerId: ({ click }) => click.link.partner?.id,
  country: ({ click }) => click.place.country,
  city: ({ click }) => click.place.city,
  region: ({ click }) => click.place.region,
  continent: ({ click }) => click.place.continent,
  device: ({ click }) => click.agent.device,
  browser: ({ click }) => click.agent.browser,
  os: ({ click }) => click.agent.os,
  trigger: ({ click }) => click.trigger,
  referer: ({ click }) => click.referer,
  refererUrl: ({ click }) => click.refererUrl,
  url: ({ click }) => click.link.url,
  utm_source: ({ click }) => click.link.utm.source,
  utm_medium: ({ click }) => click.link.utm.medium,
  utm_campaign: ({ click }) => click.link.utm.campaign,
  utm_term: ({ click }) => click.link.utm.term,
  utm_content: ({ click }) => click.link.utm.content,
};

type Predicate = (event: StoredEvent) => boolean;

/** All filters as one predicate, or undefined without filters: then a page needs no scan. */
export function filterOf(
  query: EventsQuery,
  clickOfCustomer: (id: string) => string | undefined,
): Predicate | undefined {
  const tests: Predicate[] = [];
  for (const [name, { exclude, values }] of query.advanced) {
    const fieldOf = FIELD_OF[name];
    tests.push((event) => holds(fieldOf(event), values) !== exclude);
  }
  const { key, externalId, customerId, programId, tagIds, root, qr, saleType, metadata } = query;
  if (key !== undefined) tests.push(({ click }) => click.link.key === key);
  if (externalId !== undefined) tests.push(({ click }) => click.link.externalId === externalId);
  if (programId !== undefined) tests.push(({ click }) => click.link.partner?.programId === programId);
  if (tagIds !== undefined) tests.push(({ click }) => click.link.tags.some((tag) => tagIds.has(tag.id)));
  if (root !== undefined) tests.push(({ click }) => (click.link.key === '_root') === root);
  if (qr !== undefined) tests.push(({ click }) => (click.trigger === 'qr') === qr);
  if (customerId !== undefined) {
    // A click carries no customer; it belongs to the customer who came by it.
    const clickId = clickOfCustomer(customerId);
    tests.push(({ customer, id }) => (customer ? customer.id === customerId : id === clickId));
  }
  // saleType applies to sales only; on other streams it filters nothing.
  if (saleType !== undefined) tests.push(({ sale }) => !sale || sale.first === (saleType === 'new'));
  if (metadata !== undefined) tests.push((event) => metadataValue(event, metadata.key) === metadata.value);
  return tests.length === 0 ? undefined : (event) => tests.every((test) => test(event));
}

function holds(value: Value, wanted: ReadonlySet<string>): boolean {
  if (value === null || value === undefined) return false;
  return typeof value === 'string' ? wanted.has(value) : value.some((one) => wanted.has(one));
}

function metadataValue({ metadata }: StoredEvent, key: string): string | undefined {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return undefined;
  return Object.hasOwn(metadata, key) ? String(metadata[key]) : undefined;
}

/** The nine errors of the contract. */
const ERROR_STATUS = {
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  invite_expired: 410,
  unprocessable_entity: 422,
  rate_limit_exceeded: 429,
  internal_server_error: 500,
} as const;
type ErrorCode = keyof typeof ERROR_STATUS;

/** An answer other than the list of events. The service throws it, the HTTP server writes it. */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(code: ErrorCode, message: string, status: number = ERROR_STATUS[code]) {
    super(message);
    this.name = 'HttpError';
    this.code = code;
    this.status = status;
  }
}

export const envelope = (code: string, message: string): object => ({
  error: { code, message, doc_url: `https://docs.sandbox.invalid/api-reference/errors#${code.replaceAll('_', '-')}` },
});

/** Statuses outside the contract use the nearest code: a 503 is an internal error, a 405 a bad request. */
export function codeOf(status: number): ErrorCode {
  const known = (Object.keys(ERROR_STATUS) as ErrorCode[]).find((code) => ERROR_STATUS[code] === status);
  return known ?? (status >= 500 ? 'internal_server_error' : 'bad_request');
}
