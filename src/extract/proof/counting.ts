import type { Instant } from '../../model/instant.ts';
import {
  type Interval,
  inOrder,
  type Observation,
  type PageQuery,
  provenBy,
  SHOWN_MS,
  type Stamped,
  sameRows,
} from './answer.ts';

/** Rules for what no single answer can show: rows of one instant that do not fit a page, and a row that no page can show. */

/** One pass through the rows of one instant by page numbers: how many positions they take, and which rows were there. */
export interface Count {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  readonly positions: number;
  readonly ids: ReadonlySet<string>;
  /** The service's clock at the first of its answers. */
  readonly answeredAt: Instant;
  /** No row shows after the instant, so that only a page that is not full ends the pass. */
  readonly isOpen: boolean;
}

/** This many empty pages after the last row mean that no row is hidden there. */
export const EMPTY_BEHIND = 3;

/**
 * RULE count. Consecutive full pages, from where an instant begins to a row on its far side, show as many positions as the instant has
 * rows. The rows there may differ from page to page. The pass begins after a row on the near side, or with the first page of a question
 * that begins before the instant.
 */
export function countOf(pages: readonly Observation[], at: Instant): Count | undefined {
  const [first, last] = [pages[0], pages.at(-1)];
  if (!first || !last || !pages.every((page, i) => followsOn(page, pages[i - 1]))) return undefined;
  const full = pages.filter(isFull).length;
  // Services can hide rows after counting them: a page that is not full is the last only if those after it are empty.
  const isEnded = pages.length > full + EMPTY_BEHIND && pages.slice(full + 1).every(({ count }) => count === 0);
  if (!pages.slice(0, full).every(isFull) || (pages.length > full + 1 && !isEnded)) return undefined;
  const sortedPages = pages.map(inOrder);
  if (sortedPages.some((sorted, i) => sorted?.length !== pages[i]?.rows.length)) return undefined;
  const { order, page, start, end, limit } = first.query;
  const isNear = (row: Stamped): boolean => (order === 'asc' ? row.at < at : row.at > at);
  const isFar = (row: Stamped): boolean => (order === 'asc' ? row.at > at : row.at < at);
  const beginsBefore = page === 1 && (order === 'asc' ? start < at : end >= at + SHOWN_MS);
  if (!first.rows.some(isNear) && !beginsBefore) return undefined;
  const tied = pages.flatMap(({ rows }) => rows.filter((row) => row.at === at));
  if (tied.length === 0) return undefined;
  const isOpen = !pages.some(({ rows }) => rows.some(isFar));
  if (isOpen && !isEnded) return undefined;
  const ids = new Set(tied.map(({ id }) => id));
  return { limit, order, positions: tied.length, ids, isOpen, answeredAt: first.answeredAt };
}

const followsOn = (
  { query: { page, limit, order, start, end } }: Observation,
  last: Observation | undefined,
): boolean =>
  !last ||
  (page === last.query.page + 1 &&
    limit === last.query.limit &&
    order === last.query.order &&
    start === last.query.start &&
    end === last.query.end);

/**
 * RULE ties. All rows of an instant that do not fit a page are known when two groups of passes, with different page edges, each found as
 * many distinct rows as positions, and the same ones. Equal passes alone prove nothing: an order that depends on page and limit repeats
 * itself. If no row shows after the instant, the passes must come from both sides, and the stream must be known to end there (`isLast`).
 */
export function allTiesSeen(passes: readonly Count[], isLast: boolean): boolean {
  const positions = passes.at(-1)?.positions;
  const since = passes.findLastIndex((pass) => pass.positions !== positions) + 1;
  const groups: Group[] = [];
  let group = newGroup();
  for (const { limit, order, ids, isOpen } of passes.slice(since)) {
    // Two groups that share a limit, or have one that divides another, would share page edges.
    if (
      (isOpen && !isLast) ||
      groups.some(({ limits }) => [...limits].some((other) => other % limit === 0 || limit % other === 0))
    )
      continue;
    if (isOpen && groups.some(({ orders }) => orders.has(order))) continue;
    for (const id of ids) group.ids.add(id);
    group.limits.add(limit);
    group.orders.add(order);
    if (group.ids.size !== positions) continue;
    groups.push(group);
    group = newGroup();
  }
  const [one, other] = groups;
  return one !== undefined && other !== undefined && [...one.ids].every((id) => other.ids.has(id));
}

