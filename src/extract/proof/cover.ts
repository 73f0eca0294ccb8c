import type { Instant } from '../../model/instant.ts';
import { DAY_MS, HOUR_MS } from '../../model/window.ts';
import { CLOCKS_MS, type Observation, type PageQuery, SHOWN_MS, type Stamped, WIDENED_MS } from './answer.ts';

/**
 * RULE cover. One question never shows that a time is empty: services truncate long ranges, round bounds, and answer `[]` by mistake. It
 * takes a long question, beyond any rounding, that shows the rows beside the silence and none in it; and short ones that cover the silence
 * without a hole, each no longer than a range that this service was seen to answer. The end of a stream, its beginning, a silence between
 * two rows and an empty stream are all cases of this rule.
 */

/** A summary of an answer, without its rows. */
export interface ShownPage {
  readonly query: PageQuery;
  readonly count: number;
  readonly answeredAt: Instant;
  /** Its oldest and its newest row; undefined if it shows none. */
  readonly first: Stamped | undefined;
  readonly newest: Stamped | undefined;
  /** The rows tied with the oldest, and with the newest, if the page has room left. */
  readonly atFirst?: string | undefined;
  readonly atNewest?: string | undefined;
  /** All its rows share one instant, and a later page of the same question showed older ones: so the answer is newest first. */
  readonly isNewestFirst?: boolean;
}

/** A range that no service truncates or has forgotten. */
export const NARROW_MS = 6 * HOUR_MS;

/** Longer than any rounding of a bound: hours, days, weeks and months in any time zone. */
export const APART_MS = 40 * DAY_MS;

/** This much time since the newest row needs no covering. */
export const QUIET_MS = HOUR_MS;

/** This many short questions are enough for a silence of any length. */
const MOST_QUESTIONS = 6;

export function shownPage({ query, count, answeredAt }: Observation, sorted: readonly Stamped[]): ShownPage {
  // Copies id and time only: the summary must not keep the whole row in memory.
  const [first, newest] = [sorted[0], sorted.at(-1)].map((row) => row && { id: row.id, at: row.at });
  const idsAt = (row: Stamped | undefined): string | undefined =>
    row && count * 2 <= query.limit ? idsOf(sorted.filter(({ at }) => at === row.at)) : undefined;
  return { query, count, answeredAt, first, newest, atFirst: idsAt(first), atNewest: idsAt(newest) };
}

const idsOf = (rows: readonly Stamped[]): string =>
  rows
    .map(({ id }) => id)
    .sort()
    .join('\n');

/** This many questions with room left must show the same rows of an instant, in both orders: pages may be cut below their limit. */
const SAME_ROWS = 3;

/** Whether all rows of an instant, the oldest or the newest of a page, are known. */
export function isInstantSeen(pages: readonly ShownPage[], at: Instant): boolean {
  const shown = pages.flatMap(({ query: { order }, first, newest, atFirst, atNewest }) => {
    const ids = first?.at === at ? atFirst : newest?.at === at ? atNewest : undefined;
    return ids === undefined ? [] : [{ order, ids }];
  });
  const orders = new Set(shown.map(({ order }) => order));
  return shown.length >= SAME_ROWS && orders.size === 2 && shown.every(({ ids }) => ids === shown[0]?.ids);
}

/** How much of the past a question asks for. */
export const lengthOf = ({ query: { start, end }, answeredAt }: Pick<ShownPage, 'query' | 'answeredAt'>): number =>
  Math.min(end, answeredAt) - start;

/**
 * How long a short question may be: as long as a range that was seen to be answered; further away from the rows beside the silence, twice
 * as long as what is covered already, up to a sixth of the silence.
 */
export const longestQuestion = (silence: Span, seenMs: number, coveredMs: number): number =>
  Math.max(NARROW_MS, seenMs, Math.min(2 * coveredMs, (silence.to - silence.from) / MOST_QUESTIONS));

/** A time without rows; `Side` is the side with the row at which the short questions begin. */
export interface Span {
  readonly from: Instant;
  readonly to: Instant;
}

export type Side = 'from' | 'to';

