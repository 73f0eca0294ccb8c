import { afterAll, beforeAll, expect, it } from 'vitest';
import { runWorkerApp, withQueue } from '../../src/app/worker.ts';
import type { Config } from '../../src/config/index.ts';
import { claimWindow, endWindow, finishBackfills } from '../../src/cursor/backfills.ts';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import {
  type Backfill,
  type BackfillDeps,
  enqueueBackfills,
  readBackfills,
  steerBackfill,
} from '../../src/jobs/backfills.ts';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import type { RequestInfo } from '../../src/sandbox/requests.ts';
import { windowsOf } from '../support/backfills.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { stateDatabase, type TestDatabase } from '../support/postgres.ts';
import { freshRedis } from '../support/redis.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { describeBackends, FAST, until, workerConfig } from '../support/workers.ts';

const DAYS = 8;
const TODAY = startOfDay(Date.now());
const WINDOW = { start: TODAY - DAYS * DAY_MS, end: TODAY };
const CHUNKS = Array.from({ length: DAYS }, (_, i) => ({
  start: WINDOW.start + i * DAY_MS,
  end: WINDOW.start + (i + 1) * DAY_MS,
}));

describeBackends('a backfill in the queue, in %s', (backend) => {
  let home: TestDatabase;
  let db: Database;
  let sandbox: Sandbox;
  let redis: Awaited<ReturnType<typeof freshRedis>> | undefined;
  let config: Config;
  beforeAll(async () => {
    [home, sandbox] = await Promise.all([
      stateDatabase(),
      smallSandbox({ rows: { clicks: 400, leads: 60, sales: 40 }, days: DAYS }),
    ]);
    db = connect({ url: home.url, max: 3 });
    if (backend === 'redis') redis = await freshRedis();
    // Syncs begin today: older time is read only by backfills.
    config = workerConfig({
      stateUrl: home.url,
      queueUrl: redis?.url,
      sandboxes: { main: sandbox },
      streams: ['clicks'],
    });
    for (const source of Object.values(config.sources)) source.since = new Date(TODAY).toISOString().slice(0, 10);
  });
  afterAll(async () => {
    await db.close();
    await home.drop();
  });

  async function withWorker<T>(work: (deps: BackfillDeps) => Promise<T>): Promise<T> {
    const stop = new AbortController();
    const worker = runWorkerApp({ config, log: silentLog, signal: stop.signal, timings: FAST });
    try {
      return await withQueue({ config, log: silentLog }, work);
    } finally {
      stop.abort();
      await worker;
    }
  }
  const add = (deps: BackfillDeps, force = false): Promise<string> =>
    enqueueBackfills(deps, [{ source: 'main', stream: 'clicks', window: WINDOW, force, chunks: CHUNKS }]).then(
      ([id = '']) => id,
    );
  const read = async (id: string): Promise<Backfill> => (await readBackfills(db, id))[0] as Backfill;
  const isOver = (id: string, state: string) =>
    until(`${id} is ${state}`, async () => (await read(id)).state === state);
  const storedBefore = async (end: number): Promise<number> => {
    const [row] = await db.query<{ n: number }>({
      text: 'select count(*) as n from attribution.clicks where timestamp < $1',
      values: [new Date(end).toISOString()],
    });
    return row?.n ?? 0;
  };
  const served = (): number => sandbox.service.ids('clicks').length;

  it('fails only the window that cannot be read, and retries only that one', async () => {
    const bad = CHUNKS[3]?.start ?? 0;
    const isBad = ({ query }: RequestInfo): boolean => Math.abs(Date.parse(query.start ?? '') - bad) < 2000;
    sandbox.service.faults.add({ status: 404, times: 1_000_000, when: isBad });
    await withWorker(async (deps) => {
      const id = await add(deps);
      await isOver(id, 'failed');
      const windows = await windowsOf(db, id);
      expect(windows.map(({ state }) => state)).toEqual(CHUNKS.map((_, i) => (i === 3 ? 'failed' : 'done')));
      expect((await read(id)).message).toContain('the service answered 404');

      sandbox.service.faults.clear();
      const before = await db.query({ text: `select from tributary.runs where kind = 'backfill'` });
      await steerBackfill(deps, id, 'retry');
      await isOver(id, 'done');
      const after = await db.query({ text: `select from tributary.runs where kind = 'backfill'` });
      expect(after.length - before.length).toBe(1);
      expect((await read(id)).windows).toEqual({ queued: 0, running: 0, done: DAYS, failed: 0 });
      // A sync reads today's rows.
      await until('everything is there', async () => (await storedBefore(TODAY + 9 * DAY_MS)) === served());
    });
  });

  it('reads nothing when everything is certified, and all of it when forced', async () => {
    await withWorker(async (deps) => {
      const [idle, forced] = [await add(deps), await add(deps, true)];
      await isOver(idle, 'done');
      await isOver(forced, 'done');
      expect((await read(idle)).rows).toBe(0);
      expect((await read(forced)).rows).toBeGreaterThanOrEqual(await storedBefore(TODAY));
    });
  });

  it('is paused and resumed, survives a queue that loses it, and can be cancelled', async () => {
    sandbox.service.faults.add({ delayMs: 150, times: 1_000_000 });
    await withWorker(async (deps) => {
      const id = await add(deps, true);
      await until('some windows are done', async () => (await read(id)).windows.done >= 1);
      await steerBackfill(deps, id, 'pause');
      await until('nothing runs', async () => (await read(id)).windows.running === 0);
      const paused = await read(id);
      expect(paused.windows.done).toBeLessThan(DAYS);
      await expect(steerBackfill(deps, id, 'pause')).rejects.toThrow('is paused, so it cannot become paused');
      await until('a sync went by', async () => {
        const [row] = await db.query<{ n: number }>({
          text: `select count(*) as n from tributary.runs where kind = 'sync' and finished_at > now() - interval '1 s'`,
        });
        return (row?.n ?? 0) > 0;
      });
      expect((await read(id)).windows).toEqual(paused.windows);

      await redis?.command('FLUSHDB');
      sandbox.service.faults.clear();
      await steerBackfill(deps, id, 'resume');
      await isOver(id, 'done');

      sandbox.service.faults.add({ delayMs: 150, times: 1_000_000 });
      const other = await add(deps, true);
      await until('it runs', async () => (await read(other)).windows.running === 1);
      await steerBackfill(deps, other, 'cancel');
      await until('nothing runs', async () => (await read(other)).windows.running === 0);
      expect((await read(other)).state).toBe('cancelled');
      await expect(steerBackfill(deps, other, 'resume')).rejects.toThrow('was cancelled');
      await expect(steerBackfill(deps, 'nonsense', 'cancel')).rejects.toThrow('there is no backfill "nonsense"');
    });
    expect(await storedBefore(TODAY + 9 * DAY_MS)).toBe(served());
  });
});

