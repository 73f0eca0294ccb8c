import { shareOf } from '../../../src/sandbox/data/random.ts';
import {
  firstAt,
  type Moment,
  type Listed as PlainlyListed,
  type PageQuery as PlainQuery,
} from '../../../src/sandbox/listing.ts';
import { type Traits, wordAndNumber } from './traits.ts';
import { answeredRange, refuse, type TimeRange } from './window.ts';

export type PageQuery = Required<PlainQuery>;

export interface Listed extends PlainlyListed {
  /** When the service learned of it, if later than its own time. */
  readonly arrivedAt?: number | undefined;
}

/** The properties of a row that the model uses. */
export interface RowFacts<R> {
  /** Whether it passes the query's filters. */
  filter?: ((row: R) => boolean) | undefined;
  /** Removed after LIMIT and OFFSET: it occupies a position on its page but is not shown. */
  hidden?: ((row: R) => boolean) | undefined;
  /** Every page with it fails. */
  poison?: ((row: R) => boolean) | undefined;
  /** Pages with it fail above a size. */
  fragile?: ((row: R) => boolean) | undefined;
  bytes?: ((row: R) => number) | undefined;
}

const DEEP = 20;
const FRAGILE_ABOVE = 100;
const FALL_BACK_MS = 30 * 86_400_000;

/**
 * The page that answers the query, or an HttpError. It is pure; randomness of traits is derived from the seed, the request's number and the row's
 * id. The HTTP service and the in-memory simulation both use it. `rows` are sorted by time; their order among equals is the stable one.
 */
export function listPage<R extends Listed>(
  rows: readonly R[],
  query: PageQuery,
  traits: Traits,
  moment: Moment,
  facts: RowFacts<R> = {},
): R[] {
  const { page, limit, offset } = placeOf(query, traits);
  const range = answeredRange(query, traits, moment.now);
  if (isEmptyNow(traits, moment)) return [];
  const deep = deepPage(query, traits);
  if (deep && /^\d+$/.test(deep)) refuse(deep, 'the query took too long');
  if (deep === 'empty') return [];

  const found = rowsIn(rows, range, traits, moment, facts);
  const matching =
    found.high === found.low && traits.emptyFallsBack
      ? rowsIn(rows, { from: moment.now - FALL_BACK_MS, until: moment.now }, traits, moment, facts)
      : found;
  const ascending = isAscending(query, traits, moment);
  const cut = slice(matching, { offset, limit, ascending }, traits, tieRank(traits, moment, page, limit));

  if (facts.poison && cut.some(facts.poison)) refuse(limit === 1 ? 422 : 500, 'a record could not be read');
  if (
    facts.fragile &&
    cut.length > wordAndNumber(traits.fragile ?? '', FRAGILE_ABOVE).number &&
    cut.some(facts.fragile)
  ) {
    refuse(500, 'a record could not be read');
  }
  const shown = facts.hidden ? cut.filter((row) => !facts.hidden?.(row)) : cut;
  // Rows outside both the answered and the requested range; a row inside the requested one is ordinary.
  const outside = { from: Math.min(range.from, query.start), until: Math.max(range.until, query.end) };
  return distorted(withinSize(shown, traits, facts), { rows, range: outside, traits, moment, facts, ascending, limit });
}

/** The current time according to an answer. */
export function clockOf({ clockJitter = 0 }: Traits, { seed, request, now }: Moment): number {
  return now + Math.round((shareOf(`${request}`, `clock${seed}`) - 0.5) * 2 * clockJitter);
}

/** Whether this answer leaves the milliseconds out. */
export const isInSeconds = ({ timestampForm }: Traits, { request }: Moment): boolean =>
  timestampForm === 'seconds' || (timestampForm === 'varies' && request % 2 === 0);

/** The answer to pages with a high number: `empty`, `repeat`, or a status. */
function deepPage({ page }: PageQuery, { deepPages }: Traits): string | undefined {
  if (!deepPages) return undefined;
  const { word, number } = wordAndNumber(deepPages, DEEP);
  return page > number ? (word === 'fail' ? '500' : word) : undefined;
}

