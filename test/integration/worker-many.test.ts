import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { TIMINGS } from '../../src/jobs/schedule.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { stateDatabase, type TestDatabase } from '../support/postgres.ts';
import { hasRedis } from '../support/redis.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { FAST, queueUrl, startWorker, type TestWorker, until, workerConfig } from '../support/workers.ts';

/** Fifty sources on three workers, one of the sources so slow that its requests never return. */

const SOURCES = 50;
let home: TestDatabase;
let db: Database;
let quick: Sandbox;
let config: Config;
let workers: TestWorker[];
const timings = { ...FAST, lockMs: TIMINGS.lockMs };

beforeAll(async () => {
  const slow = await smallSandbox({ apiKey: 'slow-key' });
  [home, quick] = await Promise.all([stateDatabase(), smallSandbox({ rows: { clicks: 10 } })]);
  slow.service.faults.add({ hang: true, times: 1_000_000 });
  db = connect({ url: home.url, max: 2 });
  const names = Array.from({ length: SOURCES - 1 }, (_, i) => [`s${i}`, quick] as const);
  config = workerConfig({
    stateUrl: home.url,
    queueUrl: await queueUrl('redis'),
    sandboxes: { slow, ...Object.fromEntries(names) },
    streams: ['clicks'],
    every: '6s',
  });
  workers = [0, 1, 2].map(() => startWorker(config, timings));
  await Promise.all(workers.map((worker) => worker.ready()));
});
afterAll(async () => {
  await db.close();
  await home.drop();
});

const doneBy = (worker: TestWorker, from = 0): number =>
  worker
    .runs()
    .slice(from)
    .filter(({ state }) => state === 'done').length;

it.skipIf(!hasRedis)('every other source is polled repeatedly', async () => {
  await until('each has run twice', async () => {
    const rows = await db.query<{ source: string; runs: number }>({
      text: `select source, count(*) as runs from tributary.runs where state = 'done' group by source having count(*) >= 2`,
    });
    return rows.length === SOURCES - 1;
  });
  const stuck = await db.query<{ state: string }>({ text: `select state from tributary.runs where source = 'slow'` });
  expect(stuck.map(({ state }) => state)).toEqual(['running']);
});

it.skipIf(!hasRedis)('the work is distributed evenly: each has between half and twice its share', async () => {
  // From here on: the first worker to start had the first round alone.
  const before = workers.map((worker) => worker.runs().length);
  await until('many more runs', () => workers.reduce((sum, worker, i) => sum + doneBy(worker, before[i]), 0) >= 75);
  const counts = workers.map((worker, i) => doneBy(worker, before[i]));
  const fair = counts.reduce((sum, count) => sum + count, 0) / workers.length;
  for (const count of counts) {
    expect(count / fair).toBeGreaterThan(0.5);
    expect(count / fair).toBeLessThan(2);
  }
});

it.skipIf(!hasRedis)(
  'three workers with three schedulers and three tickers run a stream no more often than its schedule says',
  async () => {
    const rows = await db.query<{ runs: number; periods: number }>({
      text: `
      select count(*) as runs, extract(epoch from max(started_at) - min(started_at))::float8 / 6 as periods
      from tributary.runs where source <> 'slow' group by source`,
    });
    // The first run is immediate, its second at the stream's own second of the period: hence two more than periods.
    expect(rows.filter(({ runs, periods }) => runs > periods + 2.5)).toEqual([]);
  },
);

it.skipIf(!hasRedis)('a worker may leave and another join, without coordination', async () => {
  const [first] = workers;
  const next = startWorker(config, timings);
  first?.child.kill('SIGTERM');
  const { code, stdout } = (await first?.done) ?? {};
  expect(code).toBe(0);
  // Busy, but never long enough to lose a job.
  const { longestMs } = JSON.parse(stdout?.trim().split('\n').at(-1) ?? '{}') as { longestMs: number };
  expect(longestMs / TIMINGS.lockMs).toBeLessThan(0.25);
  await until('the new one has its share', () => doneBy(next) >= 10);
});
