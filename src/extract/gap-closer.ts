import { StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import { DAY_MS, type Window } from '../model/window.ts';
import { darkBefore, findWhereRowsShow, isReadable, isStartRefused } from './limits/refused-starts.ts';
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
  /** Where reading can go on. */
  resumeAt?: Instant;
}

/** What is known of a gap while it is being closed. */
interface Gap {
  readonly fetcher: PageFetcher;
  readonly at: Instant;
  /** Of the window that is read. */
  readonly end: Instant;
  readonly walks: Walks;
  /** It was tried before, with larger pages or by another way. */
  readonly isRetried: boolean;
  /** The walk goes on through one day more than it had to. */
  isLonger: boolean;
  forward: Forward;
  /** Whatever begins here is refused. */
  isRefused: boolean;
  reason: string | undefined;
}

interface Walks {
  /** The way through numbered pages that closed the gap before. */
  current: Walk | undefined;
}

/** Pages that a strategy shows; then how the gap ended, or nothing where the next strategy is to try. */
type Strategy = (gap: Gap) => AsyncGenerator<PageResult, GapEnd | 'again' | undefined>;

const UNCOUNTED = 'more rows share one timestamp than fit a page, and their number could not be proven';
const UNORDERED = 'the service does not sort its answers as asked, so they prove nothing';

/** A way through numbered pages is left for a new start, which shows again what is known of its day, once it is so long. */
const FEW_PAGES = 24;

/** Closes one gap after the other. The strategies choose what to fetch; whether the gap is closed is for the evidence to say. */
export function createGapCloser(
  fetcher: PageFetcher,
  { end }: Window,
): { close(at: Instant): AsyncGenerator<PageResult, GapEnd> } {
  const { profile } = fetcher;
  const walks: Walks = { current: undefined };
  async function* close(at: Instant, isRetried = false): AsyncGenerator<PageResult, GapEnd> {
    const { showsFrom } = profile;
    if (showsFrom !== undefined && at < showsFrom)
      return { setAside: [], reason: darkBefore(showsFrom), resumeAt: showsFrom };
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
    // What lies ahead is read at least, and reading goes on where it begins.
    const ahead = gap.isRefused ? undefined : await fetcher.attempt({ order: 'asc', start: at });
    if (ahead) yield ahead;
    return { setAside: [], ...(gap.reason !== undefined && { reason: gap.reason }) };
  }
  return { close };
}

/** In order of their cost. */
const STRATEGIES: readonly Strategy[] = [
  goForward,
  getPastFailedPage,
  walkThroughCrowd,
  crossSilence,
  goBackward,
  countNewestTies,
  findFirstShown,
];

const isClosed = ({ fetcher, at }: Gap): boolean => fetcher.evidence.through(at) !== undefined;

/** The page that begins right before the gap, or the next of the walk that is under way. */
async function* goForward(gap: Gap): ReturnType<Strategy> {
  const { fetcher, at, walks, isRetried } = gap;
  const { profile } = fetcher;
  let walk = walks.current;
  // Through the next day as well, while page numbers are small.
  gap.isLonger = walk !== undefined && at >= walk.stayUntil && walk.step.page < FEW_PAGES && !isRetried;
  if (walk && gap.isLonger) walk = { ...walk, stayUntil: nextDay(profile, at) };
  if (walk && profile.granularity !== 'exact' && at < walk.stayUntil) {
    gap.forward = { kind: 'crowded', walk };
    return undefined;
  }
  walks.current = undefined;
  try {
    gap.forward = yield* pageForward(fetcher, at);
    if (gap.forward.kind === 'unordered') gap.reason = UNORDERED;
    if (gap.forward.kind === 'shown' && isClosed(gap)) walks.current = gap.forward.walk;
  } catch (error) {
    // Recovery: a start may be older than what the plan retains, while the stream itself can be read.
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
  // A start can be refused in the same words as a page that is too large.
  if (error instanceof StopStream && (yield* isStartRefused(fetcher, request.start))) {
    refuse(gap, error);
    return undefined;
  }
  const step = firstStep(profile.pageRows);
  const after = yield* pastFailure(gap, { start: request.start, step, error });
  if (after.kind === 'shown') return { setAside: after.setAside };
  // Pages have become smaller: the same question has a new chance.
  if (profile.pageRows < step.limit && !isRetried) return 'again';
  gap.reason = after.reason;
  return undefined;
}

/** Where the gap is closed behind a page that fails, the walk goes on from there. */
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

/** More rows at or before the gap than fit a page: through numbered pages, or by counting those that share its instant. */
async function* walkThroughCrowd(gap: Gap): ReturnType<Strategy> {
  if (gap.forward.kind !== 'crowded') return undefined;
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
    // It had gone on for longer than it had to.
    if (gap.isLonger) return 'again';
    if (walked.kind === 'cut' && walked.rows * MOST_CUT >= fetcher.mostRows && !gap.isRetried) {
      // Pages hold fewer rows than were asked for, and more lie behind: then this is what a page holds.
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

/** Where long ranges are refused, no answer shows the rows on both sides of a long silence: the row before it by itself, and then piece by piece. */
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

/** From the newest rows of all, and from what is known behind the gap. Whatever else begins here is refused, too. */
async function* goBackward(gap: Gap): ReturnType<Strategy> {
  const { fetcher, at, end, forward, isRefused } = gap;
  if (isRefused) return undefined;
  if (!fetcher.evidence.knowsEnd) {
    const page = yield* newestPage(fetcher, startNear(fetcher, at).start);
    // Nothing is there, or old starts show nothing: then the latest hours do, and say what to compare with.
    if (page?.count === 0 && forward.kind === 'nothing') yield* newestPage(fetcher, fetcher.clock.now() - DAY_MS);
  }
  if (!isClosed(gap)) yield* pageBackward(fetcher, at, end);
  return undefined;
}

/** All that is left shares one instant, the newest of all: it can be counted from that side only. */
async function* countNewestTies(gap: Gap): ReturnType<Strategy> {
  const { fetcher, at, isRefused } = gap;
  const { evidence } = fetcher;
  if (isRefused || evidence.nextFrom(at) !== at || !evidence.knowsEnd) return undefined;
  yield* countTiedRows(fetcher, { at, orders: ['desc', 'asc'], start: startNear(fetcher, at).start, place: 0 });
  gap.reason ??= UNCOUNTED;
  return undefined;
}

/** Old starts may show nothing: where they begin to show something, reading goes on. */
async function* findFirstShown(gap: Gap): ReturnType<Strategy> {
  const { fetcher, at, forward } = gap;
  const { evidence, profile } = fetcher;
  const behind = evidence.nextFrom(at);
  if (forward.kind !== 'nothing' || behind === undefined) return undefined;
  const from = yield* findWhereRowsShow(fetcher, at, behind);
  if (isClosed(gap) || from === undefined) return undefined;
  gap.reason = `${darkBefore(from)}${gap.reason ? ` (${gap.reason})` : ''}`;
  profile.showsFrom = from;
  const next = evidence.nextFrom(at);
  return next === undefined ? undefined : { setAside: [], reason: gap.reason, resumeAt: next + 0.001 };
}
