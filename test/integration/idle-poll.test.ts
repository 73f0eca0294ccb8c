import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { withSyncApp } from '../../src/app/index.ts';
import type { Config } from '../../src/config/index.ts';
import { connect } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { writeSchedules } from '../../src/cursor/schedules.ts';
import { runDueStream } from '../../src/jobs/run-job.ts';
import { byStreamKey, TIMINGS } from '../../src/jobs/schedule.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { workerConfig } from '../support/workers.ts';

/** The cost of most polls: nothing is new. The server counts all transactions that a poll causes. */

const SOURCES = ['a', 'b', 'c'];
const MORE_POLLS = 2;
/** Transactions of a poll. */
const BAR = 6;
/** Longer than a connection to the service stays warm: polls that are minutes apart never find one. */
const APART_MS = 3100;

/** Runs a process from start to end: so many idle polls of every source. */
const pollAll = (config: Config, polls: number, apartMs = APART_MS): Promise<void> =>
  withSyncApp({ config, log: silentLog }, async ({ state, sinks, jobs }) => {
    const plans = jobs.map((job) => ({ job, schedule: 'every 1 ms from 0', maxLagMs: undefined, fingerprint: 'x' }));
    await writeSchedules(
      state,
      plans.map(({ job: { source, stream }, schedule }) => ({ source, stream, plan: schedule })),
    );
    const scheduled = byStreamKey(plans);
    const deps = { state, sinks, log: silentLog, holder: 'me', onProgress: () => {}, timings: TIMINGS, scheduled };
    for (let poll = 0; poll < polls; poll += 1) {
      await sleep(apartMs);
      for (const job of jobs) {
        const report = await runDueStream(deps, job, new AbortController().signal);
        expect(report?.state).toBe('done');
      }
    }
  });

it('a poll that finds nothing new costs at most six transactions and one request', async () => {
  const home = await quietServer();
  const sandbox = (seed: number) => smallSandbox({ rows: { clicks: 60, leads: 0, sales: 0 }, days: 3, seed });
  const sandboxes = await Promise.all(SOURCES.map((_, i) => sandbox(i + 1)));
  const config = workerConfig({
    stateUrl: home.url,
    queueUrl: undefined,
    sandboxes: Object.fromEntries(SOURCES.map((name, i) => [name, sandboxes[i] ?? never()])),
    streams: ['clicks'],
  });
  const server = connect({ url: home.url.replace(/[^/]*$/, 'template1'), max: 1 });
  const values = [new URL(home.url).pathname.slice(1)];
  const number = async (text: string): Promise<number> =>
    (await server.query<{ n: number }>({ text, values }))[0]?.n ?? never();
  /** A connection reports its statistics when its server process ends, which may be after the client has left. */
  const transactions = async (): Promise<number> => {
    while ((await number('select count(*)::int as n from pg_stat_activity where datname = $1')) > 0) await sleep(20);
    return number('select xact_commit + xact_rollback as n from pg_stat_database where datname = $1');
  };
  const requests = (): number => sandboxes.reduce((sum, { service }) => sum + service.requests.length, 0);
  /** Each measurement opens its own connections and waits for their end. */
  const cost = async (polls: number): Promise<{ transactions: number; requests: number }> => {
    const before = { transactions: await transactions(), requests: requests() };
    await pollAll(config, polls);
    return { transactions: (await transactions()) - before.transactions, requests: requests() - before.requests };
  };
  // The first ones read, and learn the usual pace.
  await pollAll(config, 2, 10);
  const polls = MORE_POLLS * SOURCES.length;
  const few = await cost(1);
  let least = Number.POSITIVE_INFINITY;
  // Late requests of a busy machine take their slot in the budget again. They only add, so the minimum of three is the cost.
  for (let round = 0; round < 3 && least > BAR; round += 1) {
    const more = await cost(1 + MORE_POLLS);
    expect((more.requests - few.requests) / polls).toBe(1);
    least = Math.min(least, (more.transactions - few.transactions) / polls);
  }
  await server.close();
  await home.close();
  expect(least).toBeLessThanOrEqual(BAR);
});

/** A separate server without autovacuum, whose transactions would be counted. */
async function quietServer(): Promise<{ url: string; close(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'tributary-idle-'));
  const settings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', autovacuum: 'off' };
  const server = await openEmbedded({ dir, log: silentLog, command: 'vitest', settings });
  return {
    url: server.url,
    async close() {
      await server.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function never(): never {
  throw new Error('it is there');
}
