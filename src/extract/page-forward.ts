import type { Instant } from '../model/instant.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../model/window.ts';
import { coverSilence } from './limits/silence.ts';
import type { PageFetcher } from './pages/page-fetcher.ts';
import { firstStep, MOST_PAGES, nextStep, type Step } from './pages/page-steps.ts';
import type { PageRequest } from './pages/question.ts';
import { unlessRefused } from './pages/range-limits.ts';
import { type PageResult, sortedRows } from './pages/received.ts';
import { mayBeThisPage } from './pages/send.ts';
import { nextDay } from './profile.ts';
import { sameRows } from './proof/answer.ts';
import { APART_MS } from './proof/cover.ts';
import { countTiedRows } from './tied-rows.ts';

/** The outcome of an attempt to close the gap at an instant. The evidence knows whether it is closed. */
export type Forward =
  /** If the page began long before the requested start, reading continues by its page numbers. */
  | { kind: 'shown'; walk?: Walk }
  /** A full page of rows at or before the instant: later pages hold more. */
  | { kind: 'full'; walk: Walk }
  /** No row at or before the instant shows, only later ones; or none at all. */
  | { kind: 'ahead' | 'nothing' | 'unordered' }
  | { kind: 'failed'; request: PageRequest; error: Error };

/** A walk through numbered pages: the question, and the page that was read last. */
export interface Walk {
  order: 'asc' | 'desc';
  start: Instant;
  end?: Instant | undefined;
  step: Step;
  last: PageResult;
  /** Pages that start before this position fail. */
  low?: number;
  /** A later start shows nothing new before this instant. */
  stayUntil: Instant;
}

/** How much further back to start when an expected row does not show: services round bounds in undocumented ways. */
const STEPS_BACK_MS = [0, 1000, MINUTE_MS + 1000, HOUR_MS + 1000, 26 * HOUR_MS];
/** On pages this short, every row before the gap displaces one after it. */
const FEW_ROWS = 50;
/** Enough to find the newest row before an instant, since the first may be hidden. */
const FEW_BELOW = 10;
/** The number of rows from before the gap that should show on the page that closes it. */
const ROWS_BEFORE = 20;

/**
 * The chain: asks for page 1, oldest first, from a little before the gap. Page numbers do not grow, so rows that shift elsewhere cannot
 * break it. The page closes the gap if it shows a row from before it and one from after it.
 */
export async function* pageForward(fetcher: PageFetcher, at: Instant): AsyncGenerator<PageResult, Forward> {
  const { evidence, profile } = fetcher;
  const isClosed = (): boolean => evidence.through(at) !== undefined;
  const near = startNear(fetcher, at);
  const ahead: PageResult[] = [];
  let outcome: Forward = { kind: 'nothing' };

  if (yield* isBeginning(fetcher, at)) return { kind: 'shown' };
  // On an unknown service history may begin here; a service that widens starts shows no less from further back.
  const isNear = profile.isStartSeen && profile.granularity === 'exact';
  const order = evidence.seenBefore(at).length > 0 ? 'older' : isNear ? 'near' : 'beginning';
  if (yield* closeByShortRange(fetcher, near, isClosed)) return { kind: 'shown' };
  for (const request of questionsFor(near, at, order)) {
    const behind = ahead[0] && sortedRows(ahead[0])[0]?.at;
    if (request.order === 'desc' && behind === undefined) continue;
    let page: PageResult | undefined;
    try {
      const end = request.order === 'desc' && behind !== undefined ? Math.ceil(behind) + 1 : undefined;
      page =
        request.start === near.start
          ? await fetcher.fetch(request)
          : await fetcher.attempt({ ...request, end }).catch(unlessRefused);
    } catch (error) {
      if (!mayBeThisPage(error)) throw error;
      return { kind: 'failed', request, error };
    }
    if (!page) continue;
    yield page;
    if (isClosed()) {
      if (near.onRow) profile.startMarginMs += near.start - request.start;
      return shownBy(page, request);
    }
    if (page.admission.kind === 'unordered') return { kind: 'unordered' };
    const sorted = sortedRows(page);
    const newest = sorted.at(-1)?.at;
    if (request.order === 'desc' && behind !== undefined && sorted[0]?.at === newest && newest === behind) {
      // More rows share that time than fit a page: find the newest row before it, and read on from there.
      const older = { ...request, end: Math.ceil(behind) - 1, step: firstStep(FEW_BELOW) };
      const below = await fetcher.attempt(older).catch(unlessRefused);
      if (below) yield below;
      const row = below && sortedRows(below).at(-1)?.at;
      const across =
        row === undefined ? undefined : await fetcher.attempt({ order: 'asc', start: Math.floor(row) - 1 });
      if (across) yield across;
      // The rows of that earlier time fill a page as well: a pass through all of them ends with rows from both sides of the gap.
      const isFull = across && sortedRows(across).at(-1)?.at === row;
      if (!isClosed() && row !== undefined && isFull)
        yield* countTiedRows(fetcher, {
          at: row,
          orders: ['asc'],
          start: Math.floor(row) - 1,
          place: 0,
          isDone: isClosed,
        });
      if (isClosed()) return { kind: 'shown' };
    }
    if (newest === undefined || request.order === 'desc') continue;
    if (newest > at) {
      outcome = { kind: 'ahead' };
      if (yield* isBeginning(fetcher, at)) return shownBy(page, request);
      ahead.push(page);
    } else if (page.count * 2 <= page.query.limit) {
      if (outcome.kind !== 'ahead') return outcome;
    } else if (request.start >= at - WALK_FROM_MS) {
      return { kind: 'full', walk: walkFrom(page, request.start) };
    }
  }
  return outcome;

  function shownBy(page: PageResult, { order, start }: PageRequest): Forward {
    const isWidened = profile.granularity !== 'exact' && order === 'asc';
    return { kind: 'shown', ...(isWidened && { walk: walkFrom(page, start) }) };
  }

  function walkFrom(last: PageResult, start: Instant): Walk {
    const stayUntil = profile.granularity === 'exact' ? at : nextDay(profile, sortedRows(last)[0]?.at ?? at);
    return { order: 'asc', start, step: firstStep(Math.min(last.query.limit, profile.walkRows)), last, stayUntil };
  }
}

