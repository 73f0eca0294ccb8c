import { setTimeout as sleep } from 'node:timers/promises';
import type { Lane } from '../../../src/api/budget.ts';
import type { Database } from '../../../src/cursor/database/index.ts';
import { budgetUse, countOf, laneShare } from '../../../test/support/budget-processes.ts';
import { startSandbox } from '../../../test/support/odd-service/service.ts';
import { withHome } from '../../support/home.ts';
import { type Bar, count, percent, ratio, type Size, type Table } from '../../support/report.ts';
import { listen, ROWS } from './listen.ts';
import { PLANS } from './matrix.ts';

const PROCESSES = [1, 4];

interface Found {
  perSecond: number;
  processes: number;
  use: number;
  refused: number;
  backfill: number;
  statements: number;
}

/** One budget shared by processes close to a service that counts sliding seconds, and its cost for the database. */
export async function byProcesses(size: Size): Promise<{ table: Table; bars: Bar[] }> {
  const found: Found[] = [];
  for (const processes of PROCESSES) {
    found.push(...(await Promise.all(PLANS.map((perSecond) => ask(perSecond, processes, size === 'quick' ? 6 : 20)))));
  }
  const inOrder = found.sort((a, b) => a.perSecond - b.perSecond || a.processes - b.processes);
  return {
    table: {
      head: ['plan', 'processes', 'use', '429s', 'share of the backfill', 'statements a request'],
      rows: inOrder.map((one) => [
        ...[`${one.perSecond}/s`, one.processes, ratio(one.use), count(one.refused)],
        ...[percent(one.backfill), one.statements.toFixed(1)],
      ]),
    },
    bars: [
      {
        says: 'shared: use of the budget, the least',
        measured: Math.min(...found.map(({ use }) => use)),
        least: 0.95,
      },
    ],
  };
}

/** A server for each, for a separate count of transactions. */
const ask = (perSecond: number, processes: number, seconds: number): Promise<Found> =>
  withHome(({ db, url }) => askOn(db, url, perSecond, processes, seconds));

async function askOn(
  db: Database,
  databaseUrl: string,
  perSecond: number,
  processes: number,
  seconds: number,
): Promise<Found> {
  const apiKey = `bench_${perSecond}_${processes}`;
  const sandbox = await startSandbox({ apiKey, requestsPerSecond: perSecond, rows: ROWS });
  const { baseUrl } = sandbox;
  const lanesOf = (i: number): Lane[] => (processes === 1 ? ['fresh', 'backfill'] : [i < 3 ? 'fresh' : 'backfill']);
  const clients = Array.from({ length: processes }, (_, i) => ({
    ...{ databaseUrl, baseUrl, apiKey, requestsPerSecond: perSecond, lanes: lanesOf(i) },
  }));
  const commits = async (): Promise<number> => {
    await sleep(1500); // The server updates its statistics once a second.
    const [row] = await db.query<{ n: number }>({
      text: 'select xact_commit::float8 as n from pg_stat_database where datname = current_database()',
    });
    return row?.n ?? 0;
  };
  const before = await commits();
  const [log = []] = await listen([sandbox], clients, seconds);
  const statements = ((await commits()) - before) / sandbox.service.log.entries.length;
  await sandbox.close();
  return {
    ...{ perSecond, processes, statements },
    ...{ use: budgetUse(log, perSecond), refused: countOf(log, 429), backfill: laneShare(log, 'backfill') },
  };
}
