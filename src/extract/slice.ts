import { isDeepStrictEqual } from 'node:util';
import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { Window } from '../model/window.ts';
import { type PageResult, type Rejection, sortedRows } from './pages/received.ts';
import type { Certified } from './proof/certified.ts';

/** Part of a stream, with every row that was found there. */
export interface Slice {
  /** The window that this slice covers; the tail's slices have none until its end is known. */
  window: Window | undefined;
  /** The kernel's proof that the window is complete, once this slice and those before it are stored. */
  certified: Certified | undefined;
  /** These rows are all that the service shows of the window now. Not set if some were delivered with other slices. */
  whole?: boolean;
  /** Why the window could not be proven, or what was set aside. */
  note?: string;
  rows: readonly Row[];
  rejected: readonly Rejection[];
}

/** Rows delivered with no claim of completeness. */
export const delivered = (rows: readonly Row[], rejected: readonly Rejection[] = []): Slice => ({
  window: undefined,
  certified: undefined,
  rows,
  rejected,
});

/** Some services show whole seconds at one time and milliseconds at another: a row may seem to lie on either side of a boundary. */
const BLUR_MS = 1000;

/** The rows of a page between two instants, with a margin, and those with times out of order, which no other page may show. */
export function rowsOf(page: PageResult, after: Instant, before: Instant): Row[] {
  const [from, until] = [after - BLUR_MS, before + BLUR_MS];
  const sorted = new Set<unknown>(sortedRows(page));
  return page.rows.filter((row) => (sorted.size > 0 && !sorted.has(row)) || (row.at >= from && row.at < until));
}

/** Pages overlap: this many of the last ones are remembered, to deliver each row once. */
const PAGES_REMEMBERED = 4;

/** Everything in which two readings of an event can differ: if they do, the later one counts. */
export const contentOf = ({ at, values, extra }: Row): unknown => [at, values, extra];

/** Drops rows that recent pages already had with the same version. */
export function createUndelivered(versionOf: (row: Row) => unknown): (rows: readonly Row[]) => Row[] {
  const last: Array<Map<string, unknown>> = [];
  return (rows) => {
    const fresh = rows.filter((row) => {
      const before = last.findLast((page) => page.has(row.id));
      return !before || !isDeepStrictEqual(before.get(row.id), versionOf(row));
    });
    if (fresh.length > 0) last.push(new Map(fresh.map((row) => [row.id, versionOf(row)])));
    if (last.length > PAGES_REMEMBERED) last.shift();
    return fresh;
  };
}

/** Whether this page alone shows all rows of a proven window: any other row that a sink has there has vanished. */
export function isWhole(page: PageResult, { start, end }: Window): boolean {
  const own = ownEnd(page, start);
  return page.rejected.length === 0 && own !== undefined && own >= end;
}

/** The end of the time from `at` on that a page covers by itself, once proven: it must begin before `at`, by a row or by its question. */
export function ownEnd(page: PageResult, at: Instant): Instant | undefined {
  const { order, page: number, start } = page.query;
  const sorted = sortedRows(page);
  const [oldest, newest] = [sorted[0]?.at, sorted.at(-1)?.at];
  if (oldest === undefined || newest === undefined || newest <= at) return undefined;
  return oldest < at || (order === 'asc' && number === 1 && start < at) ? newest : undefined;
}
