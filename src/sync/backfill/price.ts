import { MAX_LIMIT } from '../../api/params.ts';
import { PLANS } from '../../api/plans.ts';
import type { Window } from '../../model/window.ts';

import { estimateRows, sum } from '../estimate.ts';
import type { StreamJob, SyncDeps } from '../job.ts';
import { PAGES_AN_EDGE } from '../parallel-sweep.ts';
import { parallelism } from '../parallelism.ts';
import { joined, rangeOf } from '../windows-to-read.ts';
import { type BackfillRequest, findUnread, refuseRange } from './unread.ts';

export type Price = Awaited<ReturnType<typeof priceBackfill>>;

/** Pages overlap by the rows of one instant. */
const OVERLAP = 1.02;
/** To find a piece's beginning and to prove its end. */
const EDGE_REQUESTS = 2;
/** That a piece without rows is empty takes several questions: an answer without rows alone proves nothing. */
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
  const openMs = lengthOf(toRead);
  const isWhole = openMs === window.end - window.start;
  const isCounted = isWhole && !first.isFull;
  const look = (place: Window) => job.probe(place, { lane: 'backfill', signal });
  const { parts, probes } = await estimateRows(toRead, first, window.start, look);
  const rows = sum(parts.map((part) => part.rows));
  const pieces = toRead.length + Math.floor(rows / MAX_LIMIT / PAGES_AN_EDGE);
  // The backfill looks around first as well.
  const toProve = EDGE_REQUESTS * pieces + EMPTY_REQUESTS * parts.filter((part) => part.rows === 0).length;
  const requests = probes + Math.ceil((rows / MAX_LIMIT) * OVERLAP) + toProve;
  return {
    source,
    stream,
    /** What was asked for, up to what is old enough to be called complete. */
    window,
    toRead,
    /** The part of the window, by time, that every sink has proven already; it is skipped, unless by force. */
    certified: 1 - lengthOf(unproven) / Math.max(1, window.end - window.start),
    rows: Math.round(rows),
    /** Every row was counted; otherwise guessed from how closely they follow each other at the places looked at. */
    isCounted,
    requests,
    probes,
    /** How long it takes where nothing else uses the budget. */
    secondsAt(requestsPerSecond: number): number {
      // A larger plan does not make the service faster: within a piece, requests run one after another.
      const atOnce = Math.max(1, Math.min(pieces, parallelism(first.tookMs, requestsPerSecond)));
      return Math.max(requests / requestsPerSecond, (requests * first.tookMs) / 1000 / atOnce);
    },
  };
}

const lengthOf = (windows: readonly Window[]): number => sum(windows.map(({ start, end }) => end - start));

export type PriceReport = ReturnType<typeof reportPrices>;
export type StreamPrice = PriceReport['streams'][number];

export type SourcePrice = ReturnType<typeof costOf>;

/** What backfills will cost, for machines: `backfill --dry-run --json` and the control room say the same. */
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
  const ours = jobs.filter((job) => job.source === source);
  const perSecond = ours[0]?.requestsPerSecond ?? 1;
  const pollsPerSecond = sum(ours.map(({ everyMs }) => 1000 / everyMs));
  const secondsAt = (rate: number): number => sum(own.map((price) => price.secondsAt(rate)));
  return {
    current: { perSecond, seconds: secondsAt(perSecond) },
    others: Object.values(PLANS).flatMap(({ name, analyticsPerSecond: rate }) =>
      typeof rate === 'number' ? [{ plan: name, perSecond: rate, seconds: secondsAt(rate) }] : [],
    ),
    /** The share of the budget that syncs use meanwhile: they go first. */
    pollShare: Math.min(1, pollsPerSecond / perSecond),
  };
}

export const sourcesOf = (jobs: readonly StreamJob[]): string[] => [...new Set(jobs.map(({ source }) => source))];