/** A question asks for at least this many pages' worth of rows, and for more if the last one did not fill a page. */
const LEAST_PAGES = 1.5;

/**
 * First asks for little more than a page holds: of ranges with many rows, services show samples or parts. Returns whether that closes the
 * gap. If it does not, or leaves the page half empty, the next range is longer.
 */
async function* closeByShortRange(
  fetcher: PageFetcher,
  { start, onRow }: { start: Instant; onRow: boolean },
  isClosed: () => boolean,
): AsyncGenerator<PageResult, boolean> {
  const { profile, clock, shortRange } = fetcher;
  const end = Math.ceil(start + shortRange.pages * profile.pageRows * profile.rowGapMs);
  if (!onRow || profile.granularity !== 'exact' || end >= clock.now()) return false;
  const page = await fetcher.attempt({ order: 'asc', start, end });
  if (page) yield page;
  if (!page || !isClosed() || page.count * 2 < page.query.limit) shortRange.pages *= 4;
  else shortRange.pages = Math.max(LEAST_PAGES, shortRange.pages / 2);
  return isClosed();
}

/** Whether history begins after an instant: a long question shows no older row, and neither do short ones. */
async function* isBeginning(fetcher: PageFetcher, at: Instant): AsyncGenerator<PageResult, boolean> {
  const { evidence } = fetcher;
  const first = evidence.firstBehind(at);
  if (first === undefined) return false;
  yield* coverSilence(fetcher, { from: Math.min(at, first - 1), to: first }, 'to');
  return evidence.admitBeginning(at);
}

/** A walk through numbered pages that begins further back than this costs more than it closes. */
const WALK_FROM_MS = 3 * DAY_MS;

/** The start to ask from: a little before a known row; without one, far enough back for a few rows to lie in between. */
export function startNear({ evidence, profile }: PageFetcher, at: Instant): { start: Instant; onRow: boolean } {
  const seen = evidence.seenBefore(at);
  const row = profile.pageRows < FEW_ROWS ? seen[0] : (seen[1] ?? seen[0]);
  const guess = Math.max(MINUTE_MS, ROWS_BEFORE * profile.rowGapMs);
  const reach = evidence.endingAt(at)?.after ?? at - Math.max(guess, HOUR_MS);
  if (row !== undefined && row >= reach) {
    return { start: Math.floor(row) - 1 - profile.startMarginMs, onRow: true };
  }
  return { start: Math.floor(at) - Math.min(guess, DAY_MS) - profile.startMarginMs, onRow: false };
}

/**
 * The questions to ask, in order. If a row is known, each starts further back, because services round starts. At the edge of a window with
 * no known row before it, either an older row shows, newest first from the first row after it, or history begins here.
 */
