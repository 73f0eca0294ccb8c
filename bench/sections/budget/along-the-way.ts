import { budgetUse, countOf } from '../../../test/support/budget-processes.ts';
import { limiterOf } from '../../../test/support/odd-service/limiters.ts';
import { startSandbox } from '../../../test/support/odd-service/service.ts';
import { farAway } from '../../support/far-away.ts';
import type { Home } from '../../support/home.ts';
import type { Bar, Size, Table } from '../../support/report.ts';
import { listen, ROWS } from './listen.ts';
import {
  type Cell,
  cellsWith,
  type Found,
  JITTERS,
  LATENCY_MS,
  leastUse,
  PLANS,
  refusedIn,
  tableOf,
} from './matrix.ts';

/** Real processes, one on each plan, over a network with jitter. */
export async function alongTheWay(home: Home, size: Size): Promise<{ table: Table; bars: Bar[] }> {
  const seconds = size === 'quick' ? 6 : 30;
  const found: Found[] = [];
  // One plan at a time: concurrent processes would delay each other more than the network does.
  for (const jitterMs of JITTERS) {
    const cells = cellsWith(jitterMs);
    for (const plan of PLANS) {
      const ofPlan = cells.filter(({ perSecond }) => perSecond === plan);
      found.push(...(await ask(home, ofPlan, seconds)));
    }
  }
  const usual = found.filter(({ jitterMs }) => jitterMs <= 20);
  return {
    table: tableOf(`${seconds} seconds, real`, found),
    bars: [
      { says: 'real: use of the budget with up to 20 ms of jitter, the least', measured: leastUse(usual), least: 0.93 },
      { says: 'real: 429s with up to 20 ms of jitter', measured: refusedIn(usual), most: 0 },
    ],
  };
}

async function ask({ url: databaseUrl }: Home, cells: readonly Cell[], seconds: number): Promise<Found[]> {
  const places = await Promise.all(
    cells.map(async (cell) => {
      const { perSecond: requestsPerSecond, limiter, jitterMs } = cell;
      const apiKey = `key-${requestsPerSecond}-${limiter}-${jitterMs}`;
      const sandbox = await startSandbox({ apiKey, requestsPerSecond, limiter: limiterOf(limiter), rows: ROWS });
      const way = await farAway(sandbox.baseUrl, { latencyMs: LATENCY_MS, jitterMs });
      const client = { databaseUrl, baseUrl: way.baseUrl, apiKey, requestsPerSecond, lanes: ['fresh'] as const };
      return { cell, sandbox, way, client };
    }),
  );
  const logs = await listen(
    places.map(({ sandbox }) => sandbox),
    places.map(({ client }) => client),
    seconds,
  );
  await Promise.all(places.flatMap(({ way, sandbox }) => [way.close(), sandbox.close()]));
  return places.map(({ cell }, i) => {
    const log = logs[i] ?? [];
    return { ...cell, use: budgetUse(log, cell.perSecond), refused: countOf(log, 429) };
  });
}
