import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { freshPlace } from '../support/cli.ts';
import { freshDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { startWorker, until, workerConfig } from '../support/workers.ts';

const PER_SECOND = 4;

it('three workers and a backfill of the command line share one budget, and the backfill delays nothing fresh', async () => {
  const sandbox = await smallSandbox({
    requestsPerSecond: PER_SECOND,
    rows: { clicks: 30_000, leads: 50, sales: 50 },
    days: 20,
    perSecond: 2,
  });
  const database = await freshDatabase();
  const db = connect({ url: database.url, max: 2 });
  const config = workerConfig({
    stateUrl: database.url,
    queueUrl: undefined,
    sandboxes: { main: sandbox },
    every: '4s',
    rest: {},
  });
  for (const source of Object.values(config.sources))
    Object.assign(source, { requestsPerSecond: PER_SECOND, since: '1d' });
  const workers = [1, 2, 3].map(() => startWorker(config));
  await Promise.all(workers.map((worker) => worker.ready()));
  const runsOfClicks = () => workers.flatMap((worker) => worker.runs()).filter((run) => run.stream === 'clicks').length;
  await until('the first sync of the clicks', () => runsOfClicks() > 0);

  const place = await freshPlace();
  await writeFile(
    join(place.dir, 't.yaml'),
    JSON.stringify({
      sources: {
        main: {
          baseUrl: sandbox.baseUrl,
          apiKey: sandbox.apiKey,
          plan: 'enterprise',
          requestsPerSecond: PER_SECOND,
          since: '1d',
        },
      },
      state: { url: database.url },
    }),
  );
  const backfill = place.start(['backfill', 'clicks', '--config', 't.yaml', '--from', '19d', '--to', '2d']);
  // From when it is under way until it is done there is always work.
  await until(
    'requests of the backfill',
    () => sandbox.service.requests.filter(({ at }) => at > Date.now() - 2000).length > 6,
  );
  const [from, before] = [Date.now(), runsOfClicks()];
  const ended = await Promise.race([backfill.done, sleep(45_000)]);
  const to = Date.now();
  const runs = runsOfClicks() - before;
  for (const { child } of workers) child.kill('SIGTERM');
  await Promise.all(workers.map((worker) => worker.done));
  if (ended) expect([ended.code, ended.stderr]).toEqual([0, expect.any(String)]);

  const { requests } = sandbox.service;
  // None on a calm machine. A busy one may hold a process up between its turn and its departure; four budgets of their own would be refused most of the time.
  expect(requests.filter(({ status }) => status === 429).length).toBeLessThanOrEqual(requests.length / 20);
  const used =
    requests.filter(({ at }) => at >= from && at < to - 1500).length / (((to - 1500 - from) / 1000) * PER_SECOND);
  expect(used).toBeGreaterThan(0.5);
  // Every four seconds, give or take; without turns there would be none until the backfill is over.
  expect(runs).toBeGreaterThanOrEqual(Math.floor((to - from) / 1000 / 8) - 1);
  const [{ rows } = { rows: 0 }] = await db.query<{ rows: number }>({
    text: `select count(*) as rows from attribution.clicks where timestamp < now() - interval '2 days'`,
  });
  expect(rows).toBeGreaterThan(10_000);
  await db.close();
  await database.drop();
}, 120_000);
