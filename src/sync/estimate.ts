import { MAX_LIMIT } from '../api/params.ts';
import type { Sample } from '../extract/probe.ts';
import type { Instant } from '../model/instant.ts';
import type { Window } from '../model/window.ts';
import type { SyncDeps } from './job.ts';

export interface Estimate extends Window {
  rows: number;
}

const MOST_PROBES = 5;
const PAGES_PER_PROBE = 3;

/** A range that no page has covered, with the density of rows before and after it. */
interface Unseen extends Window {
  before: number;
  after: number;
}

const mostRows = ({ start, end, before, after }: Unseen): number => (end - start) * Math.max(before, after);
const likelyRows = ({ start, end, before, after }: Unseen): number => ((end - start) * (before + after)) / 2;

/** Counts the rows on probed pages, and interpolates between them. Each probe goes to the middle of the range that may hold most rows. */
export async function estimateRows(
  toRead: readonly Window[],
  first: Sample,
  firstAt: Instant,
  probe: (window: Window) => Promise<Sample>,
): Promise<{ parts: Estimate[]; probes: number }> {
  // If the first page is not full, it has all rows.
  if (!first.isFull) {
    const parts = toRead.map(({ start, end }) => ({ start, end, rows: first.density * (end - start) }));
    return { parts, probes: 1 };
  }
  const counted: Estimate[] = [];
  let probes = 1;
  const rest = ({ start, end }: Window, sample: Sample, after: number): Unseen[] => {
    const from = sample.isFull ? Math.min(end, Math.max(start, sample.newest ?? start)) : end;
    counted.push({ start, end: from, rows: sample.rows });
    return from < end ? [{ start: from, end, before: sample.newestDensity, after }] : [];
  };
  let unseen = toRead.flatMap((window) =>
    window.start === firstAt
      ? rest(window, first, first.newestDensity)
      : [{ ...window, before: first.density, after: first.density }],
  );
  for (; probes < MOST_PROBES; probes++) {
    const [widest, ...others] = [...unseen].sort((a, b) => mostRows(b) - mostRows(a));
    // One probe of the later part is always worth its cost.
    const isKnown = probes > 1 && sum(unseen.map(mostRows)) <= probes * PAGES_PER_PROBE * MAX_LIMIT;
    if (!widest || isKnown) break;
    const later = { start: Math.round((widest.start + widest.end) / 2), end: widest.end };
    const sample = await probe(later);
    const earlier = { ...widest, end: later.start, after: sample.density };
    unseen = [...others, earlier, ...rest(later, sample, widest.after)];
  }
  return { parts: [...counted, ...unseen.map((part) => ({ ...part, rows: likelyRows(part) }))], probes };
}

/** The weight of time in the progress, because even an empty year takes a few requests. */
const SHARE_OF_TIME = 0.02;

/** Progress as rows read relative to rows expected to remain, so that wrong estimates are corrected. Without estimates, by time. */
export function createMeter(
  windows: readonly Window[],
  estimates: readonly Estimate[],
): (part: Window, rows: number) => number {
  const rowsIn = (part: Window): number =>
    sum(estimates.map((estimate) => (estimate.rows * overlap(estimate, part)) / Math.max(1, lengthOf(estimate))));
  const all = sum(windows.map(rowsIn));
  const ofTime = (Math.max(1, all) * SHARE_OF_TIME) / Math.max(1, sum(windows.map(lengthOf)));
  let left = sum(windows.map((window) => rowsIn(window) + ofTime * lengthOf(window)));
  let done = 0;
  return (part, rows) => {
    left = Math.max(0, left - rowsIn(part) - ofTime * lengthOf(part));
    done += (all > 0 ? rows : 0) + ofTime * lengthOf(part);
    return done / Math.max(Number.MIN_VALUE, done + left);
  };
}

export const lengthOf = ({ start, end }: Window): number => end - start;
const overlap = (a: Window, b: Window): number => Math.max(0, Math.min(a.end, b.end) - Math.max(a.start, b.start));

export const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Combines the progress of several phases, which each start at zero, into one that never decreases. */
export function inPhases(onProgress: SyncDeps['onProgress']): (share: number) => SyncDeps['onProgress'] {
  let before = 0;
  let last = { rows: 0, requests: 0, done: 0 };
  return (share) => {
    const [from, base] = [before, last];
    before += share;
    return ({ rows, requests, done = 0, ...progress }) => {
      // Reports from commits know neither how much is left nor how much was read since, so values may not decrease.
      const most = Math.max(last.done, from + share * Math.min(1, done));
      last = { rows: Math.max(last.rows, base.rows + rows), requests: base.requests + requests, done: most };
      onProgress({ ...progress, ...last });
    };
  };
}
