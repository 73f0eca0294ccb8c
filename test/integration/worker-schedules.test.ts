import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { claimDue, readSchedules } from '../../src/cursor/schedules.ts';
import { createQueue, type JobQueue } from '../../src/jobs/bull.ts';
import { syncJob } from '../../src/jobs/payloads.ts';
import { byStreamKey, type ScheduledStream, scheduleText } from '../../src/jobs/schedule.ts';
import { applyConfig } from '../../src/jobs/ticker.ts';
import type { Upkeep } from '../../src/jobs/watchdog.ts';
import type { StreamName } from '../../src/model/streams.ts';
import { stateDatabase, type TestDatabase } from '../support/postgres.ts';
import { hasRedis, startRedis } from '../support/redis.ts';
import { silentLog } from '../support/silent-log.ts';
import { describeBackends, queueUrl, until } from '../support/workers.ts';

const plan = (source: string, stream: StreamName, every: number): ScheduledStream => ({
  job: { source, stream } as ScheduledStream['job'],
  schedule: scheduleText({ every }, `${source}/${stream}`),
  maxLagMs: undefined,
  fingerprint: 'f',
});

const upkeep: Upkeep = (_what, work) => work(new AbortController().signal);

describeBackends('schedules with the queue in %s', (backend) => {
  let home: TestDatabase;
  let state: Database;
  let queues: JobQueue[];
  beforeAll(async () => {
    home = await stateDatabase();
    state = connect({ url: home.url, max: 4 });
    const url = await queueUrl(backend);
    const open = () => createQueue({ url, stateUrl: home.url, log: silentLog });
    queues = await Promise.all([open(), open()]);
  });
  afterAll(async () => {
    for (const queue of queues) await queue.close();
    await state.close();
    await home.drop();
  });

  const apply = (queue: JobQueue | undefined, ...scheduled: ScheduledStream[]): Promise<void> => {
    if (!queue) throw new Error('no queue');
    return applyConfig({ state, queue, scheduled: byStreamKey(scheduled), upkeep });
  };
  const schedulers = async () => {
    const all = (await queues[0]?.queues.sync.getJobSchedulers()) ?? [];
    return all.map(({ key, pattern }) => `${key} ${pattern?.replace(/ from .*/, '')}`).sort();
  };
  const delayed = async (): Promise<number> => (await queues[0]?.queues.sync.getDelayedCount()) ?? -1;
  const planned = async (): Promise<string[]> =>
    (await state.query<{ key: string }>({ text: `select source || '/' || stream as key from tributary.schedules` }))
      .map(({ key }) => key)
      .sort();

  it('two workers that start at once create one scheduler per stream, with one pending job', async () => {
    const scheduled = [plan('a', 'clicks', 60_000), plan('a', 'leads', 60_000), plan('b', 'clicks', 3_600_000)];
    await Promise.all(queues.map((queue) => apply(queue, ...scheduled)));
    expect(await schedulers()).toEqual([
      'sync.a.clicks every 60000 ms',
      'sync.a.leads every 60000 ms',
      'sync.b.clicks every 3600000 ms',
    ]);
    expect(await delayed()).toBe(3);
    expect(await planned()).toEqual(['a/clicks', 'a/leads', 'b/clicks']);
  });

  it('a changed config updates them, and removes those that it no longer has', async () => {
    await apply(queues[1], plan('a', 'clicks', 120_000), plan('b', 'clicks', 3_600_000));
    expect(await schedulers()).toEqual(['sync.a.clicks every 120000 ms', 'sync.b.clicks every 3600000 ms']);
    expect(await delayed()).toBe(2);
    expect(await planned()).toEqual(['a/clicks', 'b/clicks']);
  });

  it('one of many concurrent callers takes the turn of a due stream', async () => {
    const stream = { source: 'a', stream: 'clicks' } as const;
    const claim = () => claimDue(state, stream, { earlyMs: 1000, forMs: 60_000 });
    const turns = await Promise.all(Array.from({ length: 8 }, claim));
    expect(turns.filter(Boolean)).toHaveLength(1);
    const [next] = (await readSchedules(state)).filter(({ source }) => source === 'a');
    expect((next?.nextRunAt ?? 0) - (next?.now ?? 0)).toBeGreaterThan(50_000);
  });

  it('a stream has one hint at a time, however often it is given', async () => {
    const hint = syncJob({ source: 'a', stream: 'clicks' });
    await Promise.all([...queues, ...queues].map((queue) => queue.enqueue('sync', hint)));
    expect(await queues[0]?.waiting('sync')).toBe(1);
    const seen: unknown[] = [];
    const worker = await queues[0]?.work('sync', {
      concurrency: 2,
      lockMs: 5000,
      handle: async (data) => void seen.push(data),
    });
    await until('the hint is followed', () => seen.length > 0);
    // Followed and deleted: the next one is new.
    await until('it is gone', async () => (await queues[0]?.queues.sync.getActiveCount()) === 0);
    await queues[1]?.enqueue('sync', hint);
    await until('the next is followed', () => seen.length > 1);
    expect(seen).toEqual([hint.data, hint.data]);
    await worker?.close();
  });

  it('a deferred job returns later, or at once when it is promoted', async () => {
    let times = 0;
    const hint = { id: 'backfill.x.1', name: 'x', data: { backfill: 'x', start: 1 } };
    await queues[0]?.enqueue('backfill', hint);
    const worker = await queues[0]?.work('backfill', {
      concurrency: 1,
      lockMs: 5000,
      handle: async () => (++times === 1 ? 3_600_000 : undefined),
    });
    await until('it is deferred', async () => (await queues[0]?.queues.backfill.getDelayedCount()) === 1);
    await queues[1]?.promote(hint.id);
    await until('it is run again', () => times === 2);
    await worker?.close();
  });
});

describe.skipIf(!hasRedis)('an unusable Redis', () => {
  const open = (url: string) => createQueue({ url, stateUrl: 'postgresql://nobody@127.0.0.1:1/x', log: silentLog });

  it('is refused if it evicts keys, with the remedy, and accepted after it', async () => {
    const redis = await startRedis({ 'maxmemory-policy': 'allkeys-lru' });
    await expect(open(redis.url)).rejects.toMatchObject({
      name: 'ConfigError',
      message: expect.stringContaining('maxmemory-policy is allkeys-lru'),
      next: expect.stringContaining('redis-cli config set maxmemory-policy noeviction'),
    });
    expect(await redis.command('DBSIZE')).toBe(0);
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    await (await open(redis.url)).close();
  });

  it('is refused with a wrong password, which is not shown', async () => {
    const redis = await startRedis({ requirepass: 'right' });
    const url = redis.url.replace('right', 'wr0ng');
    const error = await open(url).catch((failure: Error) => failure);
    expect(error).toMatchObject({
      name: 'ConfigError',
      message: expect.stringMatching(/refused the connection: WRONGPASS/),
    });
    expect(JSON.stringify(error) + (error as Error).stack).not.toContain('wr0ng');
  });

  it('is a retryable error if unreachable', async () => {
    await expect(open('redis://127.0.0.1:1')).rejects.toMatchObject({
      name: 'RetryLater',
      message: 'Redis at 127.0.0.1:1 cannot be reached (ECONNREFUSED)',
    });
  });
});
