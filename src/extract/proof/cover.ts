import type { Instant } from '../../model/instant.ts';
import { DAY_MS, HOUR_MS } from '../../model/window.ts';
import { CLOCKS_MS, type Observation, type PageQuery, SHOWN_MS, type Stamped, WIDENED_MS } from './answer.ts';

/**
 * RULE cover. That nothing is there is never shown by one question: long ranges are cut, bounds are rounded, and `[]` comes by chance. It takes a long
 * question, which no rounding explains, that shows the rows beside the silence and none in it; and short ones that cover the silence without a
 * hole, each no longer than a range that this server was seen to answer. The end of a stream, its beginning, a silence
 * between two rows and a stream without any row are all this one rule.
 */

/** The first page of a question, without its rows. */
export interface Look {
  readonly query: PageQuery;
  readonly count: number;
  readonly answeredAt: Instant;
  /** Its oldest and its newest row; none where nothing shows. */
  readonly first: Stamped | undefined;
  readonly newest: Stamped | undefined;
  /** The rows that share the time of the oldest, and of the newest, where the page has room left. */
  readonly atFirst?: string | undefined;
  readonly atNewest?: string | undefined;
  /** All its rows share one instant, and a later page of the same question showed older ones: so it does come newest first. */
  readonly isNewestFirst?: boolean;
}

/** A range that no service cuts short or has forgotten. */
export const NARROW_MS = 6 * HOUR_MS;

/** Longer than any rounding of a bound: hours, days, weeks and months in any zone. */
export const APART_MS = 40 * DAY_MS;

/** So much time since the newest row need not be covered by itself. */
export const QUIET_MS = HOUR_MS;

/** However long a silence is, so many short questions are enough. */
const MOST_LOOKS = 6;

