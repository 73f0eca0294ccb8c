import { StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import { DAY_MS, type Window } from '../model/window.ts';
import { findWhereRowsShow, isReadable, isStartRefused, nothingBefore } from './limits/refused-starts.ts';
import { coverLimited, otherLimit } from './limits/silence.ts';
import { newestPage, pageBackward } from './page-backward.ts';
import { type Forward, pageForward, startNear, type Walk, walkPages } from './page-forward.ts';
import type { PageFetcher } from './pages/page-fetcher.ts';
import { firstStep, stepOf } from './pages/page-steps.ts';
import { type PageResult, type Rejection, sortedRows } from './pages/received.ts';
import { nextDay } from './profile.ts';
import { CLOSED_MS } from './proof/intervals.ts';
import { countTiedRows, MOST_CUT } from './tied-rows.ts';
import { type AfterFailure, type FailedPage, getPastFailure } from './unreadable-rows.ts';

export interface GapEnd {
  setAside: readonly Rejection[];
  /** Why the gap is not closed, for people. */
  reason?: string | undefined;
  /** Where reading can continue. */
  resumeAt?: Instant;
}

/** The state of a gap while it is being closed. */
interface Gap {
  readonly fetcher: PageFetcher;
  readonly at: Instant;
  /** The end of the window being read. */
  readonly end: Instant;
  readonly walks: Walks;
  /** Closing it was tried before, with larger pages or by another strategy. */
  readonly isRetried: boolean;
  /** The walk continues for one day more than needed. */
  isLonger: boolean;
  forward: Forward;
  /** The service refuses every question that starts here. */
  isRefused: boolean;
  reason: string | undefined;
}

interface Walks {
  /** The walk that closed the previous gap. */
  current: Walk | undefined;
}

/** Yields pages; returns how the gap ended, or undefined if the next strategy is to try. */
type Strategy = (gap: Gap) => AsyncGenerator<PageResult, GapEnd | 'again' | undefined>;

const UNCOUNTED = 'more rows share one timestamp than fit a page, and their number could not be proven';
const UNORDERED = 'the service does not sort its answers as asked, so they prove nothing';

/** A walk of this many pages gives way to a new start, which shows again what is known of its day. */
const FEW_PAGES = 24;

/** Closes gaps one after another. Strategies choose what to fetch; the evidence decides whether a gap is closed. */
export function createGapCloser(
  fetcher: PageFetcher,
  { end }: Window,
): (at: Instant) => AsyncGenerator<PageResult, GapEnd> {
  const { profile } = fetcher;
  const walks: Walks = { current: undefined };
  return async function* close(at: Instant, isRetried = false): AsyncGenerator<PageResult, GapEnd> {
    const { showsFrom } = profile;
    if (showsFrom !== undefined && at < showsFrom)
      return { setAside: [], reason: nothingBefore(showsFrom), resumeAt: showsFrom };
    const gap: Gap = {
      ...{ fetcher, at, end, walks, isRetried },
      ...{ isLonger: false, forward: { kind: 'nothing' }, isRefused: false, reason: undefined },
    };
    for (const strategy of STRATEGIES) {
      const outcome = yield* strategy(gap);
      if (outcome === 'again') return yield* close(at, true);
      if (outcome) return outcome;
      if (isClosed(gap)) return { setAside: [] };
    }
    // Reads at least what lies ahead, so that reading continues where it begins.
    const ahead = gap.isRefused ? undefined : await fetcher.attempt({ order: 'asc', start: at });
    if (ahead) yield ahead;
    return { setAside: [], ...(gap.reason !== undefined && { reason: gap.reason }) };
  };
}

/** In order of their cost. */
const STRATEGIES: readonly Strategy[] = [
  goForward,
  getPastFailedPage,
  walkFullPages,
  crossSilence,
  goBackward,
  countNewestTies,
  findFirstShown,
];

const isClosed = ({ fetcher, at }: Gap): boolean => fetcher.evidence.through(at) !== undefined;

/** Fetches the page that begins right before the gap, or continues the current walk. */
async function* goForward(gap: Gap): ReturnType<Strategy> {
  const { fetcher, at, walks, isRetried } = gap;
  const { profile } = fetcher;
  let walk = walks.current;
  // Continue through the next day as well, while page numbers are small.
  gap.isLonger = walk !== undefined && at >= walk.stayUntil && walk.step.page < FEW_PAGES && !isRetried;
  if (walk && gap.isLonger) walk = { ...walk, stayUntil: nextDay(profile, at) };
  if (walk && profile.granularity !== 'exact' && at < walk.stayUntil) {
    gap.forward = { kind: 'full', walk };
    return undefined;
  }
  walks.current = undefined;
  try {
    gap.forward = yield* pageForward(fetcher, at);
    if (gap.forward.kind === 'unordered') gap.reason = UNORDERED;
    if (gap.forward.kind === 'shown' && isClosed(gap)) walks.current = gap.forward.walk;
  } catch (error) {
    // Recovery: the start may be older than the plan retains while the stream itself is readable.
    if (!(error instanceof StopStream) || !(yield* isReadable(fetcher))) throw error;
    refuse(gap, error);
  }
  return undefined;
}

function refuse(gap: Gap, { message }: Error): void {
  gap.forward = { kind: 'nothing' };
  gap.reason = message;
  gap.isRefused = true;
}

async function* getPastFailedPage(gap: Gap): ReturnType<Strategy> {
  if (gap.forward.kind !== 'failed') return undefined;
  const { fetcher, isRetried } = gap;
  const { profile } = fetcher;
  const { request, error } = gap.forward;
  // The service may refuse a start with the same error as a page that is too large.
  if (error instanceof StopStream && (yield* isStartRefused(fetcher, request.start))) {
    refuse(gap, error);
    return undefined;
  }
  const step = firstStep(profile.pageRows);
  const after = yield* pastFailure(gap, { start: request.start, step, error });
  if (after.kind === 'shown') return { setAside: after.setAside };
  // The page size has been reduced: the same question may succeed now.
  if (profile.pageRows < step.limit && !isRetried) return 'again';
  gap.reason = after.reason;
  return undefined;
}

/** If the gap was closed beyond a failing page, the walk continues from there. */
async function* pastFailure(
  { fetcher, at, walks }: Gap,
  failed: FailedPage,
  way: Omit<Walk, 'step' | 'last'> = { order: 'asc', start: failed.start, stayUntil: nextDay(fetcher.profile, at) },
): AsyncGenerator<PageResult, AfterFailure> {
  const after = yield* getPastFailure(fetcher, at, failed);
  if (after.kind === 'shown' && after.last && after.low)
    walks.current = { ...way, step: stepOf(after.last.query), last: after.last, low: after.low };
  return after;
}

/** Handles more rows at or before the gap than fit a page: walks numbered pages, or counts the rows tied at its instant. */
async function* walkFullPages(gap: Gap): ReturnType<Strategy> {
  if (gap.forward.kind !== 'full') return undefined;
  const { fetcher, at, forward, walks } = gap;
  const { start, last } = forward.walk;
  const isTied = sortedRows(last).filter((row) => row.at === at).length * 2 > last.count;
  if (!isTied) {
    const walked = yield* walkPages(
      fetcher,
      forward.walk,
      () => at,
      () => isClosed(gap),
    );
    walks.current = walked.kind === 'done' ? walked.walk : undefined;
    if (walked.kind === 'done') return { setAside: [] };
    // The walk ran longer than needed.
    if (gap.isLonger) return 'again';
    if (walked.kind === 'cut' && walked.rows * MOST_CUT >= fetcher.mostRows && !gap.isRetried) {
      // Pages hold fewer rows than asked for, and more rows follow: this is the service's page size.
      fetcher.profile.walkRows = walked.rows;
      return 'again';
    }
    if (walked.kind === 'failed') {
      const error = new Error(`the service fails on page ${walked.step.page} of ${walked.step.limit} rows`);
      const after = yield* pastFailure(gap, { start, step: walked.step, error }, forward.walk);
      if (after.kind === 'shown') return { setAside: after.setAside };
      gap.reason = error.message;
    }
    if (walked.kind !== 'tied') return undefined;
  }
  yield* countTiedRows(fetcher, { at, orders: ['asc'], start, place: isTied ? 0 : forward.walk.step.offset });
  gap.reason = UNCOUNTED;
  return undefined;
}

/** If the service refuses long ranges, no answer spans a long silence: reads the row before it by itself, then the silence in pieces. */
async function* crossSilence(gap: Gap): ReturnType<Strategy> {
  const { fetcher, at, isRefused } = gap;
  const { evidence, profile } = fetcher;
  if (profile.mostRangeMs === undefined || isRefused) return undefined;
  const start = Math.floor(at) - 1;
  const other = firstStep(otherLimit(profile.pageRows));
  for (const request of [
    { order: 'asc', start },
    { order: 'asc', start, step: other },
    { order: 'desc', start, end: Math.ceil(at) + 1000, step: other },
  ] as const) {
    const page = await fetcher.attempt(request);
    if (!page) return undefined;
    yield page;
  }
  evidence.admitInstant(at);
  if (isClosed(gap)) return undefined;
  yield* coverLimited(fetcher, { from: at, to: evidence.nextFrom(at + CLOSED_MS) ?? fetcher.clock.now() });
  evidence.admitSilence(at, evidence.seenAfter(at)[0]);
  evidence.admitInstant(at);
  return undefined;
}

/** Reads the newest rows of all, then back from what is known after the gap. A refused start is refused here, too. */
async function* goBackward(gap: Gap): ReturnType<Strategy> {
  const { fetcher, at, end, forward, isRefused } = gap;
  if (isRefused) return undefined;
  if (!fetcher.evidence.knowsEnd) {
    const page = yield* newestPage(fetcher, startNear(fetcher, at).start);
    // The stream is empty, or old starts show nothing: then the latest hours serve as a comparison.
    if (page?.count === 0 && forward.kind === 'nothing') yield* newestPage(fetcher, fetcher.clock.now() - DAY_MS);
  }
  if (!isClosed(gap)) yield* pageBackward(fetcher, at, end);
  return undefined;
}

/** The remaining rows share one instant, the newest of all: they can be counted only from that side. */
async function* countNewestTies(gap: Gap): ReturnType<Strategy> {
  const { fetcher, at, isRefused } = gap;
  const { evidence } = fetcher;
  if (isRefused || evidence.nextFrom(at) !== at || !evidence.knowsEnd) return undefined;
  yield* countTiedRows(fetcher, { at, orders: ['desc', 'asc'], start: startNear(fetcher, at).start, place: 0 });
  gap.reason ??= UNCOUNTED;
  return undefined;
}

/** Old starts may show nothing: reading continues where they begin to show rows. */
async function* findFirstShown(gap: Gap): ReturnType<Strategy> {
  const { fetcher, at, forward } = gap;
  const { evidence, profile } = fetcher;
  const behind = evidence.nextFrom(at);
  if (forward.kind !== 'nothing' || behind === undefined) return undefined;
  const from = yield* findWhereRowsShow(fetcher, at, behind);
  if (isClosed(gap) || from === undefined) return undefined;
  gap.reason = `${nothingBefore(from)}${gap.reason ? ` (${gap.reason})` : ''}`;
  profile.showsFrom = from;
  const next = evidence.nextFrom(at);
  return next === undefined ? undefined : { setAside: [], reason: gap.reason, resumeAt: next + CLOSED_MS };
}
