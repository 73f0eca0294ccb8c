import type { LimiterForm } from '../../../test/support/odd-service/limiters.ts';
import { count, ratio, type Table } from '../../support/report.ts';

/** Plans of every size, services with every way of counting, and latencies with jitter. */
export const PLANS = [2, 4, 8] as const;
const LIMITERS: readonly LimiterForm[] = ['fixed', 'sliding', 'weighted'];
export const JITTERS = [0, 20, 50] as const;
/** The round trip. */
export const LATENCY_MS = 300;

export interface Cell {
  perSecond: number;
  limiter: LimiterForm;
  /** The maximal delay added to each direction. */
  jitterMs: number;
}

export interface Found extends Cell {
  use: number;
  refused: number;
}

export const cellsWith = (jitterMs: number): Cell[] =>
  PLANS.flatMap((perSecond) => LIMITERS.map((limiter) => ({ perSecond, limiter, jitterMs })));

export const leastUse = (found: readonly Found[]): number => Math.min(...found.map(({ use }) => use));
export const refusedIn = (found: readonly Found[]): number => found.reduce((sum, { refused }) => sum + refused, 0);

export const tableOf = (title: string, found: readonly Found[]): Table => ({
  head: [title, 'the service counts', ...JITTERS.flatMap((ms) => [`use, jitter ${ms} ms`, '429s'])],
  rows: cellsWith(0).map(({ perSecond, limiter }) => [
    ...[`${perSecond}/s`, `${limiter} seconds`],
    ...found
      .filter((one) => one.perSecond === perSecond && one.limiter === limiter)
      .flatMap(({ use, refused }) => [ratio(use), count(refused)]),
  ]),
});