it('a retry is not undone by a worker that looks for ended backfills at that moment', async () => {
  const home = await stateDatabase();
  const db = connect({ url: home.url, max: 3 });
  // Between any two statements, where a tick of the worker may run.
  const state: Database = {
    ...db,
    async query(sql) {
      await finishBackfills(db);
      return db.query(sql);
    },
  };
  const queue: BackfillDeps['queue'] = { flow: async () => {}, enqueue: async () => {}, promote: async () => {} };
  const deps = { state, queue };
  const request = { source: 'main', stream: 'clicks', window: WINDOW, force: false, chunks: CHUNKS } as const;
  const [id = ''] = await enqueueBackfills(deps, [request]);
  for (const [i, { start }] of CHUNKS.entries()) {
    await claimWindow(db, id, start);
    await endWindow(db, id, start, { state: i === 3 ? 'failed' : 'done', rows: 0, tried: true });
  }
  await expect(steerBackfill(deps, id, 'retry')).resolves.toBeUndefined();
  expect((await readBackfills(state, id))[0]).toMatchObject({
    state: 'queued',
    windows: { queued: 1, done: DAYS - 1 },
  });
  await expect(steerBackfill(deps, id, 'retry')).rejects.toThrow('is under way, so it cannot become queued');
  await db.close();
  await home.drop();
});
