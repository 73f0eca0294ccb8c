import { expect, it } from 'vitest';
import { StopStream } from '../../src/model/errors.ts';
import {
  configFor,
  expectComplete,
  openEngine,
  sourceOf,
  statesOf,
  storedIds,
  sync,
  syncAllDone,
  withSmallPages,
} from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** Interrupted syncs: everything read so far is stored, and the cursor agrees. */

const engine = await forThisFile(openEngine());

const PAGE = 25;
const small = { rows: { clicks: 600, leads: 60, sales: 30 }, days: 12 };

async function open() {
  const sandbox = await smallSandbox(small);
  const config = configFor(engine, sandbox);
  await withSmallPages(engine.db, config, PAGE);
  return { sandbox, service: sandbox.service, config };
}

interface RunRow {
  stream: string;
  state: string;
  finished_at: Date | null;
  message: string | null;
  rows_read: number;
  rows_new: number;
  rows_changed: number;
  rows_unchanged: number;
  rows_quarantined: number;
  requests: number;
}

const runsOf = (source: string): Promise<RunRow[]> =>
  engine.db.query<RunRow & Record<string, unknown>>({
    text: 'select * from tributary.runs where source = $1 order by started_at, stream',
    values: [source],
  });

/** Counts requests for clicks; true from the given one on. */
const after = (requests: number): { when: (request: { query: Readonly<Record<string, string>> }) => boolean } => {
  let seen = 0;
  return { when: ({ query }) => query.event === 'clicks' && ++seen > requests };
};

it('records in runs what each stream read, changed and requested', async () => {
  const { sandbox, service, config } = await open();
  service.add('leads', { event: 'lead', eventId: 'timeless', timestamp: 'once', link: { id: 'l' } });
  const outcomes = await syncAllDone(config);
  const runs = await runsOf(sourceOf(config));
  expect(runs.map(({ stream }) => stream).sort()).toEqual(['clicks', 'leads', 'sales']);
  for (const run of runs) {
    const tally = outcomes.find(({ stream }) => stream === run.stream)?.report?.tally;
    expect(run).toMatchObject({ state: 'done', message: null, finished_at: expect.any(Date) });
    expect(run).toMatchObject({ rows_read: tally?.read, rows_new: tally?.new, requests: tally?.requests });
    expect(run.rows_new).toBe(small.rows[run.stream as keyof typeof small.rows]);
    // Of every page: the sweep may return the tail's rows again.
    expect(run.rows_new + run.rows_changed + run.rows_unchanged).toBeLessThanOrEqual(run.rows_read);
    expect(run.requests).toBe(sandbox.service.requests.filter(({ query }) => query.event === run.stream).length);
    expect(run.rows_quarantined > 0).toBe(run.stream === 'leads');
  }
});

it('keeps rows and cursor when the service refuses midway, and resumes there', async () => {
  const { sandbox, service, config } = await open();
  service.faults.add({ status: 403, message: 'The monthly usage is exceeded \0', times: 1000, ...after(16) });
  const outcomes = await sync(config);
  expect(statesOf(outcomes)).toEqual(['refused', 'done', 'done']);
  const [refused] = outcomes;
  expect(refused?.fault).toBeInstanceOf(StopStream);
  expect(refused?.fault?.describe()).toMatch(/clicks.*The monthly usage is exceeded/);
  const kept = await storedIds(engine.db, config, 'clicks');
  expect(kept.length).toBeGreaterThanOrEqual(100);
  expect(kept.length).toBeLessThan(small.rows.clicks);
  const [run] = (await runsOf(sourceOf(config))).filter(({ stream }) => stream === 'clicks');
  expect(run).toMatchObject({ state: 'refused', rows_new: kept.length });
  expect(run?.message).toMatch(/The monthly usage is exceeded/);

  service.faults.clear();
  const [clicks] = await syncAllDone(config);
  await expectComplete(engine.db, config, sandbox);
  expect(clicks?.report?.tally.new).toBe(small.rows.clicks - kept.length);
});

it('keeps the cursor when the service refuses immediately', async () => {
  const { sandbox, service, config } = await open();
  const [before] = await syncAllDone(config);
  service.arrive('clicks', 5);
  service.faults.add({ status: 401, times: 1000, match: { event: 'clicks' } });
  const [refused] = await sync(config);
  expect(refused?.report?.state).toBe('refused');
  expect(refused?.report?.cursor).toEqual(before?.report?.cursor);
  service.faults.clear();
  await syncAllDone(config);
  await expectComplete(engine.db, config, sandbox);
});

it('leaves no table and no cursor when the first request is refused', async () => {
  const own = await openEngine();
  try {
    const sandbox = await smallSandbox(small);
    sandbox.service.traits = { forbidden: 'plan' };
    const config = configFor(own, sandbox);
    expect(statesOf(await sync(config))).toEqual(['refused', 'refused', 'refused']);
    const tables = { text: "select 1 from pg_tables where schemaname = 'attribution'" };
    expect(await own.db.query(tables)).toEqual([]);
    expect(await own.db.query({ text: 'select 1 from tributary.cursors' })).toEqual([]);
  } finally {
    await own.close();
  }
});

it('loses nothing when interrupted, and says so', async () => {
  const { sandbox, service, config } = await open();
  for (const requests of [2, 7, 4]) {
    const interrupt = new AbortController();
    const { when } = after(requests);
    await withSmallPages(engine.db, config, PAGE);
    const known = (await storedIds(engine.db, config, 'clicks')).length;
    service.faults.add({
      times: 1,
      when: (request) => {
        if (when(request)) interrupt.abort();
        return false;
      },
    });
    const [clicks] = await sync(config, { signal: interrupt.signal });
    service.faults.clear();
    expect(clicks?.report?.state).toBe('interrupted');
    expect((await storedIds(engine.db, config, 'clicks')).length).toBeGreaterThanOrEqual(known);
    const runs = (await runsOf(sourceOf(config))).filter(({ stream }) => stream === 'clicks');
    expect(runs.at(-1)).toMatchObject({ state: 'interrupted', finished_at: expect.any(Date) });
  }
  await syncAllDone(config);
  await expectComplete(engine.db, config, sandbox);
});

it('stops only the stream that another process is writing', async () => {
  const { sandbox, service, config } = await open();
  service.faults.add({ delayMs: 400, match: { event: 'clicks' } });
  const first = sync(config, { streams: ['clicks'] });
  while (service.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const second = await sync(config);
  expect(statesOf(second)[0]).toMatch(/is writing this stream now/);
  expect(statesOf(second).slice(1)).toEqual(['done', 'done']);
  expect(statesOf(await first)).toEqual(['done']);
  await expectComplete(engine.db, config, sandbox);
});
