import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { withQueue } from '../../src/app/worker.ts';
import type { Config } from '../../src/config/index.ts';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { type EmbeddedPostgres, openEmbedded } from '../../src/cursor/embedded/index.ts';
import { dataDirectory } from '../../src/cursor/embedded/state-folder.ts';
import { MIGRATIONS } from '../../src/cursor/migrations/index.ts';
import { migrate } from '../../src/cursor/migrations/migrate.ts';
import { type Fault, RetryLater } from '../../src/model/errors.ts';
import { STREAM_NAMES } from '../../src/model/streams.ts';
import { postmasterOf } from '../support/embedded.ts';
import { expectComplete, forgetProofs, storedIds, withSmallPages } from '../support/engine.ts';
import { freePort } from '../support/free-port.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase } from '../support/postgres.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { describeBackends, startWorker, type TestWorker, until, workerConfig } from '../support/workers.ts';

/**
 * Several real workers, and everything that can end or delay one in the middle of a run. In the end the tables hold the
 * service's events, each once.
 */

let server: EmbeddedPostgres;
let dir: string;
let superuser: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tributary-crash-'));
  const port = await freePort();
  const settings = { fsync: 'off', max_connections: '200', listen_addresses: '127.0.0.1', port: String(port) };
  server = await openEmbedded({ dir, log: silentLog, command: 'vitest', settings });
  const password = await readFile(join(dataDirectory(dir), 'tributary.password'), 'utf8');
  superuser = `postgresql://tributary:${password}@127.0.0.1:${port}/tributary`;
});
afterAll(async () => {
  await server.close();
  await rm(dir, { recursive: true, force: true });
});

interface Scene {
  db: Database;
  sandbox: Sandbox;
  config: Config;
  redis: TestRedis | undefined;
  workers: TestWorker[];
}

/** Answers are slow and pages small, so that every event falls into the middle of a run. */
async function openScene(backend: string): Promise<Scene> {
  const home = await freshDatabase(superuser);
  const [redis, sandbox] = await Promise.all([
    backend === 'redis' ? startRedis() : undefined,
    smallSandbox({ rows: { clicks: 2500, leads: 300, sales: 200 }, days: 12 }),
  ]);
  sandbox.service.faults.add({ delayMs: 15, times: 1_000_000 });
  const config = workerConfig({ stateUrl: home.url, queueUrl: redis?.url, sandboxes: { main: sandbox } });
  const db = connect({ url: home.url, max: 3 });
  await migrate(db, MIGRATIONS, { schema: 'tributary' });
  await withSmallPages(db, config, 10);
  const workers = [0, 1, 2].map(() => startWorker(config));
  await Promise.all(workers.map((worker) => worker.ready()));
  return { db, sandbox, config, redis, workers };
}

/** The worker that holds a stream and makes progress. */
async function holderOf({ db, workers }: Scene, stream = 'clicks'): Promise<TestWorker> {
  let found: TestWorker | undefined;
  await until(`one of the workers holds ${stream}`, async () => {
    const [lease] = await db.query<{ holder: string }>({
      text: 'select holder from tributary.leases where stream = $1 and expires_at > clock_timestamp()',
      values: [stream],
    });
    found = workers.find(({ pid, child }) => child.exitCode === null && lease?.holder.includes(`process ${pid} on`));
    return found !== undefined;
  });
  return found as TestWorker;
}

const epochOf = async (db: Database, stream: string): Promise<number> => {
  const rows = await db.query<{ epoch: number }>({
    text: 'select epoch from tributary.leases where stream = $1',
    values: [stream],
  });
  return rows[0]?.epoch ?? 0;
};

async function isComplete({ db, config, sandbox }: Scene): Promise<boolean> {
  for (const stream of STREAM_NAMES) {
    const stored = await storedIds(db, config, stream).catch(() => []);
    if (stored.length < sandbox.service.ids(stream).length) return false;
  }
  return true;
}

const schedulers = ({ config }: Scene): Promise<number> =>
  withQueue({ config, log: silentLog }, ({ queue }) => queue.queues.sync.getJobSchedulersCount()).catch(() => 0);

const arrive = ({ sandbox: { service } }: Scene, count: number): void => {
  for (const stream of STREAM_NAMES) service.arrive(stream, count, { from: service.now() - 60_000, to: service.now() });
};

/** Makes the lease expire in the database, instead of waiting a minute. */
async function letLeaseEnd({ db }: Scene, stream: string): Promise<void> {
  await db.query({
    text: `update tributary.leases set expires_at = clock_timestamp() - interval '1 s' where stream = $1`,
    values: [stream],
  });
}