function placeOf(query: PageQuery, traits: Traits): { page: number; limit: number; offset: number } {
  if (traits.limitMax !== undefined && query.limit > traits.limitMax) {
    refuse(422, `invalid limit: at most ${traits.limitMax}`);
  }
  if (query.page < (traits.pagesFromZero ? 0 : 1)) refuse(422, 'invalid page: the first is 1');
  const limit = traits.ignoreLimit ?? Math.min(query.limit, traits.limitCap ?? Number.POSITIVE_INFINITY);
  let page = traits.ignorePage ? 1 : query.page;
  if (deepPage(query, traits) === 'repeat') page = wordAndNumber(traits.deepPages ?? '', DEEP).number;
  const offset = (traits.pagesFromZero ? page : page - 1) * limit;
  if (traits.resultWindow) {
    const { word, number: most } = wordAndNumber(traits.resultWindow, 10_000);
    if (offset + limit > most) {
      if (word === 'empty') return { page, limit: 0, offset };
      if (word === 'cut') return { page, limit: Math.max(0, most - offset), offset };
      refuse(word, `only the first ${most} events can be paged through`);
    }
  }
  return { page, limit, offset };
}

function isEmptyNow({ emptyAnswers }: Traits, { request }: Moment): boolean {
  if (!emptyAnswers) return false;
  const { word, number } = wordAndNumber(emptyAnswers, 3);
  return word === 'first' ? request <= number : request % number === 0;
}

function isAscending({ ascending }: PageQuery, { sortOrder }: Traits, { seed, request }: Moment): boolean {
  if (sortOrder === 'ignored') return false;
  if (sortOrder === 'opposite') return !ascending;
  if (sortOrder === 'sometimes') return shareOf(`${request}`, `order${seed}`) < 0.3 ? !ascending : ascending;
  return ascending;
}

interface SortedSlice<R> {
  rows: readonly R[];
  low: number;
  high: number;
}

/** The rows that the query selects. Without filters these are two binary searches. */
function rowsIn<R extends Listed>(
  rows: readonly R[],
  range: TimeRange,
  traits: Traits,
  { seed, request, now }: Moment,
  { filter }: RowFacts<R>,
): SortedSlice<R> {
  const low = firstAt(rows, range.from);
  const high = Math.max(low, firstAt(rows, range.until));
  const tests: ((row: R) => boolean)[] = filter ? [filter] : [];
  const { flapping, replicaLag, sortJitter } = traits;
  if (flapping) {
    tests.push((row) => !flaps(row, traits, seed) || shareOf(row.id, `flap${seed}/${request}`) < 0.5);
  }
  if (replicaLag && shareOf(`${request}`, `replica${seed}`) < 0.5) {
    tests.push(({ at, arrivedAt = at }) => arrivedAt <= now - replicaLag);
  }
  if (tests.length === 0 && !sortJitter) return { rows, low, high };
  const kept = rows.slice(low, high).filter((row) => tests.every((test) => test(row)));
  if (sortJitter) {
    const key = ({ id, at }: R): number => at + (shareOf(id, `jitter${seed}`) - 0.5) * 2 * sortJitter;
    kept.sort((a, b) => key(a) - key(b));
  }
  return { rows: kept, low: 0, high: kept.length };
}

/** Whether the row is a flapping one. */
export const flaps = ({ id }: Listed, { flapping = 0 }: Traits, seed: number): boolean =>
  flapping > 0 && shareOf(id, `flaps${seed}`) < flapping;

type Rank = ((row: Listed) => number) | undefined;

/** The sort key among equal instants, if it is not the stable order. */
function tieRank(traits: Traits, { seed, request }: Moment, page: number, limit: number): Rank {
  const salt = traits.pagedTies
    ? `page${seed}/${page}/${limit}`
    : traits.shuffleTies
      ? `tie${seed}/${request}`
      : undefined;
  return salt === undefined ? undefined : ({ id }) => shareOf(id, salt);
}

