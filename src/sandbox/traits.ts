import { ConfigError } from '../model/errors.ts';
import { address, bytes, choice, count, date, duration, flag, type Kind, share, wordWithNumber } from './kinds.ts';

/** Every field note as a switch. One row is the whole definition: its type, its parser and its line of help. */
const SWITCHES = {
  widen: row(1, choice('day', 'hour'), 'widen start and end to whole UTC days or hours'),
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
    choice('iso', 'seconds', 'offset', 'space', 'epoch', 'epoch-ms', 'jsdate'),
    'how the top-level `timestamp` is written',
  ),
  ties: row(5, count(5000), 'so many more events of each stream share one instant'),
  clickTimeIsEventTime: row(6, flag(), 'click.timestamp of leads and sales is the time of the lead or sale'),
  clockSkew: row(7, duration('5m'), "the service's clock (Date header, new events) runs so far ahead"),
  founded: row(8, date(), 'a start before this day is refused with 422'),
  shuffleTies: row(9, flag(), 'events of one instant come in another order at every request'),
  dropAfterLimit: row(10, share(0.1), 'this share of rows is filtered out after LIMIT and OFFSET'),
  drift: row(
    11,
    wordWithNumber(':', 'insert', 'delete', 'both'),
    'N rows (1) are inserted or deleted before every answer',
  ),
  lastPage: row(12, choice('repeat'), 'a page beyond the end repeats the last page'),
  deepPages: row(13, wordWithNumber('@', 'slow', 'fail'), 'pages after N (20) take a second, or fail with 500'),
  poison: row(13, count(1), 'N rows of each stream make their page fail: 500, and 422 at limit=1'),
  maxBytes: row(13, bytes('1mb'), 'a larger response body is refused with 500'),
  duplicates: row(14, share(0.05), 'this share of events was ingested twice'),
  rewrites: row(14, share(0.05), 'this share of leads and sales comes again later, same eventId, other content'),
  volatile: row(15, flag(), 'counters, lastClicked, updatedAt and generated names differ at every read'),
  deletedCustomers: row(16, share(0.2), 'this share of customers comes as a placeholder'),
  lateness: row(17, duration('90s'), 'new events become visible only so much later'),
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
  redirect: row(25, address('http://login.sandbox.invalid/'), 'every request is redirected (302) to another host'),
  dirty: row(26, flag(), 'a handful of rows of each stream hold data that bites'),
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

/** For help texts: one line a trait, in the order of the field notes. */
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
