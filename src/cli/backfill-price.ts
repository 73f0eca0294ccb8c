import { PLANS } from '../api/plans.ts';
import { toIso } from '../model/instant.ts';
import type { StreamJob } from '../sync/job.ts';
import type { Price } from '../sync/price.ts';
import { figure, table } from './terminal/table.ts';
import { duration } from './terminal/words.ts';

/** What a backfill will cost, for the person who decides whether to start it on a Friday evening. */
export function describePrices(prices: readonly Price[], jobs: readonly StreamJob[]): string {
  const rows = prices.map((price) => [
    `${price.source}/${price.stream}`,
    figure(price.toRead.length),
    `${Math.round(price.certified * 100)} %`,
    `${price.isCounted ? '' : '~'}${figure(price.rows)}`,
    figure(price.requests),
  ]);
  const [first] = prices;
  const range = first ? `${minute(first.window.start)} to ${minute(first.window.end)} UTC` : '';
  return [
    `what a backfill of ${range} will cost`,
    '',
    table(['stream', 'windows', 'certified', 'rows', 'requests'], rows),
    '',
    ...sourcesOf(jobs).flatMap((source) => describeSource(source, prices, jobs)),
    `looking took ${figure(sum(prices.map(({ probes }) => probes)))} requests; nothing was written`,
    ...(prices.every(({ isCounted }) => isCounted)
      ? []
      : ['~ is a guess, from how closely events follow each other here and there']),
    'next: the same without --plan; what is certified is skipped',
  ].join('\n');
}

function describeSource(source: string, prices: readonly Price[], jobs: readonly StreamJob[]): string[] {
  const { current, others, pollShare } = costOf(source, prices, jobs);
  return [
    `${source}: ${duration(current.seconds)} at ${current.perSecond}/s (${others.map(({ plan, seconds }) => `${plan} ${duration(seconds)}`).join(' · ')})`,
    `${' '.repeat(source.length)}  syncs go first (about ${Math.max(1, Math.round(pollShare * 100))} % of the budget) and wait for one request at most`,
  ];
}

/** Streams of a source share its budget, so their requests add up. */
function costOf(source: string, prices: readonly Price[], jobs: readonly StreamJob[]) {
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

/** The same for machines. */
export function priceJson(prices: readonly Price[], jobs: readonly StreamJob[]): object {
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

const sourcesOf = (jobs: readonly StreamJob[]): string[] => [...new Set(jobs.map(({ source }) => source))];
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
const minute = (instant: number): string => toIso(instant).slice(0, 16).replace('T', ' ');