interface Group {
  ids: Set<string>;
  limits: Set<number>;
  orders: Set<string>;
}

const newGroup = (): Group => ({ ids: new Set(), limits: new Set(), orders: new Set() });

/** The answers and failures around a row that cannot be read. */
export interface Unreadable {
  /** The page that ends right before it, and the same page read again afterwards. */
  readonly before: readonly [Observation, Observation];
  /** The rows right before and right after it, each read alone. */
  readonly adjacent: readonly [Observation, Observation];
  /** The single-row pages between these two that failed with all retries, before and after these two were read. */
  readonly failed: readonly [readonly PageQuery[], readonly PageQuery[]];
  /** Consecutive pages that begin right after it, and all of them read again afterwards. */
  readonly behind: readonly Observation[];
  readonly behindAgain: readonly Observation[];
}

/**
 * RULE unreadable. A row failed alone, with all retries, before and after the rows on both sides of it were read, while nothing around it
 * moved. Then the answers before and after it are adjacent, with only that row between them.
 */
export function aroundUnreadable({ before, adjacent, failed, behind, behindAgain }: Unreadable): Interval | undefined {
  const [page, pageAgain] = before;
  const [left, right] = adjacent;
  const [next] = behind;
  if (!next) return undefined;
  const first = positionOf(left) + 1;
  const end = positionOf(right);
  const wanted = Array.from({ length: end - first }, (_, i) => first + i);
  const allFailed = failed.every(
    (queries) =>
      queries.length === wanted.length &&
      queries.every((q, i) => q.limit === 1 && q.page - 1 === wanted[i] && isOneQuestion(q, page.query)),
  );
  const endsThere = page.query.page * page.query.limit === first && isFull(page);
  const beginsThere = (next.query.page - 1) * next.query.limit === end;
  const adjacentShow = isFull(left) && isFull(right) && left.query.limit === 1 && right.query.limit === 1;
  const atRest =
    sameRows(page, pageAgain) &&
    behind.length === behindAgain.length &&
    behind.every((each, i) => sameRows(each, behindAgain[i] ?? { rows: [] })) &&
    page.rows.at(-1)?.id === left.rows[0]?.id &&
    next.rows[0]?.id === right.rows[0]?.id;
  const sortedPages = [page, ...behind].map(inOrder);
  const consecutive = behind.every(
    (each, i) => i === 0 || followsOn(each, behind[i - 1]) || followsPosition(each, behind[i - 1]),
  );
  if (wanted.length === 0 || !allFailed || !endsThere || !beginsThere || !adjacentShow || !atRest || !consecutive)
    return undefined;
  if (behind.slice(0, -1).some((each) => !isFull(each)) || sortedPages.some((sorted) => sorted === undefined))
    return undefined;
  const rows = [page, ...behind].flatMap((each) => [...each.rows]);
  if (rows.some(({ at }, i) => at < (rows[i - 1]?.at ?? at))) return undefined;
  if (new Set(rows.map(({ id }) => id)).size < rows.length) return undefined;
  return provenBy(sortedPages.flatMap((sorted) => sorted ?? []));
}

const isOneQuestion = (a: PageQuery, b: PageQuery): boolean =>
  a.order === b.order && a.start === b.start && a.end === b.end;
const positionOf = ({ query }: Observation): number => (query.page - 1) * query.limit;
const isFull = ({ rows, count, query }: Observation): boolean => rows.length === query.limit && count === query.limit;
const followsPosition = (each: Observation, last: Observation | undefined): boolean =>
  last !== undefined && positionOf(each) === positionOf(last) + last.query.limit;
