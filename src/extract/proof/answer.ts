import type { Instant } from '../../model/instant.ts';
import { DAY_MS } from '../../model/window.ts';

/** A question: one page of the rows between two bounds, in one order. */
export interface PageQuery {
  readonly order: 'asc' | 'desc';
  readonly start: Instant;
  readonly end: Instant;
  readonly page: number;
  readonly limit: number;
}

/** A row as the proof sees it. */
export interface Stamped {
  readonly id: string;
  readonly at: Instant;
}

/** One answer of the service. */
export interface Observation {
  readonly query: PageQuery;
  /** In the order of the answer. */
  readonly rows: readonly Stamped[];
  /** Records on the page, readable or not. */
  readonly count: number;
  /** Records of another stream among them. */
  readonly foreign?: number;
  /** The service's clock when it answered. */
  readonly answeredAt: Instant;
}

/** Services widen bounds to whole days, and days begin at different times around the world. */
export const WIDENED_MS = 2 * DAY_MS;

/** The assumed clock difference; the clock of an answer has whole seconds only. */
export const CLOCKS_MS = 60_000;

/** Services may show times in whole seconds while comparing them to the millisecond. */
export const SHOWN_MS = 1000;

/** The minimum page size for one outlier, and the rows per outlier allowed: more than one in fifty are not a few. */
const LEAST_ROWS_WITH_OUTLIER = 4;
const ROWS_PER_OUTLIER = 50;

/**
 * RULE order. The rows of an answer that are sorted as asked, oldest first; undefined if it is reversed or mixed, which proves nothing. A
 * few rows out of order (a garbled clock: 1970, 2099) are left out: they are stored like any other, and prove nothing.
 */
export function inOrder({ query, rows: all, answeredAt }: Omit<Observation, 'count'>): readonly Stamped[] | undefined {
  // A later page with more rows than asked for is not the page of that number. A first page may have extra rows from elsewhere.
  if (all.length > query.limit && query.page > 1) return undefined;
  const rows = withoutGarbled(all.length > query.limit ? all.slice(0, query.limit) : all, query);
  const oldestFirst = query.order === 'asc' ? rows : rows.toReversed();
  const sorted = longestSorted(oldestFirst);
  const outliers = rows.length - sorted.length;
  const allowed = rows.length < LEAST_ROWS_WITH_OUTLIER ? 0 : Math.max(1, Math.floor(rows.length / ROWS_PER_OUTLIER));
  if (outliers > allowed) return undefined;
  // With one row out of order a reversed page of ties looks nearly sorted.
  if (outliers > 0 && longestSorted(oldestFirst.toReversed()).length >= sorted.length) return undefined;
  // A future row is no edge either: nothing is proven there, and a garbled time would prove everything before it.
  const past = sorted.filter(({ at }) => at <= answeredAt + CLOCKS_MS);
  return withinReach(past, query);
}

/** No service is off by a year: a single such row among others has a garbled time, and does not count for their order. */
const YEAR_MS = 366 * DAY_MS;

function withoutGarbled(rows: readonly Stamped[], { start, end }: PageQuery): readonly Stamped[] {
  const others = rows.filter(({ at }) => at >= start - YEAR_MS && at <= end + YEAR_MS);
  return others.length === rows.length - 1 && others.length > 0 ? others : rows;
}

/**
 * RULE reach. Rows further outside the asked bounds than widening explains are no edges while others are nearer: at the edge of a page a
 * garbled time is in order too, and would prove everything up to there complete.
 */
function withinReach(sorted: readonly Stamped[], { start, end }: PageQuery): readonly Stamped[] {
  const near = sorted.filter(({ at }) => at >= start - WIDENED_MS && at <= end + WIDENED_MS);
  // A single row on one side of the bounds is not widening.
  const older = near.filter(({ at }) => at < start - SHOWN_MS);
  const newer = near.filter(({ at }) => at > end + SHOWN_MS);
  const outliers = [older, newer].flatMap((rows) => (rows.length === 1 && near.length > 1 ? rows : []));
  if (outliers.length > 0) return near.filter((row) => !outliers.includes(row));
  if (near.length > 0) return near;
  // If all are far away on one side, a bound was ignored; on both sides, the times are garbled.
  const isOneSided = sorted.every(({ at }) => at < start) || sorted.every(({ at }) => at > end);
  return isOneSided ? sorted : [];
}

/** The longest subsequence of rows that never goes back in time. Nearly every page is fully sorted and is returned unchanged. */
function longestSorted(rows: readonly Stamped[]): readonly Stamped[] {
  if (rows.every((row, i) => i === 0 || row.at >= (rows[i - 1]?.at ?? row.at))) return rows;
  /** For each length, the row with the smallest time that ends a sorted subsequence; for every row, its predecessor in one. */
  const ends: Stamped[] = [];
  const before = new Map<Stamped, Stamped | undefined>();
  for (const row of rows) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle]?.at ?? 0) <= row.at) low = middle + 1;
      else high = middle;
    }
    before.set(row, ends[low - 1]);
    ends[low] = row;
  }
  const sorted: Stamped[] = [];
  for (let row = ends.at(-1); row; row = before.get(row)) sorted.push(row);
  return sorted.reverse();
}

/** The open interval between two instants. */
export interface Interval {
  readonly after: Instant;
  readonly before: Instant;
}

/**
 * RULE between. Every visible row strictly between the oldest and the newest row of an answer is on it. Rows tied with an edge are not
 * proven by an answer that ends there. Nor are those before its start, where a later row is shown in whole seconds.
 */
export function provenBy(sorted: readonly Stamped[], start = Number.NEGATIVE_INFINITY): Interval | undefined {
  const [oldest, newest] = [sorted[0], sorted.at(-1)];
  if (!oldest || !newest) return undefined;
  const after = oldest.at > start - SHOWN_MS ? Math.max(oldest.at, start) : oldest.at;
  return after < newest.at ? { after, before: newest.at } : undefined;
}

export const sameRows = (a: Pick<Observation, 'rows'>, b: Pick<Observation, 'rows'>): boolean =>
  a.rows.length === b.rows.length && a.rows.every(({ id }, i) => id === b.rows[i]?.id);
