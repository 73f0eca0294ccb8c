import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import { readOverview } from '../../src/http/routes/overview.ts';
import { findTroubles } from '../../src/jobs/alerts.ts';
import { byStreamKey, type ScheduledStream } from '../../src/jobs/schedule.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { readStatus } from '../../src/sync/status.ts';
import { configFor, type Engine, openEngine, sync, withSmallPages } from '../support/engine.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** Until a stream has caught up, its lag is expected: it is not late, and unread time is no gap. */

const MAX_LAG_MS = 60_000 * 30;
const EARLIER = new Date(Date.now() - 39 * DAY_MS).toISOString();
let engine: Engine;
let sandbox: Sandbox;
beforeAll(async () => {
  engine = await openEngine();
  sandbox = await smallSandbox({ rows: { clicks: 4000 }, days: 40 });
  await sql(`insert into tributary.schedules (source, stream, plan) values ('main', 'clicks', 'x')`);
});
afterAll(() => engine.close());

const sql = (text: string) => engine.db.query({ text });
const configOf = (options: Parameters<typeof configFor>[2] = {}): Config =>
  configFor(engine, sandbox, { name: 'main', since: '20d', ...options });

/** A run that stops after a number of requests; their rows are kept. */
async function half(config: Config): Promise<void> {
  const stop = new AbortController();
  await withSmallPages(engine.db, config, 20);
  const asked = () => sandbox.service.log.entries.length;
  const enough = asked() + 15;
  const watch = setInterval(() => asked() > enough && stop.abort(), 1);
  const [outcome] = await sync(config, { streams: ['clicks'], signal: stop.signal });
  clearInterval(watch);
  expect(outcome?.report?.state).toBe('interrupted');
}

const syncFully = async (config: Config): Promise<void> => {
  const [outcome] = await sync(config, { streams: ['clicks'] });
  expect(outcome?.report?.state).toBe('done');
};

async function seen(sinks = ['warehouse']) {
  const job = { source: 'main', stream: 'clicks' } as ScheduledStream['job'];
  const plan: ScheduledStream = { job, schedule: 'every 60000 ms from 0', maxLagMs: MAX_LAG_MS, fingerprint: 'f' };
  const of = { source: 'main', stream: 'clicks', maxLagMs: MAX_LAG_MS, job: { warnings: [] } };
  const { streams } = await readOverview({ state: engine.db, version: '0', streams: [of as never], listings: [] });
  const statuses = await readStatus(engine.db);
  return {
    firstSync: streams.map(({ firstSync }) => firstSync),
    late: streams.map(({ late }) => late),
    gaps: statuses.flatMap(({ coverage }) => coverage.filter(({ state }) => state === 'gap')).length,
    troubles: (await findTroubles(engine.db, byStreamKey([plan]), sinks)).map(({ message }) => message),
  };
}

const FIRST = { firstSync: [true], late: [false], gaps: 0, troubles: [] };
const USUAL = { ...FIRST, firstSync: [false] };

it('is a first sync until a run has succeeded, and late only if it makes no progress', async () => {
  expect(await seen()).toEqual(FIRST);
  await half(configOf());
  expect(await seen()).toEqual(FIRST);
  await sql(`update tributary.schedules set created_at = now() - interval '3 days'`);
  expect(await seen()).toEqual(FIRST);
  await sql(`update tributary.cursors set updated_at = now() - interval '2 hours'`);
  expect((await seen()).troubles).toEqual([
    expect.stringMatching(/^the first sync has not moved for 2 h, more than maxLag \(30 min\): .*The last run: /),
  ]);
  await syncFully(configOf());
  expect(await seen()).toEqual(USUAL);
});

it('can be late after it has caught up', async () => {
  await sql(`update tributary.cursors set complete_through = now() - interval '4 hours'`);
  expect(await seen()).toMatchObject({
    firstSync: [false],
    late: [true],
    troubles: [expect.stringMatching(/^4 h behind/)],
  });
  await syncFully(configOf());
});

it('is a first sync again with an earlier since, and for a new sink', async () => {
  await half(configOf({ since: EARLIER }));
  expect(await seen()).toEqual(FIRST);
  await syncFully(configOf({ since: EARLIER }));
  expect(await seen()).toEqual(USUAL);
  const sinks = { warehouse: { type: 'postgres' }, second: { type: 'postgres', schema: 'second' } };
  await half(configOf({ since: EARLIER, sinks }));
  expect(await seen(['warehouse', 'second'])).toEqual(FIRST);
  await syncFully(configOf({ since: EARLIER, sinks }));
  expect(await seen(['warehouse', 'second'])).toEqual(USUAL);
});
