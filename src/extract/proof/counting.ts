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

/** Rules for what no answer shows by itself: rows of one instant that do not fit a page, and a row that no page can show. */

/** A pass through the rows of one instant by page numbers: how many places they take, and which rows stood there. */
export interface Count {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  readonly places: number;
  readonly ids: ReadonlySet<string>;
  /** The service's clock at the first of its answers. */
  readonly answeredAt: Instant;
  /** Nothing shows behind the instant, so that a page which is not full is all there is to end the pass. */
  readonly isOpen: boolean;
}

/** So many empty pages behind the last row say that nothing is hidden there. */
export const EMPTY_BEHIND = 3;

/**
 * RULE count. Pages that follow each other, each full, from where an instant begins to a row on its far side, show as many places as the
 * instant has rows. Which rows stand there may differ from page to page. It begins behind a row on the near side, or with the first page of a
 * question that begins before it.
 */
export function countOf(pages: readonly Observation[], at: Instant): Count | undefined {
  const [first, last] = [pages[0], pages.at(-1)];
  if (!first || !last || !pages.every((page, i) => followsOn(page, pages[i - 1]))) return undefined;
  const full = pages.filter(isFull).length;
  // Rows can be hidden after they were counted: a page that is not full is the last only if those behind it are empty.
  const isEnded = pages.length > full + EMPTY_BEHIND && pages.slice(full + 1).every(({ count }) => count === 0);
  if (!pages.slice(0, full).every(isFull) || (pages.length > full + 1 && !isEnded)) return undefined;
  const lines = pages.map(inOrder);
  if (lines.some((sorted, i) => sorted?.length !== pages[i]?.rows.length)) return undefined;
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
  return { limit, order, places: tied.length, ids, isOpen, answeredAt: first.answeredAt };
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
 * RULE ties. The rows of an instant that do not fit a page are all there when two groups of passes, with other page edges, each found as many
 * distinct rows as there are places, and the same ones. Passes that only equal each other prove nothing: an order that depends on page and limit
 * repeats itself. Where nothing shows behind the instant the passes must come from both sides, and be known to have nothing behind (`isLast`).
 */
export function allTiesSeen(passes: readonly Count[], isLast: boolean): boolean {
  const places = passes.at(-1)?.places;
  const since = passes.findLastIndex((pass) => pass.places !== places) + 1;
  const groups: Group[] = [];
  let group = newGroup();
  for (const { limit, order, ids, isOpen } of passes.slice(since)) {
    // Two groups with a limit in common, or one that divides another, would share page edges.
    if (
      (isOpen && !isLast) ||
      groups.some(({ limits }) => [...limits].some((other) => other % limit === 0 || limit % other === 0))
    )
      continue;
    if (isOpen && groups.some(({ orders }) => orders.has(order))) continue;
    for (const id of ids) group.ids.add(id);
    group.limits.add(limit);
    group.orders.add(order);
    if (group.ids.size !== places) continue;
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

/** What was tried around a row that cannot be read. */
export interface Unreadable {
  /** The page that ends right before it, and the same page again afterwards. */
  readonly before: readonly [Observation, Observation];
  /** The rows right before and right behind it, each alone. */
  readonly neighbours: readonly [Observation, Observation];
  /** Pages of one row that failed with all retries: those between the neighbours, tried before and after these were read. */
  readonly failed: readonly [readonly PageQuery[], readonly PageQuery[]];
  /** Pages that begin right behind it and follow each other, and all of them again afterwards. */
  readonly behind: readonly Observation[];
  readonly behindAgain: readonly Observation[];
}

/**
 * RULE unreadable. A row that failed alone, with all retries, before and after its neighbours on both sides were read, while nothing
 * around it moved. Then the answers before and behind it are neighbours, with only that row between them.
 */
export function aroundUnreadable({
  before,
  neighbours,
  failed,
  behind,
  behindAgain,
}: Unreadable): Interval | undefined {
  const [page, pageAgain] = before;
  const [left, right] = neighbours;
  const [next] = behind;
  if (!next) return undefined;
  const first = placeOf(left) + 1;
  const end = placeOf(right);
  const wanted = Array.from({ length: end - first }, (_, i) => first + i);
  const allFailed = failed.every(
    (queries) =>
      queries.length === wanted.length &&
      queries.every((q, i) => q.limit === 1 && q.page - 1 === wanted[i] && isOneQuestion(q, page.query)),
  );
  const endsThere = page.query.page * page.query.limit === first && isFull(page);
  const beginsThere = (next.query.page - 1) * next.query.limit === end;
  const neighboursShow = isFull(left) && isFull(right) && left.query.limit === 1 && right.query.limit === 1;
  const atRest =
    sameRows(page, pageAgain) &&
    behind.length === behindAgain.length &&
    behind.every((each, i) => sameRows(each, behindAgain[i] ?? { rows: [] })) &&
    page.rows.at(-1)?.id === left.rows[0]?.id &&
    next.rows[0]?.id === right.rows[0]?.id;
  const lines = [page, ...behind].map(inOrder);
  const apart = behind.every(
    (each, i) => i === 0 || followsOn(each, behind[i - 1]) || followsPlace(each, behind[i - 1]),
  );
  if (wanted.length === 0 || !allFailed || !endsThere || !beginsThere || !neighboursShow || !atRest || !apart)
    return undefined;
  if (behind.slice(0, -1).some((each) => !isFull(each)) || lines.some((sorted) => sorted === undefined))
    return undefined;
  const rows = [page, ...behind].flatMap((each) => [...each.rows]);
  if (rows.some(({ at }, i) => at < (rows[i - 1]?.at ?? at))) return undefined;
  if (new Set(rows.map(({ id }) => id)).size < rows.length) return undefined;
  return provenBy(lines.flatMap((sorted) => sorted ?? []));
}

const isOneQuestion = (a: PageQuery, b: PageQuery): boolean =>
  a.order === b.order && a.start === b.start && a.end === b.end;
const placeOf = ({ query }: Observation): number => (query.page - 1) * query.limit;
const isFull = ({ rows, count, query }: Observation): boolean => rows.length === query.limit && count === query.limit;
const followsPlace = (each: Observation, last: Observation | undefined): boolean =>
  last !== undefined && placeOf(each) === placeOf(last) + last.query.limit;
