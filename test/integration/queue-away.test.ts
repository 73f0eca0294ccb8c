import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { writeSchedules } from '../../src/cursor/schedules.ts';
import { enqueueBackfills, enqueueWindows, readBackfills, syncNow } from '../../src/jobs/backfills.ts';
import { createQueue, type JobQueue } from '../../src/jobs/bull.ts';
import { syncJob } from '../../src/jobs/payloads.ts';
import { RetryLater } from '../../src/model/errors.ts';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import { stateDatabase, type TestDatabase } from '../support/postgres.ts';
import { hasRedis } from '../support/redis.ts';
import { type RedisServer, startRedisServer } from '../support/servers.ts';
import { silentLog } from '../support/silent-log.ts';
import { until } from '../support/workers.ts';

/** Backfills and syncs requested during an outage of Redis: the state records them, and the queue gets them when Redis is back. */
describe.skipIf(!hasRedis)('during an outage of Redis', () => {
  const today = startOfDay(Date.now());
  const window = { start: today - DAY_MS, end: today };
  const clicks = { source: 'main', stream: 'clicks' } as const;
  let home: TestDatabase;
  let db: Database;
  let redis: RedisServer;
  let queue: JobQueue;

  beforeAll(async () => {
    [home, redis] = await Promise.all([stateDatabase(), startRedisServer()]);
    db = connect({ url: home.url, max: 2 });
    queue = await createQueue({ url: redis.url, stateUrl: home.url, log: silentLog });
    await writeSchedules(db, [{ ...clicks, plan: 'every 60000 ms from 0' }]);
    await redis.stop();
  });
  afterAll(async () => {
    await queue.close();
    await db.close();
    await redis.close();
    await home.drop();
  });

  it('every call to the queue fails as an unreachable server, not as a bug', async () => {
    const job = syncJob(clicks);
    const asked = [
      () => queue.enqueue('sync', job),
      () => queue.schedule([{ job, schedule: 'every 60000 ms from 0' }], { removeOthers: true }),
      () => queue.flow(job, [job]),
      () => queue.promote(job.id),
      () => queue.waiting('sync'),
    ];
    for (const ask of asked) {
      const error = await ask().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RetryLater);
      expect(String(error)).toContain('Redis at 127.0.0.1');
    }
  });

  it('a backfill and a sync are recorded, and reach the queue afterwards', async () => {
    const request = { ...clicks, window, force: true, chunks: [window] };
    const [id] = await enqueueBackfills({ state: db, queue }, [request]);
    expect(await readBackfills(db, id)).toMatchObject([{ state: 'queued', windows: { queued: 1 } }]);
    expect(await syncNow({ state: db, queue }, clicks)).toBe(true);
    await redis.start();
    await until('the queue takes jobs again', () =>
      enqueueWindows({ state: db, queue }).then(
        () => true,
        () => false,
      ),
    );
    expect(await queue.waiting('backfill')).toBe(1);
  });
});
