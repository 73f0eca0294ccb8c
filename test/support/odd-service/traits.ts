import { parseInstant } from '../../../src/model/instant.ts';
import {
  choice,
  count,
  duration,
  flag,
  type Kind,
  row,
  SWITCHES,
  share,
  type TraitsOf,
  traitReader,
} from '../../../src/sandbox/traits.ts';

const SIZES: Record<string, number> = { '': 1, b: 1, kb: 1024, mb: 1024 * 1024 };

const bytes = (bare: string): Kind<number> => ({
  values: 'bytes, or 500kb, 4mb',
  bare,
  read(text) {
    const match = /^(\d+(?:\.\d+)?)(b|kb|mb)?$/i.exec(text);
    return match ? Number(match[1]) * (SIZES[(match[2] ?? '').toLowerCase()] ?? 1) : undefined;
  },
});

const date = (): Kind<number> => ({ values: 'a date', bare: undefined, read: (text) => parseInstant(text) });

/** `word`, or `word` with a parameter after the sign: `fail@20`, `insert:3`, `day@-8`. The value stays text, as JSON requires. */
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
/** A calendar unit, in a zone so many hours ahead of UTC. */
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

/** Every known deviation of deployed services from the contract, including the sandbox's. */
export const ODD = {
  ...SWITCHES,
  widen: row(unit, 'start and end are widened to whole units, of UTC or of a zone (day@-8)'),
  widenStart: row(unit, 'only start is widened, or start otherwise than end'),
  widenEnd: row(unit, 'only end is widened, or end otherwise than start'),
  roundStart: row(unit, 'start is rounded up: what lies before the next whole unit is not shown'),
  roundEnd: row(unit, 'end is rounded down: what lies after the last whole unit is not shown'),
  shiftBounds: row(
    duration('8h'),
    'start and end are read in another zone: the answer lies that much later than requested',
  ),
  ignoreBounds: row(choice('both', 'start', 'end'), 'start, end or both are ignored'),
  maxSpan: row(
    wordWithin('422', '400', '403', 'empty', 'clamp'),
    'a wider range (30d) is refused, answered with [], or cut at its end',
  ),
  emptyFallsBack: row(flag(), 'where the window holds nothing, the last 30 days are shown instead'),
  bounds: row(
    choice('inclusive', 'exclusive', 'exclusive-start', 'exclusive-end'),
    'which ends of the window belong to it (without the trait: exclusive-end)',
  ),
  timestampForm: row(
    choice('iso', 'seconds', 'offset', 'space', 'epoch', 'epoch-ms', 'jsdate', 'varies'),
    'how the top-level `timestamp` is written; varies: with milliseconds at one request, without at the next',
  ),
  ties: row(count(5000), 'this many more events of each stream share one instant'),
  clickTimeIsEventTime: row(flag(), 'click.timestamp of leads and sales is the time of the lead or sale'),
  clockSkew: row(duration('5m'), "the service's clock (Date header, new events) runs so far ahead"),
  clockJitter: row(
    duration('20m'),
    'several hosts with clocks of their own: the Date header is off by up to this much, either way',
  ),
  founded: row(date(), 'a start before this day is refused with 422'),
  retention: row(
    wordWithin('403', '422', 'empty', 'clamp'),
    'a start further back (30d) is refused, answered with [], or moved up',
  ),
  shuffleTies: row(flag(), 'events of one instant come in another order at every request'),
  pagedTies: row(flag(), 'the order of one instant depends on page and limit, and repeats itself'),
  sortOrder: row(
    choice('ignored', 'opposite', 'sometimes', 'reversed', 'mixed'),
    'ignored: always desc; opposite: asc for desc, or sometimes so; reversed, mixed: the rows of the right page',
  ),
  sortJitter: row(duration('5m'), 'rows are sorted by another time than they show, up to this far from it'),
  dropAfterLimit: row(share(0.1), 'this share of rows is filtered out after LIMIT and OFFSET'),
  emptyAnswers: row(wordTimes('first', 'every'), 'the first N (3) answers of a stream are [], or every Nth'),
  partial: row(share(0.2), 'this share of answers ends early, somewhere on its page'),
  dropLast: row(flag(), 'the last row of a full page is missing: it only served to see whether more follow'),
  strays: row(share(0.2), 'this share of answers holds a row from outside of the window'),
  flapping: row(share(0.1), 'this share of rows is shown in some requests and not in others'),
  replicaLag: row(duration('5m'), 'half of the requests miss what arrived within this time'),
  lastPage: row(choice('repeat'), 'a page beyond the end repeats the last page'),
  ignorePage: row(flag(), 'every page is the first'),
  pagesFromZero: row(flag(), 'the first page is page 0'),
  deepPages: row(
    wordAt('fail', 'empty', 'repeat', '400', '403', '413', '422', '503'),
    'pages after N (20) fail (500, or the status), are empty, or repeat page N',
  ),
  resultWindow: row(
    wordAt('422', '500', 'empty', 'cut'),
    'rows after the first N (10000) of a query are refused, left out, or cut off',
  ),
  limitMax: row(count(500), 'a larger limit is refused with 422'),
  ignoreLimit: row(count(100), 'every page holds this many rows, whatever the limit'),
  cutBytes: row(bytes('500kb'), 'a page ends early at this size: fewer rows than the limit, although more follow'),
  refuseAbove: row(wordAt('413', '422', '500'), 'an answer of more than N (500) rows is refused with the status'),
  fragile: row(countAt(3, 100), 'this many rows of each stream break (500) pages of more than N rows'),
  poison: row(count(1), 'N rows of each stream make their page fail: 500, and 422 at limit=1'),
  maxBytes: row(bytes('1mb'), 'a larger response body is refused with 500'),
  duplicates: row(share(0.05), 'this share of events was ingested twice'),
  rewrites: row(share(0.05), 'this share of leads and sales comes again later, same eventId, other content'),
  volatile: row(flag(), 'counters, lastClicked, updatedAt and generated names differ at every read'),
  deletedCustomers: row(share(0.2), 'this share of customers comes as a placeholder'),
  unknownFields: row(flag(), 'fields that the contract does not know (click.ua, link.utmId, ingestedBy)'),
  unknownEnums: row(flag(), 'values that no list names (trigger: deeplink)'),
  nulls: row(flag(), 'null where the contract says required (expiresAt, lastClicked, testStartedAt)'),
  absentKeys: row(flag(), 'keys without a value are absent'),
  emptyStrings: row(flag(), '"" where there is no value'),
  saleShape: row(
    choice('full', 'canonical', 'flat', 'no-customer'),
    'canonical: only sale{}; flat: only saleAmount, invoice_id, payment_processor',
  ),
  contradict: row(share(0.1), 'on this share of rows an alias differs from its canonical field'),
  forbidden: row(
    choice('permission', 'plan', 'usage'),
    'every request for events is answered 403, in one of its three meanings',
  ),
  dirty: row(flag(), 'a handful of rows of each stream hold difficult data'),
  password: row(flag(), 'every link carries a password in plain text'),
} as const;

export type Traits = TraitsOf<typeof ODD>;
export type TraitName = keyof Traits;

export const readOddTrait = traitReader(ODD);

export const parseTraits = (texts: readonly string[]): Traits =>
  texts.reduce((traits: Traits, text) => readOddTrait(text, traits), {});
