import { MAX_LIMIT } from '../../api/params.ts';
import { PLANS } from '../../api/plans.ts';
import type { Window } from '../../model/window.ts';

import { estimateRows, lengthOf, sum } from '../estimate.ts';
import type { StreamJob, SyncDeps } from '../job.ts';
import { PAGES_PER_EDGE } from '../parallel-sweep.ts';
import { parallelism } from '../parallelism.ts';
import { joined, rangeOf } from '../windows-to-read.ts';
import { type BackfillRequest, findUnread, refuseRange } from './unread.ts';

export type Price = Awaited<ReturnType<typeof priceBackfill>>;

/** Consecutive pages overlap by the rows of one instant. */
const OVERLAP = 1.02;
/** Requests to find the beginning of a piece and to prove its end. */
const EDGE_REQUESTS = 2;
/** Requests to prove that a piece is empty: a single answer without rows proves nothing. */
const EMPTY_REQUESTS = 7;

export async function priceBackfill(
  deps: Pick<SyncDeps, 'state' | 'sinks' | 'signal'>,
  job: StreamJob,
  request: BackfillRequest,
) {
  refuseRange(deps, [job], request.window);
  const { signal } = deps;
  const { source, stream } = job;
  const { window, needs, unproven, seen: first } = await findUnread(deps, job, request);
  const toRead = joined(needs.flatMap(({ windows }) => windows));
  const isCounted = totalLength(toRead) === lengthOf(window) && !first.isFull;
  const probe = (part: Window) => job.probe(part, { lane: 'backfill', signal });
  const { parts, probes } = await estimateRows(toRead, first, window.start, probe);
  const rows = sum(parts.map((part) => part.rows));
  const pieces = toRead.length + Math.floor(rows / MAX_LIMIT / PAGES_PER_EDGE);
  // `probes` counts as well, because the backfill sends the same probes first.
  const toProve = EDGE_REQUESTS * pieces + EMPTY_REQUESTS * parts.filter((part) => part.rows === 0).length;
  const requests = probes + Math.ceil((rows / MAX_LIMIT) * OVERLAP) + toProve;
  return {
    source,
    stream,
    /** The requested window, up to the time that is old enough to be certified. */
    window,
    toRead,
    /** The share of the window, by time, that is already certified in every sink; it is skipped, unless forced. */
    certified: 1 - totalLength(unproven) / Math.max(1, lengthOf(window)),
    rows: Math.round(rows),
    /** Whether every row was counted; otherwise the number is extrapolated from the density at the probed times. */
    isCounted,
    requests,
    probes,
    /** The duration if nothing else uses the budget. */
    secondsAt(requestsPerSecond: number): number {
      // A larger plan does not make the service faster: requests within a piece are sequential.
      const atOnce = Math.max(1, Math.min(pieces, parallelism(first.tookMs, requestsPerSecond)));
      return Math.max(requests / requestsPerSecond, (requests * first.tookMs) / 1000 / atOnce);
    },
  };
}

const totalLength = (windows: readonly Window[]): number => sum(windows.map(lengthOf));

export type PriceReport = ReturnType<typeof reportPrices>;
export type StreamPrice = PriceReport['streams'][number];

export type SourcePrice = ReturnType<typeof costOf>;

/** The cost of backfills as JSON: the same for `backfill --dry-run --json` and the control room. */
export const reportPrices = (prices: readonly Price[], jobs: readonly StreamJob[]) => ({
  streams: prices.map(({ source, stream, window, toRead, secondsAt: _, ...price }) => ({
    ...{ source, stream, ...rangeOf(window), toRead: toRead.map(rangeOf) },
    ...price,
  })),
  sources: Object.fromEntries(sourcesOf(jobs).map((source) => [source, costOf(source, prices, jobs)])),
});

/** Streams of a source share its budget, so their requests add up. */
export function costOf(source: string, prices: readonly Price[], jobs: readonly StreamJob[]) {
  const own = prices.filter((price) => price.source === source);
  const sourceJobs = jobs.filter((job) => job.source === source);
  const perSecond = sourceJobs[0]?.requestsPerSecond ?? 1;
  const pollsPerSecond = sum(sourceJobs.map(({ everyMs }) => 1000 / everyMs));
  const secondsAt = (rate: number): number => sum(own.map((price) => price.secondsAt(rate)));
  return {
    current: { perSecond, seconds: secondsAt(perSecond) },
    others: Object.values(PLANS).flatMap(({ name, analyticsPerSecond: rate }) =>
      typeof rate === 'number' ? [{ plan: name, perSecond: rate, seconds: secondsAt(rate) }] : [],
    ),
    /** The share of the budget that syncs use meanwhile, as they have priority. */
    pollShare: Math.min(1, pollsPerSecond / perSecond),
  };
}

export const sourcesOf = (jobs: readonly StreamJob[]): string[] => [...new Set(jobs.map(({ source }) => source))];
