import pg from 'pg';
import { expect, it } from 'vitest';
import { withSyncApp } from '../../src/app/index.ts';
import { writeSchedules } from '../../src/cursor/schedules.ts';
import { runDueStream } from '../../src/jobs/run-job.ts';
import { byStreamKey, TIMINGS } from '../../src/jobs/schedule.ts';
import { configFor, openEngine, syncAllDone } from '../support/engine.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';

/** What most polls cost: nothing is new. Statements are counted as the server gets them; a transaction is what lies between two of its ends. */

const POLLS = 5;

it('asks the database little when there is nothing new', async () => {
  const engine = await openEngine();
  const sandbox = await smallSandbox({ rows: { clicks: 60, leads: 30, sales: 30 }, days: 3 });
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const statements: string[] = [];
  let asked = 0;
  const original = pg.Client.prototype.query;
  await withSyncApp({ config, log: silentLog }, async (app) => {
    const [job] = app.jobs;
    if (!job) throw new Error('a job');
    const plan = { job, schedule: 'every 1 ms from 0', maxLagMs: undefined, fingerprint: 'x' };
    const { source, stream } = job;
    await writeSchedules(app.state, [{ source, stream, plan: plan.schedule }]);
    const deps = {
      state: app.state,
      sinks: app.sinks,
      log: silentLog,
      holder: 'me',
      onProgress: () => {},
      timings: TIMINGS,
    };
    const poll = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      const report = await runDueStream(
        { ...deps, scheduled: byStreamKey([plan]) },
        { source, stream },
        new AbortController().signal,
      );
      expect(report?.state).toBe('done');
    };
    // The first ones learn.
    await poll();
    await poll();
    pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
      const [sql] = args as [string | { text?: string }];
      statements.push((typeof sql === 'string' ? sql : (sql.text ?? 'copy')).replace(/\s+/g, ' ').trim());
      return (original as (...all: unknown[]) => unknown).apply(this, args);
    } as never;
    asked = sandbox.service.requests.length;
    try {
      for (let count = 0; count < POLLS; count += 1) await poll();
    } finally {
      pg.Client.prototype.query = original;
    }
  });
  expect(sandbox.service.requests.length - asked).toBe(POLLS);
  await engine.close();
  let isOpen = false;
  // How often the budget is asked follows the clock, not the poll.
  const transactions = statements
    .filter((text) => !text.includes('tributary.budgets'))
    .filter((text) => {
      const isInside = isOpen;
      if (text.startsWith('BEGIN')) isOpen = true;
      if (text === 'COMMIT' || text === 'ROLLBACK') isOpen = false;
      return !isInside;
    }).length;
  expect(transactions / POLLS).toBeLessThanOrEqual(20);
});
