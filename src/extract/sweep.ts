import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, startOfDay, type Window } from '../model/window.ts';
import { createGapCloser, type GapEnd } from './gap-closer.ts';
import { testEnds } from './page-backward.ts';
import type { PageFetcher } from './pages/page-fetcher.ts';
import type { PageResult } from './pages/received.ts';
import type { Profile } from './profile.ts';
import { prove } from './proof/certified.ts';
import { contentOf, createUndelivered, delivered, isWhole, ownEnd, rowsOf, type Slice } from './slice.ts';

/**
 * Reads a window from its start to its end: fetches the page that closes the first gap, until no gap is left. A gap that no page closes is
 * delivered uncertified with its reason, and reading continues after it. Slices cover the window in order, without gaps.
 */
export async function* sweep(fetcher: PageFetcher, window: Window, fair: FairShare): AsyncGenerator<Slice, void> {
  const { evidence } = fetcher;
  const closeGap = createGapCloser(fetcher, window);
  let at = window.start;
  let leaps = 0;
  let areEndsTested = false;
  let newest = window.start - 1;
  const undelivered = createUndelivered(contentOf);
  while (at < window.end) {
    const rest = { ...delivered([]), window: { start: at, end: window.end } };
    if (fair.isSpent()) return yield { ...rest, note: TOO_MANY };
    // Time that has not settled cannot be proven by any question, and its visible rows have been delivered.
    if (at >= Math.min(evidence.settledThrough, evidence.shownThrough)) {
      if (at >= evidence.settledThrough || areEndsTested) return yield { ...rest, note: TOO_YOUNG };
      areEndsTested = true;
      for await (const page of testEnds(fetcher))
        yield delivered(rowsOf(page, window.start, window.end), page.rejected);
      fetcher.take();
      evidence.admitEnd();
      continue;
    }
    // After a gap, pages may still show rows from within it.
    const from = leaps > 0 ? window.start : at;
    let last: PageResult | undefined;
    // Rows shown by pages that came after `last`: of two versions of a row, the later one counts.
    const shownSince = new Map<string, Row>();
    const rowsOfLast = (): Row[] =>
      last ? rowsOf(last, from, window.end).map((row) => shownSince.get(row.id) ?? row) : [];
    let outcome: GapEnd = { setAside: [] };
    if (evidence.through(at) === undefined) {
      const steps = closeGap(at);
      for (let step = await steps.next(); ; step = await steps.next()) {
        for (const page of fetcher.take()) {
          // The page that by itself covers most from here on stands for the window; the others are delivered without one.
          const isFurther = !last || (ownEnd(page, at) ?? at) >= (ownEnd(last, at) ?? at);
          const other = isFurther ? last : page;
          if (other) yield delivered(rowsOf(other, from, window.end), other.rejected);
          if (isFurther) {
            last = page;
            shownSince.clear();
          }
          if (!isFurther) for (const row of page.rows) shownSince.set(row.id, row);
          // Rows from before this position that no recent page showed: they arrived since, or were left out. They are stored, too.
          const passed = undelivered(rowsOf(page, window.start, window.end)).filter((row) => row.at < from);
          if (passed.length > 0) yield delivered(passed);
          const fresh = rowsOf(page, newest + 1, window.end);
          fair.count(fresh.length);
          newest = Math.max(newest, ...fresh.map(({ at }) => at));
        }
        if (!step.done) continue;
        outcome = step.value;
        break;
      }
    }
    // Certifies first what the last page shows by itself: only that part is known to be everything there is now.
    const own = last && ownEnd(last, at);
    const end = Math.min(window.end, own ?? Number.POSITIVE_INFINITY, evidence.through(at) ?? at);
    const { proven } = end > at ? prove({ start: at, end }, evidence) : {};
    if (proven) {
      const isAside = outcome.setAside.length > 0;
      yield {
        window: { start: at, end },
        certified: proven,
        whole: last !== undefined && !isAside && isWhole(last, { start: at, end }),
        // Its rows further ahead are evidence already, and will not be read again.
        rows: rowsOfLast(),
        rejected: [...(last?.rejected ?? []), ...outcome.setAside],
        ...(isAside && { note: SET_ASIDE }),
      };
      at = end;
      continue;
    }
    // It turned out only now that the service may shift or round ends: they are tested above before the gap is given up.
    if (at >= evidence.shownThrough && !areEndsTested) {
      if (last) yield delivered(rowsOfLast(), last.rejected);
      continue;
    }
    // If no row shows after the gap, there is nothing to continue with.
    const isLast = evidence.nextFrom(at) === undefined && evidence.seenAfter(at).length === 0;
    const beyond = isLast ? window.end : positionBeyond(fetcher, at, leaps);
    const to = Math.min(window.end, outcome.resumeAt ?? beyond);
    leaps += 1;
    yield {
      window: { start: at, end: to },
      certified: undefined,
      note: outcome.reason ?? NOT_TOGETHER,
      rows: rowsOfLast(),
      rejected: [...(last?.rejected ?? []), ...outcome.setAside],
    };
    at = to;
  }
}

export const SET_ASIDE = 'a row that the service cannot show was set aside';
const NOT_TOGETHER = 'no answer of the service shows rows from before and after this time together';

/** The note on the end of a window that lies in the present. */
export const TOO_YOUNG = 'too young to be complete: events may still arrive';
const TOO_MANY = 'reading this time takes too many requests; the next run continues';

/** Ends sweeps that keep asking without new rows: a run gets this many requests, and a few more for every page of new rows. */
const FREE_REQUESTS = 400;
const REQUESTS_A_PAGE = 3;
/** More empty answers in a row than this mean that the service has stopped showing rows. */
const MOST_EMPTY = 40;

/** The requests that the sweeps of one run share. */
export interface FairShare {
  /** Counts the rows of a page that lie in the sweep's window and are new to it. */
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

/** A position that cannot be proven must not block the rest: reading continues after it, further each time. */
const LEAPS_MS = [2000, MINUTE_MS, HOUR_MS];
const MOST_LEAPS = 12;

function positionBeyond({ evidence }: PageFetcher, at: Instant, leaps: number): Instant {
  const known = (evidence.nextFrom(at) ?? Number.POSITIVE_INFINITY) + 1;
  if (leaps >= MOST_LEAPS) return known;
  const leap = LEAPS_MS[leaps % (LEAPS_MS.length + 1)];
  return Math.min(known, leap === undefined ? startOfDay(at) + DAY_MS : at + leap);
}
