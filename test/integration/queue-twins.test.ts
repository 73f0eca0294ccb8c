import { expect, it, onTestFinished } from 'vitest';
import { createQueue } from '../../src/jobs/bull.ts';
import { syncJob } from '../../src/jobs/payloads.ts';
import { freshDatabase } from '../support/postgres.ts';
import { silentLog } from '../support/silent-log.ts';

const AT_ONCE = 5;
const ROUNDS = 20;

it('a stream is scheduled once by workers that start at the same time, without errors', async () => {
  const home = await freshDatabase();
  onTestFinished(() => home.drop());
  const open = () => createQueue({ url: undefined, stateUrl: home.url, log: silentLog });
  // The first alone, to create the tables of the queue.
  const queues = [await open(), ...(await Promise.all(Array.from({ length: AT_ONCE - 1 }, open)))];
  onTestFinished(async () => void (await Promise.all(queues.map((queue) => queue.close()))));
  for (let round = 0; round < ROUNDS; round += 1) {
    const job = syncJob({ source: `source-${round}`, stream: 'clicks' });
    const wanted = [{ job, schedule: 'every 3600000 ms from 0' }];
    await Promise.all(queues.map((queue) => queue.schedule(wanted, { removeOthers: false })));
  }
  expect(await queues[0]?.queues.sync.getJobSchedulersCount()).toBe(ROUNDS);
  expect(await queues[0]?.queues.sync.getDelayedCount()).toBe(ROUNDS);
});