/** When a question shows no row: before its oldest (oldest first), after its newest (newest first), or both (room left on the page). */
function quietOf(page: ShownPage): Span[] {
  const { query, count, first, newest } = page;
  const { order, start, end } = query;
  // Services may hide a row after counting it: then a page of one row is empty although others follow.
  if (!first || !newest) return count === 0 && query.limit > 1 ? [{ from: start, to: end }] : [];
  // Rows of one instant cannot show by themselves in which order they come.
  if (isOneInstant(page) && !hasRoom(page) && !page.isNewestFirst) return [];
  return [
    ...(order === 'asc' || hasRoom(page) ? [{ from: start, to: first.at }] : []),
    ...(order === 'desc' || hasRoom(page) ? [{ from: newest.at, to: end }] : []),
  ];
}

/** A row is known where a question shows none: its bounds were rounded, or rows are hidden from it. Its silence is no evidence. */
export const isRefuted = (page: ShownPage, isKnown: (after: Instant, before: Instant) => boolean): boolean =>
  quietOf(page).some(({ from, to }) => isKnown(from, to - SHOWN_MS));

/** A page that is at most half full shows all rows of its range. */
export const hasRoom = ({ count, query }: ShownPage): boolean => count * 2 <= query.limit;

/** Whether short questions cover a silence without a hole, its far side separately. */
export const isCovered = (
  pages: readonly ShownPage[],
  silence: Span,
  seenMs: number,
  side: Side = 'from',
  overlapMs = 0,
): boolean =>
  // An end is not part of its range.
  pages.some((page) => isAtFarSide(page, silence, side)) &&
  coveredUntil(pages, silence, seenMs, side, overlapMs) >= silence.to - 1;

/** How far short questions cover a silence without a hole. Services may round bounds: without a long question they have to overlap. */
export function coveredUntil(
  pages: readonly ShownPage[],
  silence: Span,
  seenMs: number,
  side: Side = 'from',
  overlapMs = 0,
): Instant {
  const isShort = (page: ShownPage): boolean => {
    const { start, end } = page.query;
    const covered = side === 'from' ? start - silence.from : silence.to - end;
    return lengthOf(page) <= longestQuestion(silence, seenMs, covered) + CLOCKS_MS;
  };
  const quiet = pages.filter(isShort).flatMap(quietOf);
  let at = silence.from;
  for (const { from, to } of quiet.sort((a, b) => a.from - b.from)) {
    // If the rows beside the silence fill a page, the first question begins right after the second that they share.
    if (from <= Math.max(silence.from + SHOWN_MS, at - overlapMs)) at = Math.max(at, to);
  }
  return at;
}

/** Whether a short question for the time of a known row shows nothing there: a row that only long ones leave out is not gone. */
export const isGone = (pages: readonly ShownPage[], at: Instant): boolean =>
  pages.some((page) => lengthOf(page) <= NARROW_MS && quietOf(page).some(({ from, to }) => from < at && at < to));

/** Services may store recent and old rows apart: at the far end of a silence, one question must ask for nothing else. */
function isAtFarSide(page: ShownPage, { from, to }: Span, side: Side): boolean {
  if (to - from <= NARROW_MS) return true;
  if (lengthOf(page) > NARROW_MS + CLOCKS_MS) return false;
  const { start, end } = page.query;
  // The present was asked for a little earlier if answers are slow.
  const until = Math.min(to, page.answeredAt);
  return side === 'from'
    ? until >= to - QUIET_MS && start >= until - NARROW_MS - CLOCKS_MS && end >= to
    : start <= from && end <= from + NARROW_MS + CLOCKS_MS;
}

/** Page sizes so different that no shift of a few rows makes one page begin where the other does. */
export const haveOtherEdges = (a: ShownPage, b: ShownPage): boolean =>
  Math.max(a.query.limit, b.query.limit) >= 2 * Math.min(a.query.limit, b.query.limit);

export const isOneInstant = ({ first, newest }: ShownPage): boolean => first?.at === newest?.at;

const isFull = ({ count, query }: ShownPage): boolean => count >= query.limit;

