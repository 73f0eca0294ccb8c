import { StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import { DAY_MS, startOfDay, type Window } from '../model/window.ts';
import { darkBefore, findWhereRowsShow, isReadable, isStartRefused } from './limits/refused-starts.ts';
import { coverSilence, otherLimit } from './limits/silence.ts';
import { newestPage, pageBackward } from './page-backward.ts';
import { type PageFetcher, type PageResult, type Rejection, sortedRows } from './page-fetcher.ts';
import { type Forward, pageForward, startNear, type Walk, walkPages } from './page-forward.ts';
import { firstStep, stepOf } from './page-steps.ts';
import { nextDay, type Profile } from './profile.ts';
import { prove } from './proof/certified.ts';
import { CLOSED_MS } from './proof/intervals.ts';
import { delivered, isWhole, ownEnd, rowsOf, type Slice } from './slice.ts';
import { countTiedRows } from './tied-rows.ts';
import { getPastFailure } from './unreadable-rows.ts';

/**
 * Reads a window from its start to its end: fetches the page that closes the first gap, until there is none. What no page closes is left
 * uncertified with its reason, and the reading goes on behind it. Slices cover the window in order, without gaps.
 */
export async function* sweep(fetcher: PageFetcher, window: Window, fair: FairShare): AsyncGenerator<Slice, void> {
  const { evidence } = fetcher;
  const gaps = createGapCloser(fetcher, window);
  let at = window.start;
  let leaps = 0;
  let newest = window.start - 1;
  while (at < window.end) {
    const rest = { ...delivered([]), window: { start: at, end: window.end } };
    if (fair.isSpent()) return yield { ...rest, note: TOO_MANY };
    // What is not settled yet cannot be proven whatever is asked, and what shows of it has been delivered.
    if (at >= evidence.settledThrough) return yield { ...rest, note: TOO_YOUNG };
    // Behind a gap, pages may still show rows from within it.
    const from = leaps > 0 ? window.start : at;
    let last: PageResult | undefined;
    let outcome: GapEnd = { setAside: [] };
    if (evidence.through(at) === undefined) {
      const steps = gaps.close(at);
      for (let step = await steps.next(); ; step = await steps.next()) {
        for (const page of fetcher.take()) {
          // The page that shows most from here on by itself is the one to speak of a window; the others are delivered without one.
          const isFurther = !last || (ownEnd(page, at) ?? at) >= (ownEnd(last, at) ?? at);
          const other = isFurther ? last : page;
          if (other) yield delivered(rowsOf(other, from, window.end), other.rejected);
          if (isFurther) last = page;
          const fresh = rowsOf(page, newest + 1, window.end);
          fair.count(fresh.length);
          newest = Math.max(newest, ...fresh.map(({ at }) => at));
        }
        if (!step.done) continue;
        outcome = step.value;
        break;
      }
    }
    // What the last page shows by itself first: only of that it is known that it is all there is now.
    const own = last && ownEnd(last, at);
    const end = Math.min(window.end, own ?? Number.POSITIVE_INFINITY, evidence.through(at) ?? at);
    const { proven } = end > at ? prove({ start: at, end }, evidence) : {};
    if (proven) {
      const isAside = outcome.setAside.length > 0;
      yield {
        window: { start: at, end },
        certified: proven,
        whole: last !== undefined && !isAside && isWhole(last, { start: at, end }),
        // What lies further ahead on it is evidence already, and will not be asked for again.
        rows: last ? rowsOf(last, from, window.end) : [],
        rejected: [...(last?.rejected ?? []), ...outcome.setAside],
        ...(isAside && { note: SET_ASIDE }),
      };
      at = end;
      continue;
    }
    // Where no row shows behind it, there is nothing to go on to.
    const isLast = evidence.nextFrom(at) === undefined && evidence.seenAfter(at).length === 0;
    const beyond = isLast ? window.end : placeBeyond(fetcher, at, leaps);
    const to = Math.min(window.end, outcome.resumeAt ?? beyond);
    leaps += 1;
    yield {
      window: { start: at, end: to },
      certified: undefined,
      note: outcome.reason ?? NOT_TOGETHER,
      rows: last ? rowsOf(last, from, window.end) : [],
      rejected: [...(last?.rejected ?? []), ...outcome.setAside],
    };
    at = to;
  }
}

export const SET_ASIDE = 'a row that the service cannot show was set aside';
const NOT_TOGETHER = 'no answer of the service shows rows from before and after this time together';
const UNCOUNTED = 'more rows share one timestamp than fit a page, and their number could not be proven';
const UNORDERED = 'the service does not sort its answers as asked, so they prove nothing';

/** A way through numbered pages is left for a new start, which shows again what is known of its day, once it is so long. */
const FEW_PAGES = 8;

/** A page that holds less than this part of what was asked for was not cut, its rows are hidden. */
const MOST_CUT = 100;

/** Said of the end of a window that lies in the present. */
export const TOO_YOUNG = 'too young to be complete: events may still arrive';
const TOO_MANY = 'this service needs too many requests to be read here; the next try goes on';

/** Sweeps that keep asking without seeing anything new end: so many requests of a run are free, and a few for every page of new rows. */
const FREE_REQUESTS = 400;
const REQUESTS_A_PAGE = 3;
/** A service that shows nothing any more, so many times in a row, has gone dark. */
const MOST_EMPTY = 40;

/** What the sweeps of one run may ask for together. */
export interface FairShare {
  /** Counts the rows of a page that lie in the window of its sweep, and that it has not met before. */
  count(rows: number): void;
  isSpent(): boolean;
}

export function createFairShare(profile: Profile, asked: () => { requests: number; empty: number }): FairShare {
  let rows = 0;
  return {
    count(more) {
      rows += more;
    },
    isSpent() {
      const { requests, empty } = asked();
      return empty > MOST_EMPTY || requests > FREE_REQUESTS + REQUESTS_A_PAGE * (rows / Math.max(1, profile.pageRows));
    },
  };
}

/** One place that cannot be proven must not keep the rest from being read: on behind it, further each time. */
const LEAPS_MS = [2000, 60_000, 3_600_000];
const MOST_LEAPS = 12;

function placeBeyond({ evidence }: PageFetcher, at: Instant, leaps: number): Instant {
  const known = (evidence.nextFrom(at) ?? Number.POSITIVE_INFINITY) + 1;
  if (leaps >= MOST_LEAPS) return known;
  const leap = LEAPS_MS[leaps % (LEAPS_MS.length + 1)];
  return Math.min(known, leap === undefined ? startOfDay(at) + DAY_MS : at + leap);
}

interface GapEnd {
  setAside: readonly Rejection[];
  /** Why the gap is not closed, for people. */
  reason?: string;
  /** Where reading can go on. */
  resumeAt?: Instant;
}

/** The strategies, in order of their cost. They choose what to fetch; whether the gap is closed is for the evidence to say. */
function createGapCloser(
  fetcher: PageFetcher,
  window: Window,
): { close(at: Instant, isRetried?: boolean): AsyncGenerator<PageResult, GapEnd> } {
  const { evidence, profile } = fetcher;
  let walk: Walk | undefined;

  async function* close(at: Instant, isRetried = false): AsyncGenerator<PageResult, GapEnd> {
    const { showsFrom } = profile;
    if (showsFrom !== undefined && at < showsFrom)
      return { setAside: [], reason: darkBefore(showsFrom), resumeAt: showsFrom };
    const isClosed = (): boolean => evidence.through(at) !== undefined;
    const setAside: Rejection[] = [];
    // Through the next day as well, while page numbers are small.
    const isLonger = walk !== undefined && at >= walk.stayUntil && walk.step.page < FEW_PAGES && !isRetried;
    if (walk && isLonger) walk = { ...walk, stayUntil: nextDay(profile, at) };
    const isWalking = walk !== undefined && profile.granularity !== 'exact' && at < walk.stayUntil;
    let reason: string | undefined;
    let isRefused = false;
    let forward: Forward = isWalking && walk ? { kind: 'crowded', walk } : { kind: 'nothing' };
    if (!isWalking) {
      walk = undefined;
      try {
        forward = yield* pageForward(fetcher, at);
      } catch (error) {
        // Recovery: a start may be older than what the plan retains, while the stream itself can be read.
        if (!(error instanceof StopStream) || !(yield* isReadable(fetcher))) throw error;
        forward = { kind: 'nothing' };
        reason = error.message;
        isRefused = true;
      }
    }
    if (isClosed()) {
      if (forward.kind === 'shown') walk = forward.walk;
      return { setAside };
    }

    if (forward.kind === 'failed' && forward.error instanceof StopStream) {
      // A start can be refused in the same words as a page that is too large.
      if (yield* isStartRefused(fetcher, forward.request.start)) {
        reason = forward.error.message;
        isRefused = true;
        forward = { kind: 'nothing' };
      }
    }
    if (forward.kind === 'failed') {
      const { request, error } = forward;
      const step = firstStep(profile.pageRows);
      const after = yield* getPastFailure(fetcher, at, { start: request.start, step, error });
      if (after.kind === 'shown') {
        const { last, low } = after;
        const stayUntil = nextDay(profile, at);
        if (last && low) walk = { order: 'asc', start: request.start, step: stepOf(last.query), last, low, stayUntil };
        return { setAside: after.setAside };
      }
      // Pages have become smaller: the same question has a new chance.
      if (profile.pageRows < step.limit && !isRetried) return yield* close(at, true);
      reason = after.reason;
    }
    if (forward.kind === 'unordered') reason = UNORDERED;
    if (forward.kind === 'crowded') {
      const { start, last } = forward.walk;
      const tied = sortedRows(last).filter((row) => row.at === at).length;
      let end: { kind: string } | undefined;
      if (tied * 2 <= last.count) {
        const walked = yield* walkPages(fetcher, forward.walk, () => at, isClosed);
        end = walked;
        if (walked.kind === 'done') {
          walk = walked.walk;
          return { setAside };
        }
        walk = undefined;
        // It had gone on for longer than it had to.
        if (isLonger) return yield* close(at, true);
        if (walked.kind === 'cut' && walked.rows * MOST_CUT >= fetcher.mostRows && !isRetried) {
          // Pages hold fewer rows than were asked for, and more lie behind: then this is what a page holds.
          profile.walkRows = walked.rows;
          return yield* close(at, true);
        }
        if (walked.kind === 'failed') {
          const error = new Error(`the service fails on page ${walked.step.page} of ${walked.step.limit} rows`);
          const after = yield* getPastFailure(fetcher, at, { start, step: walked.step, error });
          if (after.kind === 'shown') {
            const { last: past, low } = after;
            if (past && low) walk = { ...forward.walk, step: stepOf(past.query), last: past, low };
            return { setAside: after.setAside };
          }
          reason = error.message;
        }
      }
      if (end === undefined || end.kind === 'tied') {
        const place = tied * 2 > last.count ? 0 : forward.walk.step.offset;
        yield* countTiedRows(fetcher, { at, orders: ['asc'], start, place });
        reason = UNCOUNTED;
      }
      if (isClosed()) return { setAside };
    }

    if (profile.mostRangeMs !== undefined && !isRefused && (yield* crossSilence(at))) return { setAside };
    // Whatever else begins here is refused, too.
    if (!evidence.knowsEnd && !isRefused) {
      const page = yield* newestPage(fetcher, startNear(fetcher, at).start);
      // Nothing is there, or old starts show nothing: then the latest hours do, and say what to compare with.
      if (page?.count === 0 && forward.kind === 'nothing') yield* newestPage(fetcher, fetcher.clock.now() - DAY_MS);
    }
    if (!isClosed() && !isRefused) yield* pageBackward(fetcher, at, window.end);
    if (!isClosed() && !isRefused && evidence.nextFrom(at) === at && evidence.knowsEnd) {
      // All that is left shares one instant, the newest of all: it can be counted from that side only.
      yield* countTiedRows(fetcher, { at, orders: ['desc', 'asc'], start: startNear(fetcher, at).start, place: 0 });
      reason ??= UNCOUNTED;
    }
    if (isClosed()) return { setAside };
    if (forward.kind === 'nothing' && evidence.nextFrom(at) !== undefined) {
      const from = yield* findWhereRowsShow(fetcher, at, evidence.nextFrom(at) ?? at);
      if (isClosed()) return { setAside };
      if (from !== undefined) {
        reason = `${darkBefore(from)}${reason ? ` (${reason})` : ''}`;
        profile.showsFrom = from;
        const next = evidence.nextFrom(at);
        if (next !== undefined) return { setAside, reason, resumeAt: next + 0.001 };
      }
    }
    // What lies ahead is read at least, and reading goes on where it begins.
    const ahead = isRefused ? undefined : await fetcher.attempt({ order: 'asc', start: at });
    if (ahead) yield ahead;
    return { setAside, ...(reason !== undefined && { reason }) };
  }

  /** Where long ranges are refused, no answer shows the rows on both sides of a long silence: the row before it by itself, and then piece by piece. */
  async function* crossSilence(at: Instant): AsyncGenerator<PageResult, boolean> {
    const isShown = (): boolean => evidence.through(at) !== undefined;
    const start = Math.floor(at) - 1;
    const other = firstStep(otherLimit(profile.pageRows));
    for (const request of [
      { order: 'asc', start },
      { order: 'asc', start, step: other },
      { order: 'desc', start, end: Math.ceil(at) + 1000, step: other },
    ] as const) {
      const page = await fetcher.attempt(request);
      if (!page) return false;
      yield page;
    }
    evidence.admitInstant(at);
    if (isShown()) return true;
    yield* coverSilence(fetcher, { from: at, to: evidence.nextFrom(at + CLOSED_MS) ?? fetcher.clock.now() }, 'from');
    const next = evidence.seenAfter(at)[0];
    evidence.admitSilence(at, next);
    evidence.admitInstant(at);
    return isShown();
  }
  return { close };
}
