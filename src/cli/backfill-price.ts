import { toIso } from '../model/instant.ts';
import type { StreamJob } from '../sync/job.ts';
import type { Price } from '../sync/price.ts';
import { costOf, sourcesOf, sum } from '../sync/price-report.ts';
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

const minute = (instant: number): string => toIso(instant).slice(0, 16).replace('T', ' ');