function slice<R extends Listed>(
  { rows, low, high }: SortedSlice<R>,
  place: { offset: number; limit: number; ascending: boolean },
  traits: Traits,
  rank: Rank,
): R[] {
  const { limit, ascending } = place;
  let { offset } = place;
  const total = high - low;
  if (offset >= total) {
    if (traits.lastPage !== 'repeat' || total === 0) return [];
    offset = Math.floor((total - 1) / limit) * limit;
  }
  const size = Math.min(limit, total - offset);
  // In descending order the page is the mirror of an ascending slice, counted from the end.
  const from = ascending ? low + offset : high - offset - size;
  const page = rank ? rankedSlice({ rows, low, high }, from, from + size, rank) : rows.slice(from, from + size);
  return ascending ? page : page.reverse();
}

/** Ties may extend beyond the page: every group of equal instants that the slice touches is sorted whole, then cut. */
function rankedSlice<R extends Listed>({ rows, low, high }: SortedSlice<R>, from: number, to: number, rank: Rank): R[] {
  let first = from;
  let last = to;
  while (first > low && rows[first - 1]?.at === rows[from]?.at) first -= 1;
  while (last < high && rows[last]?.at === rows[to - 1]?.at) last += 1;
  const group = rows.slice(first, last).map((row, index) => ({ row, index, key: rank?.(row) ?? 0 }));
  group.sort((a, b) => (a.row.at === b.row.at ? a.key - b.key : a.index - b.index));
  return group.slice(from - first, to - first).map(({ row }) => row);
}

/** Refuses or truncates answers that are too large. */
function withinSize<R>(rows: R[], traits: Traits, { bytes = () => 1000 }: RowFacts<R>): R[] {
  const { refuseAbove, maxBytes, cutBytes } = traits;
  if (refuseAbove) {
    const { word, number } = wordAndNumber(refuseAbove, 500);
    if (rows.length > number) refuse(word, `the response holds more than ${number} events`);
  }
  if (maxBytes === undefined && cutBytes === undefined) return rows;
  let size = 2;
  for (const [index, row] of rows.entries()) {
    size += bytes(row) + (index > 0 ? 1 : 0);
    if (cutBytes !== undefined && size > cutBytes && index > 0) return rows.slice(0, index);
    if (maxBytes !== undefined && size > maxBytes) refuse(500, `the response is larger than ${maxBytes} bytes`);
  }
  return rows;
}

interface Disturbance<R> {
  rows: readonly R[];
  range: TimeRange;
  traits: Traits;
  moment: Moment;
  facts: RowFacts<R>;
  ascending: boolean;
  limit: number;
}

/** Distorts a finished page: repeated rows, rows from other ranges, another order. */
function distorted<R extends Listed>(
  page: R[],
  { rows, range, traits, moment, facts, ascending, limit }: Disturbance<R>,
): R[] {
  const { partial, dropLast, repeatRows, strays, sortOrder } = traits;
  const { seed, request } = moment;
  let shown = page;
  const chance = (salt: string): number => shareOf(`${request}`, `${salt}${seed}`);
  if (dropLast && page.length >= limit) shown = shown.slice(0, -1);
  if (partial && chance('partial') < partial) shown = shown.slice(0, Math.floor(chance('part') * shown.length));
  if (repeatRows) {
    shown = shown.flatMap((row) => (shareOf(row.id, `repeat${seed}/${request}`) < repeatRows ? [row, row] : [row]));
  }
  if (strays && chance('stray') < strays) {
    const isVisible = (row: R): boolean => !facts.hidden?.(row) && !facts.poison?.(row);
    const outside = rows.filter((row) => (row.at < range.from || row.at >= range.until) && isVisible(row));
    const stray = outside[Math.floor(chance('which') * outside.length)];
    if (stray) {
      // Half of them are inserted in order of time, so that the answer still looks sorted.
      const inLine = shown.findIndex(({ at }) => (ascending ? at > stray.at : at < stray.at));
      const anywhere = Math.floor(chance('where') * (shown.length + 1));
      shown = shown.toSpliced(chance('inLine') < 0.5 ? (inLine < 0 ? shown.length : inLine) : anywhere, 0, stray);
    }
  }
  if (sortOrder === 'reversed') return shown.toReversed();
  if (sortOrder !== 'mixed') return shown;
  return shown.toSorted((a, b) => shareOf(a.id, `mixed${seed}/${request}`) - shareOf(b.id, `mixed${seed}/${request}`));
}
