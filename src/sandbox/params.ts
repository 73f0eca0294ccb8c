import { STREAM_NAMES, type StreamName } from '../model/streams.ts';
import type { Customer, StoredEvent } from './data/types.ts';

const INTERVALS = ['24h', '7d', '30d', '90d', '1y', 'mtd', 'qtd', 'ytd', 'all'] as const;
export type Interval = (typeof INTERVALS)[number];
const CONTINENTS = ['AF', 'AN', 'AS', 'EU', 'NA', 'OC', 'SA'];
const TRIGGER_VALUES = ['qr', 'link', 'pageview'];
const MAX_LIMIT = 1000;
const MAX_QUERY_LENGTH = 10_000;

export interface EventsQuery {
  stream: StreamName;
  /** All filters as one predicate, or undefined without filters: then a page needs no scan. */
  filter: Predicate | undefined;
  interval: Interval | undefined;
  start: string | undefined;
  end: string | undefined;
  timezone: string;
  page: number;
  limit: number;
  ascending: boolean;
}

type Predicate = (event: StoredEvent) => boolean;

/** Reads parameters of a query, or refuses them. Absent and empty are the same. */
export function paramReader(params: URLSearchParams) {
  const text = (name: string): string | undefined => params.get(name) || undefined;
  return {
    text,
    oneOf: <T extends string>(name: string, values: readonly T[]): T | undefined => {
      const given = text(name);
      return given === undefined ? undefined : known(name, given, values);
    },
    whole(name: string, fallback: number, least: number, most: number): number {
      const given = text(name) ?? String(fallback);
      const value = /^\d+$/.test(given) ? Number(given) : -1;
      if (value < least || value > most) invalid(name, `expected a whole number from ${least} to ${most}`);
      return value;
    },
  };
}

/** Reads and checks the query, as strictly as the contract's table says. Unknown parameters are ignored. */
export function readQuery(params: URLSearchParams, customers: readonly Customer[]): EventsQuery {
  const { text, oneOf, whole } = paramReader(params);
  const stream = oneOf('event', STREAM_NAMES) ?? 'clicks';
  const tests = Object.entries(FILTERS).flatMap(([name, filterBy]) => {
    const given = text(name);
    return given === undefined ? [] : [filterBy(given, { name, stream, customers })];
  });
  if (text('key') && !text('domain')) throw new HttpError('bad_request', 'key must be used together with domain');
  oneOf('sortBy', ['timestamp']);
  const order = oneOf('order', ['asc', 'desc']);
  return {
    stream,
    filter: tests.length === 0 ? undefined : (event) => tests.every((test) => test(event)),
    interval: oneOf('interval', INTERVALS),
    start: text('start'),
    end: text('end'),
    timezone: readTimezone(text('timezone')),
    // Whether there is a page 0 is for the listing to say.
    page: whole('page', 1, 0, Number.MAX_SAFE_INTEGER),
    limit: whole('limit', 100, 1, MAX_LIMIT),
    ascending: (oneOf('sortOrder', ['asc', 'desc']) ?? order ?? 'desc') === 'asc',
  };
}

export function invalid(name: string, why: string): never {
  throw new HttpError('unprocessable_entity', `invalid ${name}: ${why}`);
}

const known = <T extends string>(name: string, given: string, values: readonly T[]): T =>
  values.find((value) => value === given) ?? invalid(name, `expected one of ${values.join(', ')}`);

function readTimezone(given = 'UTC'): string {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: given }).resolvedOptions().timeZone;
  } catch {
    return invalid('timezone', `"${given}" is no IANA time zone`);
  }
}

interface Asked {
  name: string;
  stream: StreamName;
  customers: readonly Customer[];
}

type FilterBy = (given: string, asked: Asked) => Predicate;
type Value = string | null | undefined | readonly string[];

