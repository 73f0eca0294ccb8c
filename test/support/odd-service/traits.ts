import { ConfigError } from '../model/errors.ts';
import { parseInstant } from '../model/instant.ts';

/** A type of trait value: its description, its parser, and what the bare name means. */
interface Kind<T> {
  values: string;
  /** The value of `name` without `=value`; undefined if a value is required. */
  bare: string | undefined;
  /** Undefined if the text is not such a value. */
  read(text: string): T | undefined;
}

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZES: Record<string, number> = { '': 1, b: 1, kb: 1024, mb: 1024 * 1024 };

const choice = <const T extends string>(...values: readonly [T, ...T[]]): Kind<T> => ({
  values: values.join('|'),
  bare: values[0],
  read: (text) => values.find((value) => value === text),
});

const flag = (): Kind<boolean> => ({
  values: 'true|false',
  bare: 'true',
  read: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
});

const count = (bare: number, unit = 'N'): Kind<number> => ({
  values: unit,
  bare: String(bare),
  read: (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
});

const share = (bare: number): Kind<number> => ({
  values: '0..1',
  bare: String(bare),
  read: (text) => (/^\d*\.?\d+$/.test(text) && Number(text) <= 1 ? Number(text) : undefined),
});

const duration = (bare: string): Kind<number> => ({
  values: 'milliseconds, or 90s, 5m, 2h, 30d; may be negative',
  bare,
  read(text) {
    const match = /^(-?\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text);
    return match ? Number(match[1]) * (UNITS[match[2] ?? 'ms'] ?? 1) : undefined;
  },
});

const bytes = (bare: string): Kind<number> => ({
  values: 'bytes, or 500kb, 4mb',
  bare,
  read(text) {
    const match = /^(\d+(?:\.\d+)?)(b|kb|mb)?$/i.exec(text);
    return match ? Number(match[1]) * (SIZES[(match[2] ?? '').toLowerCase()] ?? 1) : undefined;
  },
});

const date = (): Kind<number> => ({ values: 'a date', bare: undefined, read: (text) => parseInstant(text) });

const address = (bare: string): Kind<string> => ({
  values: 'a URL',
  bare,
  read: (text) => (URL.canParse(text) ? text : undefined),
});

/** `word`, or `word` with a parameter after the sign: `fail@20`, `insert:3`, `day@-8`. The value stays text, so that it survives JSON. */
const wordWithParameter =
  <S extends '@' | ':', N extends string | number>(sign: S, what: string, tail: RegExp) =>
  <const T extends string>(...words: readonly [T, ...T[]]): Kind<T | `${T}${S}${N}`> => ({
    values: `${words.length > 1 ? `(${words.join('|')})` : words[0]}[${sign}${what}]`,
    bare: words[0],
    read(text) {
      const [head, rest, ...more] = text.split(sign);
      const known = words.some((word) => word === head) && more.length === 0 && (rest === undefined || tail.test(rest));
      return known ? (text as T) : undefined;
    },
  });

const wordAt = wordWithParameter<'@', number>('@', 'N', /^\d+$/);
const wordTimes = wordWithParameter<':', number>(':', 'N', /^\d+$/);
/** A calendar unit, in a zone that many hours ahead of UTC. */
const unitInZone = wordWithParameter<'@', number>('@', 'HOURS', /^[+-]?\d+(\.\d+)?$/);
const wordWithin = wordWithParameter<'@', string>('@', 'DURATION', /^\d+(\.\d+)?(ms|s|m|h|d)$/);

/** A count and a size: `3@100`. */
const countAt = (bare: number, size: number): Kind<`${number}@${number}`> => ({
  values: 'COUNT@N',
  bare: `${bare}@${size}`,
  read: (text) => (/^\d+@\d+$/.test(text) ? (text as `${number}@${number}`) : undefined),
});

/** Splits such a value. */
export function wordAndNumber(text: string, fallback: number): { word: string; number: number } {
  const [word = '', number] = text.split(/[@:]/);
  return { word, number: number === undefined ? fallback : Number(number) };
}

/** Splits a word with a duration. */
export function wordAndDuration(text: string, fallback: string): { word: string; ms: number } {
  const [word = '', time = fallback] = text.split('@');
  return { word, ms: duration(fallback).read(time) ?? 0 };
}

const unit = unitInZone('day', 'hour', 'minute', 'second');

/** Every known behaviour of real services as a switch. A row defines its type, its parser and its line of help. */
const SWITCHES = {
  widen: row(1, unit, 'start and end are widened to whole units, of UTC or of a zone (day@-8)'),
  widenStart: row(1, unit, 'only start is widened, or start otherwise than end'),
  widenEnd: row(1, unit, 'only end is widened, or end otherwise than start'),
  roundStart: row(1, unit, 'start is rounded up: what lies before the next whole unit is not shown'),
  roundEnd: row(1, unit, 'end is rounded down: what lies after the last whole unit is not shown'),
  shiftBounds: row(
    1,
    duration('8h'),
    'start and end are read in another zone: the answer lies that much later than requested',
  ),
  ignoreBounds: row(1, choice('both', 'start', 'end'), 'start, end or both are ignored'),
  maxSpan: row(
    1,
    wordWithin('422', '400', '403', 'empty', 'clamp'),
    'a wider range (30d) is refused, answered with [], or cut at its end',
  ),
  emptyFallsBack: row(1, flag(), 'where the window holds nothing, the last 30 days are shown instead'),
  bounds: row(
    2,
    choice('inclusive', 'exclusive', 'exclusive-start', 'exclusive-end'),
    'which ends of the window belong to it (without the trait: exclusive-end)',
  ),
  ignoreEndWithoutStart: row(3, flag(), '`end` without `start` is ignored'),
  swapReversed: row(3, flag(), '`start` after `end` is swapped instead of refused'),
  defaultWindow: row(3, duration('30d'), 'the window when neither start nor interval is sent (contract: 24h)'),
  timestampForm: row(
    4,
    choice('iso', 'seconds', 'offset', 'space', 'epoch', 'epoch-ms', 'jsdate', 'varies'),
    'how the top-level `timestamp` is written; varies: with milliseconds at one request, without at the next',
  ),
  ties: row(5, count(5000), 'this many more events of each stream share one instant'),
  clickTimeIsEventTime: row(6, flag(), 'click.timestamp of leads and sales is the time of the lead or sale'),
  clockSkew: row(7, duration('5m'), "the service's clock (Date header, new events) runs so far ahead"),
  clockJitter: row(
    7,
    duration('20m'),
    'several hosts with clocks of their own: the Date header is off by up to this much, either way',
  ),
  founded: row(8, date(), 'a start before this day is refused with 422'),
  retention: row(
    8,
    wordWithin('403', '422', 'empty', 'clamp'),
    'a start further back (30d) is refused, answered with [], or moved up',
  ),
  shuffleTies: row(9, flag(), 'events of one instant come in another order at every request'),
  pagedTies: row(9, flag(), 'the order of one instant depends on page and limit, and repeats itself'),
  sortOrder: row(
    9,
    choice('ignored', 'opposite', 'sometimes', 'reversed', 'mixed'),
    'ignored: always desc; opposite: asc for desc, or sometimes so; reversed, mixed: the rows of the right page',
  ),
  sortJitter: row(9, duration('5m'), 'rows are sorted by another time than they show, up to this far from it'),
  dropAfterLimit: row(10, share(0.1), 'this share of rows is filtered out after LIMIT and OFFSET'),
  emptyAnswers: row(10, wordTimes('first', 'every'), 'the first N (3) answers of a stream are [], or every Nth'),
  partial: row(10, share(0.2), 'this share of answers ends early, somewhere on its page'),
  dropLast: row(10, flag(), 'the last row of a full page is missing: it only served to see whether more follow'),
  strays: row(10, share(0.2), 'this share of answers holds a row from outside of the window'),
  repeatRows: row(10, share(0.1), 'this share of rows stands on its page twice'),
  drift: row(11, wordTimes('insert', 'delete', 'both'), 'N rows (1) are inserted or deleted before every answer'),
  linkDrift: row(
    11,
    wordTimes('both', 'insert', 'delete'),
    'a quiet link is made, removed, or both, every N (3) requests for links',
  ),
  flapping: row(11, share(0.1), 'this share of rows is shown in some requests and not in others'),
  replicaLag: row(11, duration('5m'), 'half of the requests miss what arrived within this time'),
  lastPage: row(12, choice('repeat'), 'a page beyond the end repeats the last page'),
  ignorePage: row(12, flag(), 'every page is the first'),
  pagesFromZero: row(12, flag(), 'the first page is page 0'),
  deepPages: row(
    13,
    wordAt('slow', 'fail', 'empty', 'repeat', '400', '403', '413', '422', '503'),
    'pages after N (20) take a second, fail (500, or the status), are empty, or repeat page N',
  ),
  resultWindow: row(
    13,
    wordAt('422', '500', 'empty', 'cut'),
    'rows after the first N (10000) of a query are refused, left out, or cut off',
  ),
  limitCap: row(13, count(500), 'a larger limit is silently taken for this one'),
  limitMax: row(13, count(500), 'a larger limit is refused with 422'),
  ignoreLimit: row(13, count(100), 'every page holds this many rows, whatever the limit'),
  cutBytes: row(13, bytes('500kb'), 'a page ends early at this size: fewer rows than the limit, although more follow'),
  refuseAbove: row(13, wordAt('413', '422', '500'), 'an answer of more than N (500) rows is refused with the status'),
  fragile: row(13, countAt(3, 100), 'this many rows of each stream break (500) pages of more than N rows'),
  poison: row(13, count(1), 'N rows of each stream make their page fail: 500, and 422 at limit=1'),
  maxBytes: row(13, bytes('1mb'), 'a larger response body is refused with 500'),
  duplicates: row(14, share(0.05), 'this share of events was ingested twice'),
  rewrites: row(14, share(0.05), 'this share of leads and sales comes again later, same eventId, other content'),
  volatile: row(15, flag(), 'counters, lastClicked, updatedAt and generated names differ at every read'),
  deletedCustomers: row(16, share(0.2), 'this share of customers comes as a placeholder'),
  lateness: row(17, duration('90s'), 'new events become visible only this much later'),
  backdated: row(17, share(0.2), 'this share of new leads and sales is dated days to months back'),
  vanish: row(18, count(20, 'N requests'), 'after every N requests a link is deleted and its events vanish'),
  unknownFields: row(19, flag(), 'fields that the contract does not know (click.ua, link.utmId, ingestedBy)'),
  unknownEnums: row(19, flag(), 'values that no list names (trigger: deeplink)'),
  nulls: row(19, flag(), 'null where the contract says required (expiresAt, lastClicked, testStartedAt)'),
  absentKeys: row(19, flag(), 'keys without a value are absent'),
  emptyStrings: row(19, flag(), '"" where there is no value'),
  saleShape: row(
    20,
    choice('full', 'canonical', 'flat', 'no-customer'),
    'canonical: only sale{}; flat: only saleAmount, invoice_id, payment_processor',
  ),
  oldAliasesOnly: row(20, flag(), 'what has a deprecated alias comes only under the alias'),
  noAliases: row(20, flag(), 'the deprecated aliases are gone'),
  contradict: row(20, share(0.1), 'on this share of rows an alias differs from its canonical field'),
  limiter: row(21, choice('fixed', 'sliding', 'weighted'), 'how a second is counted'),
  retryAfter: row(
    22,
    choice('seconds', 'date', 'epoch', 'epoch-ms', 'none', 'garbage', 'zero'),
    'how Retry-After of a 429 is written',
  ),
  reset: row(22, choice('seconds', 'ms', 'none', 'garbage'), 'how X-RateLimit-Reset is written'),
  rateHeaders: row(22, choice('none', 'only-429'), 'where X-RateLimit-* headers are left out'),
  forbidden: row(
    23,
    choice('permission', 'plan', 'usage'),
    'every request is answered 403, in one of its three meanings',
  ),
  errorBody: row(24, choice('html', 'empty', 'envelope200', 'unknown-code', 'no-doc-url'), 'what an error looks like'),
  etag: row(24, flag(), 'answers carry an ETag; If-None-Match is answered with 304'),
  redirect: row(25, address('http://login.sandbox.invalid/'), 'every request is redirected (302) to another host'),
  dirty: row(26, flag(), 'a handful of rows of each stream hold difficult data'),
  password: row(27, flag(), 'every link carries a password in plain text'),
} as const;

type Switches = typeof SWITCHES;
type ValueOf<R> = R extends TraitRow<infer T> ? T : never;
export type TraitName = keyof Switches;
export type Traits = { [K in TraitName]?: ValueOf<Switches[K]> | undefined };

interface TraitRow<T> {
  note: number;
  kind: Kind<T>;
  doc: string;
}

function row<T>(note: number, kind: Kind<T>, doc: string): TraitRow<T> {
  return { note, kind, doc };
}

export const TRAIT_NAMES = Object.keys(SWITCHES) as TraitName[];

/** For help texts: one line for each trait. */
export const TRAITS: readonly {
  name: TraitName;
  note: number;
  values: string;
  bare: string | undefined;
  doc: string;
}[] = TRAIT_NAMES.map((name) => {
  const { note, kind, doc } = SWITCHES[name];
  return { name, note, values: kind.values, bare: kind.bare, doc };
});

/** Reads `name`, `name=value` or `name=` (off) into the traits and returns them. */
export function parseTrait(text: string, into: Traits = {}): Traits {
  const sign = text.indexOf('=');
  const name = (sign < 0 ? text : text.slice(0, sign)).trim();
  if (!isTraitName(name)) {
    throw new ConfigError(`the sandbox has no trait "${name}"`, { next: `use one of: ${TRAIT_NAMES.join(', ')}` });
  }
  const { kind } = SWITCHES[name];
  const given = sign < 0 ? kind.bare : text.slice(sign + 1).trim();
  if (given === '') {
    delete into[name];
    return into;
  }
  const value = given === undefined ? undefined : kind.read(given);
  if (value === undefined) {
    throw new ConfigError(`trait ${name} cannot be "${given ?? ''}"`, { next: `give ${name}=${kind.values}` });
  }
  return Object.assign(into, { [name]: value });
}

export function parseTraits(texts: readonly string[]): Traits {
  return texts.reduce((traits: Traits, text) => parseTrait(text, traits), {});
}

function isTraitName(name: string): name is TraitName {
  return Object.hasOwn(SWITCHES, name);
}