export function lookOf({ query, count, answeredAt }: Observation, sorted: readonly Stamped[]): Look {
  // What is remembered of a row is not all that it holds.
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

/** So many questions, each with room left on its page, show the same rows of an instant, in both orders: a page may be cut short of its limit. */
const SAME_ROWS = 3;

/** Whether all rows of an instant, the oldest or the newest of a page, are known. */
export function isInstantSeen(looks: readonly Look[], at: Instant): boolean {
  const shown = looks.flatMap(({ query: { order }, first, newest, atFirst, atNewest }) => {
    const ids = first?.at === at ? atFirst : newest?.at === at ? atNewest : undefined;
    return ids === undefined ? [] : [{ order, ids }];
  });
  const orders = new Set(shown.map(({ order }) => order));
  return shown.length >= SAME_ROWS && orders.size === 2 && shown.every(({ ids }) => ids === shown[0]?.ids);
}

/** How much of the past a question asks for. */
export const lengthOf = ({ query: { start, end }, answeredAt }: Pick<Look, 'query' | 'answeredAt'>): number =>
  Math.min(end, answeredAt) - start;

/**
 * How long a short question may be: as long as a range that was seen to be answered; further away from the rows beside the silence, twice as long as what is
 * covered already, up to a sixth of it all.
 */
export const longestLook = (silence: Span, seenMs: number, coveredMs: number): number =>
  Math.max(NARROW_MS, seenMs, Math.min(2 * coveredMs, (silence.to - silence.from) / MOST_LOOKS));

/** A time without rows, and on which side of it the row is that the short questions begin at. */
export interface Span {
  readonly from: Instant;
  readonly to: Instant;
}

export type Side = 'from' | 'to';

/** The time in which a question shows nothing: before its oldest row, oldest first; behind its newest, newest first; both, where the page has room left. */
function quietOf(look: Look): Span[] {
  const { query, count, first, newest } = look;
  const { order, start, end } = query;
  // A row may be hidden after it was counted: then a page of one row is empty although others follow.
  if (!first || !newest) return count === 0 && query.limit > 1 ? [{ from: start, to: end }] : [];
  // In which order the rows of one instant come cannot be told by themselves.
  if (isOneInstant(look) && !hasRoom(look) && !look.isNewestFirst) return [];
  return [
    ...(order === 'asc' || hasRoom(look) ? [{ from: start, to: first.at }] : []),
    ...(order === 'desc' || hasRoom(look) ? [{ from: newest.at, to: end }] : []),
  ];
}

/** A row is known where a question shows nothing: its bounds were rounded, or rows are hidden from it. It says nothing of its silence. */
export const isRefuted = (look: Look, isKnown: (after: Instant, before: Instant) => boolean): boolean =>
  quietOf(look).some(({ from, to }) => isKnown(from, to - SHOWN_MS));

/** A page that is less than half full shows all rows of its range. */
export const hasRoom = ({ count, query }: Look): boolean => count * 2 <= query.limit;

/** Whether short questions cover a silence without a hole, its far side by itself. */
export const isCovered = (
  looks: readonly Look[],
  silence: Span,
  seenMs: number,
  side: Side = 'from',
  overlapMs = 0,
): boolean =>
  // An end is not part of its range.
  looks.some((look) => isAtFarSide(look, silence, side)) &&
  coveredUntil(looks, silence, seenMs, side, overlapMs) >= silence.to - 1;

/** How far short questions cover a silence without a hole. Bounds may be rounded: without a long question they have to overlap. */
export function coveredUntil(
  looks: readonly Look[],
  silence: Span,
  seenMs: number,
  side: Side = 'from',
  overlapMs = 0,
): Instant {
  const isShort = (look: Look): boolean => {
    const { start, end } = look.query;
    const covered = side === 'from' ? start - silence.from : silence.to - end;
    return lengthOf(look) <= longestLook(silence, seenMs, covered) + CLOCKS_MS;
  };
  const quiet = looks.filter(isShort).flatMap(quietOf);
  let at = silence.from;
  for (const { from, to } of quiet.sort((a, b) => a.from - b.from)) {
    // Where the rows beside the silence fill a page, the first question begins right behind the second that they share.
    if (from <= Math.max(silence.from + SHOWN_MS, at - overlapMs)) at = Math.max(at, to);
  }
  return at;
}

/** Whether a short question, which asks for the time of a row that was seen, shows nothing there: what long ones leave out is not gone. */
export const isGone = (looks: readonly Look[], at: Instant): boolean =>
  looks.some((look) => lengthOf(look) <= NARROW_MS && quietOf(look).some(({ from, to }) => from < at && at < to));

/** Recent rows and old ones may be kept apart: at the end of a silence that is far from the row, a question asks for nothing else. */
function isAtFarSide(look: Look, { from, to }: Span, side: Side): boolean {
  if (to - from <= NARROW_MS) return true;
  if (lengthOf(look) > NARROW_MS + CLOCKS_MS) return false;
  const { start, end } = look.query;
  // What lies at the present was asked for a little earlier, where answers take their time.
  const until = Math.min(to, look.answeredAt);
  return side === 'from'
    ? until >= to - QUIET_MS && start >= until - NARROW_MS - CLOCKS_MS && end >= to
    : start <= from && end <= from + NARROW_MS + CLOCKS_MS;
}

/** Pages of such different sizes that no shift of a few rows makes one begin where the other does. */
export const haveOtherEdges = (a: Look, b: Look): boolean =>
  Math.max(a.query.limit, b.query.limit) >= 2 * Math.min(a.query.limit, b.query.limit);

export const isOneInstant = ({ first, newest }: Look): boolean => first?.at === newest?.at;

const isFull = ({ count, query }: Look): boolean => count >= query.limit;

/** Whether a question reaches the present, so that its newest row may be the newest of all. */
export const reachesNow = ({ query, answeredAt }: Pick<Look, 'query' | 'answeredAt'>): boolean =>
  query.end >= answeredAt - CLOCKS_MS;

/**
 * Whether other questions show the same newest row as one for the newest rows first. A list may come from a stale copy in one order and not in the other,
 * and pages may be counted from nought: so oldest first, from near that row, with another limit. Where such a page does not reach it, because more rows share its
 * time or its day than fit, newest first, with another start and limit.
 */
export function isSeenNewest(candidate: Look, looks: readonly Look[]): boolean {
  const { newest, isNewestFirst = false } = candidate;
  if (!newest) return false;
  const others = looks.filter(
    (look) => reachesNow(look) && haveOtherEdges(look, candidate) && look.query.start <= newest.at,
  );
  const ascending = others.filter(({ query }) => query.order === 'asc');
  // A start far away may be cut as the candidate's was.
  const near = ascending.filter(({ query }) => query.start >= newest.at - NARROW_MS - WIDENED_MS);
  if (near.some((look) => !isFull(look) && look.newest?.at === newest.at)) return true;
  const isCrowded = near.some((look) => look.newest !== undefined && look.newest.at <= newest.at);
  if (!isCrowded || (isOneInstant(candidate) && !isNewestFirst)) return false;
  return others.some(
    ({ query, newest: shown }) =>
      query.order === 'desc' &&
      query.start !== candidate.query.start &&
      (shown?.id === newest.id || (isNewestFirst && shown?.at === newest.at)),
  );
}

/** Whether a later page of the same question ends with older rows. */
export function tellsOrder(candidate: Look, { query }: Observation, sorted: readonly Stamped[]): boolean {
  const isLater = query.order === 'desc' && query.page > 1 && query.limit === candidate.query.limit;
  const isSame = isLater && query.start === candidate.query.start && query.end === candidate.query.end;
  const [oldest, newest] = [sorted[0], sorted.at(-1)];
  return isSame && oldest !== undefined && newest?.at === candidate.newest?.at && oldest.at < (newest?.at ?? oldest.at);
}

/** The oldest row of all history from an instant on: a long question shows it first, and a short one that ends right behind it. */
export function isSeenFirst(long: Look, looks: readonly Look[], longest: number): boolean {
  const { first } = long;
  if (!first) return false;
  return looks.some(
    (look) =>
      look !== long &&
      look.query.order === 'asc' &&
      look.first?.at === first.at &&
      look.query.start < first.at &&
      haveOtherEdges(look, long) &&
      lengthOf(look) <= longest + CLOCKS_MS,
  );
}

/** Whether a question reaches further back than any rounding explains, and to the end of a time. */
export const isLong = ({ query }: Look, order: 'asc' | 'desc', { from, to }: Span): boolean =>
  query.order === order && query.start <= from - APART_MS && query.end >= to;

/** Without a long question: the rows on both sides were shown by short ones, which overlap further than bounds are rounded. */
export function isSilent(looks: readonly Look[], silence: Span, mostRangeMs: number, isEnd: boolean): boolean {
  const isShown = (at: Instant): boolean => looks.some(({ first, newest }) => first?.at === at || newest?.at === at);
  const overlap = Math.min(WIDENED_MS, mostRangeMs / 4);
  return (
    isShown(silence.from) && (isEnd || isShown(silence.to)) && isCovered(looks, silence, mostRangeMs, 'from', overlap)
  );
}

/** Oldest first and newest first, one question shows rows at both of its ends: so far apart are they. */
export function widestPair(looks: readonly Look[]): number {
  const last = looks.at(-1);
  const pair = looks.find(
    ({ query }) =>
      query.order !== last?.query.order && query.start === last?.query.start && query.end === last?.query.end,
  );
  const [asc, desc] = last?.query.order === 'asc' ? [last, pair] : [pair, last];
  return (desc?.newest?.at ?? 0) - (asc?.first?.at ?? Number.POSITIVE_INFINITY);
}
