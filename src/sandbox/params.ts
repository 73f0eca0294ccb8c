import { parseInstant } from '../model/instant.ts';
import { STREAM_NAMES, type StreamName } from '../model/streams.ts';
import { DAY_MS, HOUR_MS } from '../model/window.ts';
import type { Click, Customer, StoredEvent } from './data/types.ts';

const INTERVALS = ['24h', '7d', '30d', '90d', '1y', 'mtd', 'qtd', 'ytd', 'all'] as const;
const CONTINENTS = ['AF', 'AN', 'AS', 'EU', 'NA', 'OC', 'SA'];
const TRIGGER_VALUES = ['qr', 'link', 'pageview'];
const MAX_LIMIT = 1000;
const MAX_QUERY_LENGTH = 10_000;

type Predicate = (event: StoredEvent) => boolean;

/** Reads the parameters of a query, or throws. An empty parameter counts as absent. */
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

/** Reads and checks the query of `GET /events`, as strictly as the contract's table says. Unknown parameters are ignored. */
export function readQuery(params: URLSearchParams, customers: readonly Customer[], now: number) {
  const read = paramReader(params);
  const { text, oneOf, whole } = read;
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
    /** Undefined without filters: then a page needs no scan. */
    filter: tests.length === 0 ? undefined : (event: StoredEvent) => tests.every((test) => test(event)),
    ...readWindow(read, now),
    // The listing decides whether there is a page 0.
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
    return invalid('timezone', `"${given}" is not an IANA time zone`);
  }
}

/** From start and end, the interval, or the default of 24 hours. */
function readWindow({ text, oneOf }: ReturnType<typeof paramReader>, now: number): { start: number; end: number } {
  const interval = oneOf('interval', INTERVALS) ?? '24h';
  const timezone = readTimezone(text('timezone'));
  const [from, to] = [text('start'), text('end')];
  const end = to === undefined ? now : readTime('end', to, now);
  const start = from === undefined ? startOf(interval, end, timezone) : readTime('start', from, now);
  if (from !== undefined && start > end) invalid('start', 'must not be after end');
  return { start, end };
}

/** Dates, instants, `now` and phrases such as `3 hours ago`. */
function readTime(name: string, text: string, now: number): number {
  if (text === 'now') return now;
  const phrase = /^(\d+) (minute|hour|day|week)s? ago$/.exec(text);
  if (phrase) {
    const unit = { minute: 60_000, hour: HOUR_MS, day: DAY_MS, week: 7 * DAY_MS }[phrase[2] ?? ''] ?? 0;
    return now - Number(phrase[1]) * unit;
  }
  // The + of a UTC offset is decoded to a space in a query.
  return (
    parseInstant(text.replace(/ (\d{2}:?\d{2})$/, (whole, zone) => (text.includes('T') ? `+${zone}` : whole))) ??
    invalid(name, `"${text}" is not a date and time`)
  );
}

const DAYS = { '24h': 1, '7d': 7, '30d': 30, '90d': 90, '1y': 365 } as const;

function startOf(interval: (typeof INTERVALS)[number], end: number, timezone: string): number {
  if (interval === 'all') return Number.MIN_SAFE_INTEGER;
  if (interval === 'mtd' || interval === 'qtd' || interval === 'ytd') return calendarStart(interval, end, timezone);
  return end - DAYS[interval] * DAY_MS;
}

/** The first instant of the month, quarter or year that holds the instant, on the calendar of the time zone. */
function calendarStart(interval: 'mtd' | 'qtd' | 'ytd', at: number, timezone: string): number {
  const [year = 0, month = 1] = localParts(at, timezone);
  const first = interval === 'ytd' ? 1 : interval === 'qtd' ? month - ((month - 1) % 3) : month;
  const asUtc = Date.UTC(year, first - 1, 1);
  const [y = 0, m = 1, d = 1, hour = 0, minute = 0, second = 0] = localParts(asUtc, timezone);
  return asUtc - (Date.UTC(y, m - 1, d, hour, minute, second) - asUtc);
}

/** Year, month, day, hour, minute and second: the Swedish locale writes them in this order. */
const localParts = (at: number, timeZone: string): number[] =>
  [...new Date(at).toLocaleString('sv-SE', { timeZone }).matchAll(/\d+/g)].map(Number);

interface Asked {
  name: string;
  stream: StreamName;
  customers: readonly Customer[];
}

type FilterBy = (given: string, asked: Asked) => Predicate;
type Value = string | null | undefined | readonly string[];

/** Advanced filtering: one value, a list, or an exclusion. A missing value never matches, so it passes every exclusion. */
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

/** Filters whose names are those of their fields. */
const fields = <K extends string>(names: readonly K[], holder: (click: Click) => Record<K, Value>) =>
  Object.fromEntries(names.map((name) => [name, advanced(({ click }) => holder(click)[name])]));

const yesOrNo =
  (isSo: Predicate): FilterBy =>
  (given, { name }) => {
    const wanted = known(name, given, ['true', 'false']) === 'true';
    return (event) => isSo(event) === wanted;
  };

const FILTERS: Record<string, FilterBy> = {
  ...fields(['domain', 'tenantId', 'folderId', 'url'], ({ link }) => link),
  ...fields(['utm_source', 'utm_medium', 'utm_campaign', 'utm_term', 'utm_content'], ({ link }) => link.utm),
  ...fields(['country', 'city', 'region'], ({ place }) => place),
  ...fields(['device', 'browser', 'os'], ({ agent }) => agent),
  ...fields(['referer', 'refererUrl'], (click) => click),
  linkId: advanced(({ click }) => click.link.id),
  tagId: advanced(({ click }) => click.link.tags.map((tag) => tag.id)),
  partnerTagId: advanced(({ click }) => click.link.partner?.tagIds),
  groupId: advanced(({ click }) => click.link.partner?.groupId),
  partnerId: advanced(({ click }) => click.link.partner?.id),
  continent: advanced(({ click }) => click.place.continent, CONTINENTS),
  trigger: advanced(({ click }) => click.trigger, TRIGGER_VALUES),
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
    // A click has no customer field; it belongs to the customer who came through it.
    const clickId = customers.find((customer) => customer.id === given)?.click.id;
    return ({ customer, id }) => (customer ? customer.id === given : id === clickId);
  },
  saleType(given, { name }) {
    const isNew = known(name, given, ['new', 'recurring']) === 'new';
    // Applies to sales only; it filters nothing on other streams.
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

/** An error response. The service throws it, and the HTTP server sends it. */
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
