import { PLANS } from '../api/plans.ts';
import { toIso } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import type { StreamJob } from './job.ts';
import type { Price } from './price.ts';

/** What backfills will cost, for machines: `backfill --plan --json` and the control room say the same. */
export interface PriceReport {
  streams: StreamPrice[];
  sources: Record<string, SourcePrice>;
}

export interface StreamPrice {
  source: string;
  stream: StreamName;
  from: string;
  to: string;
  toRead: Array<{ from: string; to: string }>;
  /** The share of the time that is proven already and will be skipped, 0 to 1. */
  certified: number;
  rows: number;
  /** False: `rows` and `requests` are guesses. */
  isCounted: boolean;
  requests: number;
  /** Requests that finding this out took. */
  probes: number;
}

export interface SourcePrice {
  /** At the budget of the config. */
  current: { perSecond: number; seconds: number };
  /** On each plan of the service. */
  others: Array<{ plan: string; perSecond: number; seconds: number }>;
  /** The share of the budget that syncs use meanwhile: they go first. */
  pollShare: number;
}

export function reportPrices(prices: readonly Price[], jobs: readonly StreamJob[]): PriceReport {
  return {
    streams: prices.map((price) => ({
      source: price.source,
      stream: price.stream,
      from: toIso(price.window.start),
      to: toIso(price.window.end),
      toRead: price.toRead.map(({ start, end }) => ({ from: toIso(start), to: toIso(end) })),
      certified: price.certified,
      rows: price.rows,
      isCounted: price.isCounted,
      requests: price.requests,
      probes: price.probes,
    })),
    sources: Object.fromEntries(sourcesOf(jobs).map((source) => [source, costOf(source, prices, jobs)])),
  };
}

/** Streams of a source share its budget, so their requests add up. */
export function costOf(source: string, prices: readonly Price[], jobs: readonly StreamJob[]): SourcePrice {
  const own = prices.filter((price) => price.source === source);
  const ours = jobs.filter((job) => job.source === source);
  const perSecond = ours[0]?.requestsPerSecond ?? 1;
  const pollsPerSecond = sum(ours.map(({ everyMs }) => 1000 / everyMs));
  const pollShare = Math.min(1, pollsPerSecond / perSecond);
  const secondsAt = (rate: number): number => sum(own.map((price) => price.secondsAt(rate)));
  const others = Object.values(PLANS).flatMap(({ name, analyticsPerSecond: rate }) =>
    typeof rate === 'number' ? [{ plan: name, perSecond: rate, seconds: secondsAt(rate) }] : [],
  );
  return { current: { perSecond, seconds: secondsAt(perSecond) }, others, pollShare };
}

export const sourcesOf = (jobs: readonly StreamJob[]): string[] => [...new Set(jobs.map(({ source }) => source))];
export const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