/** Advanced filtering: one value, a list, or an exclusion. What has no value matches none and survives every exclusion. */
const advanced =
  (fieldOf: (event: StoredEvent) => Value, allowed?: readonly string[]): FilterBy =>
  (given, { name }) => {
    const exclude = given.startsWith('-');
    const plain = (value: string): string => (exclude && value.startsWith('-') ? value.slice(1) : value);
    const wanted = given
      .split(',')
      .map(plain)
      .filter((value) => value !== '');
    if (wanted.length === 0) invalid(name, 'no value');
    if (allowed) for (const value of wanted) known(name, value, allowed);
    const values = new Set(wanted);
    return (event) => holds(fieldOf(event), values) !== exclude;
  };

function holds(value: Value, wanted: ReadonlySet<string>): boolean {
  if (value === null || value === undefined) return false;
  return typeof value === 'string' ? wanted.has(value) : value.some((one) => wanted.has(one));
}

const yesOrNo =
  (isSo: Predicate): FilterBy =>
  (given, { name }) => {
    const wanted = known(name, given, ['true', 'false']) === 'true';
    return (event) => isSo(event) === wanted;
  };

/** Every parameter that selects events. */
const FILTERS: Record<string, FilterBy> = {
  domain: advanced(({ click }) => click.link.domain),
  linkId: advanced(({ click }) => click.link.id),
  tenantId: advanced(({ click }) => click.link.tenantId),
  tagId: advanced(({ click }) => click.link.tags.map((tag) => tag.id)),
  folderId: advanced(({ click }) => click.link.folderId),
  partnerTagId: advanced(({ click }) => click.link.partner?.tagIds),
  groupId: advanced(({ click }) => click.link.partner?.groupId),
  partnerId: advanced(({ click }) => click.link.partner?.id),
  country: advanced(({ click }) => click.place.country),
  city: advanced(({ click }) => click.place.city),
  region: advanced(({ click }) => click.place.region),
  continent: advanced(({ click }) => click.place.continent, CONTINENTS),
  device: advanced(({ click }) => click.agent.device),
  browser: advanced(({ click }) => click.agent.browser),
  os: advanced(({ click }) => click.agent.os),
  trigger: advanced(({ click }) => click.trigger, TRIGGER_VALUES),
  referer: advanced(({ click }) => click.referer),
  refererUrl: advanced(({ click }) => click.refererUrl),
  url: advanced(({ click }) => click.link.url),
  utm_source: advanced(({ click }) => click.link.utm.utm_source),
  utm_medium: advanced(({ click }) => click.link.utm.utm_medium),
  utm_campaign: advanced(({ click }) => click.link.utm.utm_campaign),
  utm_term: advanced(({ click }) => click.link.utm.utm_term),
  utm_content: advanced(({ click }) => click.link.utm.utm_content),
  key: (given) => (event) => event.click.link.key === given,
  programId: (given) => (event) => event.click.link.partner?.programId === given,
  root: yesOrNo(({ click }) => click.link.key === '_root'),
  qr: yesOrNo(({ click }) => click.trigger === 'qr'),
  externalId(given, { name }) {
    if (!given.startsWith('ext_')) invalid(name, 'it must be prefixed with ext_');
    return ({ click }) => click.link.externalId === given.slice('ext_'.length);
  },
  tagIds(given) {
    const wanted = new Set(given.split(','));
    return ({ click }) => click.link.tags.some((tag) => wanted.has(tag.id));
  },
  customerId(given, { customers }) {
    // A click carries no customer; it belongs to the customer who came by it.
    const clickId = customers.find((customer) => customer.id === given)?.click.id;
    return ({ customer, id }) => (customer ? customer.id === given : id === clickId);
  },
  saleType(given, { name }) {
    const isNew = known(name, given, ['new', 'recurring']) === 'new';
    // It applies to sales only; on other streams it filters nothing.
    return ({ sale }) => !sale || sale.first === isNew;
  },
  query(given, { name, stream }) {
    if (given.length > MAX_QUERY_LENGTH) invalid(name, `longer than ${MAX_QUERY_LENGTH} characters`);
    if (stream === 'clicks') invalid(name, 'only lead and sale events have metadata');
    const [, key, value] = /^metadata\['([^']+)'\]:'([^']*)'$/.exec(given) ?? [];
    if (key === undefined) invalid(name, "expected metadata['<key>']:'<value>'");
    return (event) => metadataValue(event, key) === value;
  },
};

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