function questionsFor(
  near: { start: Instant; onRow: boolean },
  at: Instant,
  first: 'near' | 'beginning' | 'older',
): PageRequest[] {
  const ascending = (start: Instant): PageRequest => ({ order: 'asc', start });
  if (near.onRow) return STEPS_BACK_MS.map((back) => ascending(near.start - back));
  const older: PageRequest = { order: 'desc', start: at - 10 * APART_MS };
  const beginning = ascending(near.start - APART_MS - DAY_MS);
  const further = [HOUR_MS, 26 * HOUR_MS, 9 * DAY_MS].map((back) => ascending(near.start - back));
  // One more question for the beginning: the first may have failed for a reason of its own.
  const beginningAgain = { ...beginning, start: beginning.start - 20 * DAY_MS };
  const nearest = ascending(near.start);
  const start = {
    near: [nearest, beginning, older],
    beginning: [beginning, nearest, older],
    older: [nearest, older, beginning],
  };
  return [...start[first], ...further, beginningAgain];
}

/** Services may hide rows after counting them: a walk continues past this many such empty pages in a row. */
const MOST_EMPTY_PAGES = 8;
/** Shuffled ties and vanished rows can make this many pages go back before one advances; more of them are repeats. */
const MOST_REPEATED = 4;

/** How a walk ended: no further row shows, ties fill a page, pages hold fewer rows than asked, or a page could not be read. */
export type WalkEnd = { kind: 'end' | 'tied' } | { kind: 'cut'; rows: number } | { kind: 'failed'; step: Step };

/**
 * Continues by page numbers where no question can start at the position itself. Each page starts a few rows before the last one ended, so
 * that answers overlap: page numbers only say where to look, and the evidence decides what is closed. `edge` returns how far time is known.
 */
export async function* walkPages(
  fetcher: PageFetcher,
  walk: Walk,
  edge: () => Instant,
  isDone: () => boolean,
): AsyncGenerator<PageResult, WalkEnd | { kind: 'done'; walk: Walk }> {
  const { profile } = fetcher;
  const { order, start, end } = walk;
  let { step, last } = walk;
  const most = Math.min(profile.pageRows, profile.walkRows);
  let overlap = leastOverlap(most);
  let [empty, repeated, furthest] = [0, 0, Number.NEGATIVE_INFINITY];
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const next = nextStep(step.end, tiesAtEdge(last, edge(), order) + overlap, most, walk.low);
    if (!next) return { kind: 'tied' };
    const known = edge();
    const page = await fetcher.attempt({ order, start, end, step: next });
    if (!page) return { kind: 'failed', step: next };
    yield page;
    if (isDone()) return { kind: 'done', walk: { ...walk, step: next, last: page } };
    if (page.count > 0 && sameRows(last, page)) return { kind: 'end' };
    if (page.count === 0 && ++empty > MOST_EMPTY_PAGES) return { kind: 'end' };
    const reached = middleOf(page);
    const isSame = sharedRows(last, page) > step.end - next.offset + page.count / 2;
    if ((isSame || reached < furthest) && ++repeated > MOST_REPEATED) return { kind: 'end' };
    if (!isSame && reached > furthest) [furthest, repeated] = [reached, 0];
    const sorted = sortedRows(page);
    const isApart = order === 'asc' ? (sorted[0]?.at ?? known) >= known : (sorted.at(-1)?.at ?? known) <= known;
    if (sorted.length > 0 && isApart && edge() === known) {
      // This page should have begun before the last one ended: either the last one was cut short, or rows vanished in between.
      if (last.count < last.query.limit && last.count > 1) return { kind: 'cut', rows: last.count };
      overlap *= 4;
      if (overlap > most) return { kind: 'tied' };
      continue;
    }
    [step, last] = [next, page];
  }
  return { kind: 'end' };
}

/** Pages of different lengths that repeat each other are not equal, but share nearly all rows. */
function sharedRows(one: PageResult, other: PageResult): number {
  const ids = new Set(one.rows.map(({ id }) => id));
  return other.rows.filter(({ id }) => ids.has(id)).length;
}

/** The position of a page in its order: the time of its middle row, because rows at its edges may come from elsewhere. */
function middleOf({ rows, query }: PageResult): number {
  const at = rows[rows.length >> 1]?.at ?? Number.NaN;
  return query.order === 'asc' ? at : -at;
}

/** A little more than the ties at a page's edge, so that a few rows deleted meanwhile do not break the walk. */
const leastOverlap = (pageRows: number): number => Math.max(1, Math.min(5, pageRows >> 2));

/** Up to the edge everything is known and no overlap is needed; beyond it, the overlap must exceed the ties at the page's end. */
function tiesAtEdge(last: PageResult, edge: Instant, order: 'asc' | 'desc'): number {
  const sorted = sortedRows(last);
  const end = order === 'asc' ? sorted.at(-1)?.at : sorted[0]?.at;
  if (end === undefined || (order === 'asc' ? end < edge : end > edge)) return 0;
  return sorted.filter((row) => row.at === end).length;
}
