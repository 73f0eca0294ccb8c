import type { LimiterForm } from '../../../src/sandbox/limiter.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { budgetUse, countOf } from '../../../test/support/budget-processes.ts';
import { farAway } from '../../support/far-away.ts';
import type { Home } from '../../support/home.ts';
import { type Bar, count, ratio, type Size, type Table } from '../../support/report.ts';
import { listen } from './listen.ts';

const PLANS = [2, 4, 8];
const LIMITERS: readonly LimiterForm[] = ['fixed', 'sliding', 'weighted'];
const JITTERS = [0, 20, 50];
const LATENCY_MS = 300;
const ROWS = { clicks: 50, leads: 50, sales: 50 };

interface Cell {
  perSecond: number;
  limiter: LimiterForm;
  jitterMs: number;
}

interface Found extends Cell {
  use: number;
  refused: number;
}

/** One process each, on plans of every size, against services that count in every way, over a network that is never the same. */
export async function alongTheWay(home: Home, size: Size): Promise<{ table: Table; bars: Bar[] }> {
  const found: Found[] = [];
  for (const jitterMs of JITTERS) {
    // Nine at a time: all 27 would be held up by each other more than by the network.
    const cells = PLANS.flatMap((perSecond) => LIMITERS.map((limiter) => ({ perSecond, limiter, jitterMs })));
    found.push(...(await ask(home, cells, size === 'quick' ? 6 : 25)));
  }
  const of = (perSecond: number, limiter: LimiterForm): Found[] =>
    found.filter((one) => one.perSecond === perSecond && one.limiter === limiter);
  return {
    table: {
      head: ['plan', 'the service counts', ...JITTERS.flatMap((ms) => [`use, jitter ${ms} ms`, '429s'])],
      rows: PLANS.flatMap((perSecond) =>
        LIMITERS.map((limiter) => [
          ...[`${perSecond}/s`, `${limiter} seconds`],
          ...of(perSecond, limiter).flatMap(({ use, refused }) => [ratio(use), count(refused)]),
        ]),
      ),
    },
    bars: [
      {
        says: 'use of the budget, the least of these 27',
        measured: Math.min(...found.map(({ use }) => use)),
        least: 0.9,
      },
      { says: '429s, all of these together', measured: found.reduce((sum, { refused }) => sum + refused, 0), most: 0 },
    ],
  };
}

async function ask({ url: databaseUrl }: Home, cells: readonly Cell[], seconds: number): Promise<Found[]> {
  const places = await Promise.all(
    cells.map(async (cell, i) => {
      const { perSecond: requestsPerSecond, limiter, jitterMs } = cell;
      const apiKey = `key-${jitterMs}-${i}`;
      const sandbox = await startSandbox({ apiKey, requestsPerSecond, limiter, rows: ROWS });
      const way = await farAway(sandbox.baseUrl, { latencyMs: LATENCY_MS, jitterMs });
      const asker = { databaseUrl, baseUrl: way.baseUrl, apiKey, requestsPerSecond, lanes: ['fresh'] as const };
      return { cell, sandbox, way, asker };
    }),
  );
  const logs = await listen(
    places.map(({ sandbox }) => sandbox),
    places.map(({ asker }) => asker),
    seconds,
  );
  await Promise.all(places.flatMap(({ way, sandbox }) => [way.close(), sandbox.close()]));
  return places.map(({ cell }, i) => {
    const log = logs[i] ?? [];
    return { ...cell, use: budgetUse(log, cell.perSecond), refused: countOf(log, 429) };
  });
}