/** Ends the connection of a process paused in a transaction, as the server does after five minutes: it would keep its locks. */
async function dropPaused({ db }: Scene): Promise<void> {
  await sleep(300);
  await db.query({
    text: `
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state like 'idle in transaction%'
        and state_change < clock_timestamp() - interval '200 ms'`,
  });
}

/** Does not wait for locks: waiting for one table while holding another could deadlock with a worker. */
async function emptyQueue(db: Database): Promise<boolean> {
  const tables = ['job', 'job_log', 'job_dependency', 'scheduler'].map((name) => `tributary_queue.${name}`).join(', ');
  const text = `lock table ${tables} in access exclusive mode nowait; truncate ${tables}`;
  return db
    .transaction((tx) => tx.query({ text }))
    .then(
      () => true,
      // Recovery: a worker holds a lock on one of them.
      (error: Fault) => (error instanceof RetryLater ? false : Promise.reject(error)),
    );
}

describeBackends('workers with their queue in %s', (backend) => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(backend);
  });

  it('continue the stream of a worker that is killed in the middle of a run', async () => {
    const victim = await holderOf(scene);
    const before = await epochOf(scene.db, 'clicks');
    victim.child.kill('SIGKILL');
    await victim.done;
    await until('another has the stream', async () => (await epochOf(scene.db, 'clicks')) > before);
    scene.workers = [...scene.workers.filter((worker) => worker !== victim), startWorker(scene.config)];
    await scene.workers.at(-1)?.ready();
  });

  it('reject writes of a worker that was paused for longer than its lease', async () => {
    // Reads everything again, so that a long run is active whatever the others have done meanwhile.
    await withSmallPages(scene.db, scene.config, 10);
    await forgetProofs(scene.db, scene.config);
    const [{ now } = { now: '' }] = await scene.db.query<{ now: string }>({ text: 'select now()::text as now' });
    await until('one that began since is under way', async () => {
      const rows = await scene.db.query({
        text: `select from tributary.runs where stream = 'clicks' and state = 'running' and started_at > $1::timestamptz`,
        values: [now],
      });
      return rows.length > 0;
    });
    const stopped = await holderOf(scene);
    stopped.child.kill('SIGSTOP');
    const before = await epochOf(scene.db, 'clicks');
    const runsBefore = stopped.runs().length;
    await dropPaused(scene);
    await letLeaseEnd(scene, 'clicks');
    await until('another has the stream', async () => (await epochOf(scene.db, 'clicks')) > before);
    stopped.child.kill('SIGCONT');
    const laterRun = () =>
      stopped
        .runs()
        .slice(runsBefore)
        .find(({ stream }) => stream === 'clicks');
    await until('it notices', () => laterRun() !== undefined);
    // A worker paused in a transaction has lost its connection as well.
    expect(laterRun()).toMatchObject({
      state: 'incomplete',
      fault: expect.stringMatching(/lost its lease|connection/),
    });
  });

  it('recover from an emptied queue and a restart of the queue or the database', async () => {
    arrive(scene, 5);
    if (scene.redis) {
      await scene.redis.command('FLUSHALL');
      await sleep(300);
      await scene.redis.stop();
      await sleep(300);
      await scene.redis.start();
    } else {
      await until('the queue is emptied', () => emptyQueue(scene.db));
    }
    await until('the schedulers are back', async () => (await schedulers(scene)) === STREAM_NAMES.length);
    arrive(scene, 5);
    const pid = await postmasterOf(dir);
    process.kill(pid ?? -1, 'SIGQUIT');
    await until('Postgres is back', async () => {
      const found = await postmasterOf(dir);
      return found !== undefined && found !== pid;
    });
    arrive(scene, 5);
  });

  it('have stored every event once in the end, and leave without leases', async () => {
    scene.sandbox.service.faults.clear();
    await until('all rows are there', () => isComplete(scene));
    for (const { child } of scene.workers) child.kill('SIGTERM');
    const ends = await Promise.all(scene.workers.map(({ done }) => done));
    // Shows the output of a worker that failed.
    expect(ends.map(({ code, stderr }) => (code || stderr.includes('a bug') ? stderr : 0))).toEqual([0, 0, 0]);
    await expectComplete(scene.db, scene.config, scene.sandbox);
    const held = await scene.db.query({ text: 'select from tributary.leases where expires_at > clock_timestamp()' });
    expect(held).toEqual([]);
    await scene.db.close();
  });
});
