import { shareOf } from './data/random.ts';
import { invalid } from './params.ts';
import type { Traits } from './traits.ts';

/** A row of a listing: an event at its time, a link at its creation. */
export interface Listed {
  readonly id: string;
  readonly at: number;
}

export interface PageQuery {
  /** A listing of links has no window. */
  start?: number;
  end?: number;
  ascending: boolean;
  page: number;
  limit: number;
}

export interface Moment {
  seed: number;
  /** The first request is 1. */
  request: number;
  /** By the service's clock. */
  now: number;
}

export interface RowFacts<R> {
  filter?: ((row: R) => boolean) | undefined;
  /** The size of its JSON. */
  bytes?: ((row: R) => number) | undefined;
}

/** The page for the query. `rows` are sorted by time, and stable among equal times. */
export function listPage<R extends Listed>(
  rows: readonly R[],
  { start = Number.NEGATIVE_INFINITY, end = Number.POSITIVE_INFINITY, ...query }: PageQuery,
  traits: Traits,
  { seed, request }: Moment,
  { filter }: RowFacts<R> = {},
): R[] {
  if (query.page < 1) invalid('page', 'must be at least 1');
  const limit = Math.min(query.limit, traits.limitCap ?? Number.POSITIVE_INFINITY);
  const ascending = query.ascending && traits.sortOrder !== 'ignored';
  const low = firstAt(rows, start);
  const high = Math.max(low, firstAt(rows, end));
  // Without filters the page is sliced directly from the rows: there may be millions.
  const found = filter ? rows.slice(low, high).filter(filter) : rows;
  const [first, last] = filter ? [0, found.length] : [low, high];
  const offset = (query.page - 1) * limit;
  const size = Math.max(0, Math.min(limit, last - first - offset));
  // In descending order the page is the mirror of an ascending slice, counted from the end.
  const from = ascending ? first + offset : last - offset - size;
  const page = found.slice(from, from + size);
  if (!ascending) page.reverse();
  const share = traits.repeatRows ?? 0;
  return page.flatMap((row) => (shareOf(row.id, `repeat${seed}/${request}`) < share ? [row, row] : [row]));
}

/** The index of the first row at or after the instant. */
export function firstAt(rows: readonly Listed[], at: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((rows[middle]?.at ?? Number.POSITIVE_INFINITY) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