/** Whether a question reaches the present, so that its newest row may be the newest of all. */
export const reachesNow = ({ query, answeredAt }: Pick<ShownPage, 'query' | 'answeredAt'>): boolean =>
  query.end >= answeredAt - CLOCKS_MS;

/**
 * Whether other questions show the same newest row as a newest-first question. A list may come from a stale copy in one order and not in
 * the other, and pages may be counted from 0: so oldest first, from near that row, with another limit. If such a page does not reach it,
 * because more rows share its time or day than fit, then newest first, with another start and limit.
 */
export function isSeenNewest(candidate: ShownPage, pages: readonly ShownPage[]): boolean {
  const { newest, isNewestFirst = false } = candidate;
  if (!newest) return false;
  const others = pages.filter(
    (page) => reachesNow(page) && haveOtherEdges(page, candidate) && page.query.start <= newest.at,
  );
  const ascending = others.filter(({ query }) => query.order === 'asc');
  // A far-away start may be truncated as the candidate's was.
  const near = ascending.filter(({ query }) => query.start >= newest.at - NARROW_MS - WIDENED_MS);
  if (near.some((page) => !isFull(page) && page.newest?.at === newest.at)) return true;
  const isCrowded = near.some((page) => page.newest !== undefined && page.newest.at <= newest.at);
  if (!isCrowded || (isOneInstant(candidate) && !isNewestFirst)) return false;
  return others.some(
    ({ query, newest: shown }) =>
      query.order === 'desc' &&
      query.start !== candidate.query.start &&
      (shown?.id === newest.id || (isNewestFirst && shown?.at === newest.at)),
  );
}

/** Whether a later page of the same question ends with older rows. */
export function showsOrder(candidate: ShownPage, { query }: Observation, sorted: readonly Stamped[]): boolean {
  const isLater = query.order === 'desc' && query.page > 1 && query.limit === candidate.query.limit;
  const isSame = isLater && query.start === candidate.query.start && query.end === candidate.query.end;
  const [oldest, newest] = [sorted[0], sorted.at(-1)];
  return isSame && oldest !== undefined && newest?.at === candidate.newest?.at && oldest.at < (newest?.at ?? oldest.at);
}

/** Whether a long question's first row is the oldest of all: a short question that starts before it shows it first, too. */
export function isSeenFirst(long: ShownPage, pages: readonly ShownPage[], longest: number): boolean {
  const { first } = long;
  if (!first) return false;
  return pages.some(
    (page) =>
      page !== long &&
      page.query.order === 'asc' &&
      page.first?.at === first.at &&
      page.query.start < first.at &&
      haveOtherEdges(page, long) &&
      lengthOf(page) <= longest + CLOCKS_MS,
  );
}

/** Whether a question reaches further back than rounding explains, and to the end of a time. */
export const isLong = ({ query }: ShownPage, order: 'asc' | 'desc', { from, to }: Span): boolean =>
  query.order === order && query.start <= from - APART_MS && query.end >= to;

/** Without a long question: short ones showed the rows on both sides, and overlap by more than the rounding of bounds. */
export function isSilent(pages: readonly ShownPage[], silence: Span, mostRangeMs: number, isEnd: boolean): boolean {
  const isShown = (at: Instant): boolean => pages.some(({ first, newest }) => first?.at === at || newest?.at === at);
  const overlap = Math.min(WIDENED_MS, mostRangeMs / 4);
  return (
    isShown(silence.from) && (isEnd || isShown(silence.to)) && isCovered(pages, silence, mostRangeMs, 'from', overlap)
  );
}

/** The widest time between two rows at opposite ends of one question, asked oldest first and newest first. */
export function widestPair(pages: readonly ShownPage[]): number {
  const last = pages.at(-1);
  const pair = pages.find(
    ({ query }) =>
      query.order !== last?.query.order && query.start === last?.query.start && query.end === last?.query.end,
  );
  const [asc, desc] = last?.query.order === 'asc' ? [last, pair] : [pair, last];
  return (desc?.newest?.at ?? 0) - (asc?.first?.at ?? Number.POSITIVE_INFINITY);
}
