import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runWorkerApp } from '../../src/app/worker.ts';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { freshPlace, type Place } from '../support/cli.ts';
import { storedIds } from '../support/engine.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox, sorted } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { describeBackends, FAST, queueUrl, until, workerConfig } from '../support/workers.ts';

const CLICKS = 3000;

describeBackends('tributary worker with its queue in %s', (backend) => {
  let place: Place;
  let sandbox: Sandbox;
  let home: TestDatabase;
  let db: Database;
  let text: string;
  beforeAll(async () => {
    [place, sandbox, home] = await Promise.all([
      freshPlace(),
      smallSandbox({ rows: { clicks: CLICKS } }),
      freshDatabase(),
    ]);
    db = connect({ url: home.url, max: 2 });
    const queue = await queueUrl(backend);
    text = `sources: { main: { baseUrl: "${sandbox.baseUrl}", apiKey: "\${KEY}", plan: enterprise, requestsPerSecond: RATE, since: 40d, streams: { clicks: { every: 1s } } } }
state: { url: "${home.url}" }
${queue ? `queue: { url: "${queue}" }` : ''}`;
  });
  afterAll(async () => {
    await db.close();
    await home.drop();
  });
  const start = async (rate: number) => {
    await place.config(text.replace('RATE', String(rate)));
    return place.start(['worker', '--config', 't.yaml'], { KEY: sandbox.apiKey });
  };
  const asked = (times: number) => until('it sends requests', () => sandbox.service.log.entries.length >= times);
  const held = () => db.query({ text: 'select from tributary.leases where expires_at > clock_timestamp()' });

  it('ends at SIGTERM with its current work, releases the stream, and exits with code 0', async () => {
    const worker = await start(2);
    await asked(3);
    expect(await held()).toHaveLength(1);
    const began = Date.now();
    worker.child.kill('SIGTERM');
    const { code, stdout, stderr } = await worker.done;
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('working on 1 stream ') });
    expect((Date.now() - began) / 25_000).toBeLessThan(1);
    expect(stdout).toMatch(/^\S+Z main\/clicks interrupted · /m);
    expect(await held()).toEqual([]);
    // Waiting jobs are due at once: for another worker, or for this one after a restart.
    const [{ due } = { due: false }] = await db.query<{ due: boolean }>({
      text: 'select next_run_at <= now() as due from tributary.schedules',
    });
    expect(due).toBe(true);
  });

  it('ends immediately at the second signal', async () => {
    const worker = await start(1);
    await asked(sandbox.service.log.entries.length + 1);
    worker.child.kill('SIGINT');
    worker.child.kill('SIGTERM');
    expect((await worker.done).code).toBe(130);
  });

  it('nothing was lost either way: the next worker finishes the work', async () => {
    const worker = await start(100);
    const config = workerConfig({ stateUrl: home.url, queueUrl: undefined, sandboxes: { main: sandbox } });
    await until(
      'all rows are there',
      async () => (await storedIds(db, config, 'clicks').catch(() => [])).length === CLICKS,
    );
    worker.child.kill('SIGTERM');
    const { code, text: printed } = await worker.done;
    expect(code).toBe(0);
    expect(printed).not.toContain(sandbox.apiKey);
    expect(sorted(await storedIds(db, config, 'clicks'))).toEqual(sorted(sandbox.service.ids('clicks')));
  });
});

it('runs end on an abort at any point', async () => {
  const [home, sandbox] = await Promise.all([freshDatabase(), smallSandbox()]);
  const config = workerConfig({ stateUrl: home.url, queueUrl: undefined, sandboxes: { a: sandbox, b: sandbox } });
  const late: string[] = [];
  const log = {
    ...silentLog,
    warn: (fields: object, text: string) => void late.push(`${text} ${JSON.stringify(fields)}`),
  };
  for (let round = 0; round < 6; round++) {
    const stop = new AbortController();
    const worker = runWorkerApp({ config, log, signal: stop.signal, timings: { ...FAST, closeMs: 5000 } });
    await sleep(500 + round * 150);
    stop.abort();
    await worker;
  }
  expect(late.filter((line) => line.includes('did not end in time'))).toEqual([]);
  await home.drop();
});

it('a run that does not end in time is abandoned, and is no bug when its connections are closed', async () => {
  const [home, sandbox] = await Promise.all([freshDatabase(), smallSandbox()]);
  const config = workerConfig({ stateUrl: home.url, queueUrl: undefined, sandboxes: { main: sandbox }, every: '1h' });
  const logged: string[] = [];
  const record = (_fields: object, text: string): void => void logged.push(text);
  const log = { ...silentLog, warn: record, error: record, debug: record };
  const db = connect({ url: home.url, max: 2 });
  const stop = new AbortController();
  sandbox.service.faults.add({ delayMs: 300, times: 100 });
  const worker = runWorkerApp({ config, log, signal: stop.signal, timings: { ...FAST, closeMs: 50 } });
  await until('its runs send requests', () => sandbox.service.log.entries.length >= 3);
  // Every later write of theirs blocks, until long after the worker has exited.
  let lock = await db.begin();
  const locked = (): Promise<boolean> =>
    lock
      .query({
        text: 'lock table tributary.runs, tributary.leases, tributary.schedules in access exclusive mode nowait',
      })
      .then(() => true)
      // Locked in turn, they can deadlock with a transaction that locks them in another order.
      .catch(async () => {
        await lock.rollback();
        lock = await db.begin();
        return false;
      });
  await until('the tables are locked', locked);
  const waiting = `select from pg_locks where not granted and relation = 'tributary.schedules'::regclass`;
  await until('the ticker waits, too', async () => (await db.query({ text: waiting })).length > 0);
  stop.abort();
  await until('they are abandoned', () => logged.some((text) => text.includes('did not end in time')));
  await sleep(200);
  await lock.rollback();
  await worker;
  await until('they have ended', () => logged.some((text) => text.includes('that was given up has ended')));
  expect(logged.filter((text) => text.includes('bug'))).toEqual([]);
  await db.close();
  await home.drop();
});
