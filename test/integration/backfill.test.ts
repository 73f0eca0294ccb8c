import { afterAll, beforeAll, expect, it } from 'vitest';
import { withSyncApp } from '../../src/app/index.ts';
import type { Config } from '../../src/config/index.ts';
import { readLedger } from '../../src/cursor/ledger.ts';
import { gaps } from '../../src/model/coverage.ts';
import { DAY_MS, startOfDay, type Window } from '../../src/model/window.ts';
import { priceBackfill } from '../../src/sync/price.ts';
import {
  backfill,
  configFor,
  type Engine,
  openEngine,
  sourceOf,
  statesOf,
  storedIds,
  sync,
  withSmallPages,
} from '../support/engine.ts';
import { at, smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';

let engine: Engine;
beforeAll(async () => {
  engine = await openEngine();
});
afterAll(() => engine.close());

const TODAY = startOfDay(Date.now());
const daysAgo = (days: number): number => TODAY - days * DAY_MS;
const clicks = { streams: ['clicks'] } as const;
const sandboxOf = (rows = 900) => smallSandbox({ rows: { clicks: rows, leads: 1, sales: 1 }, days: 30 });

type Sandbox = Awaited<ReturnType<typeof sandboxOf>>;
const inWindow = ({ service }: Sandbox, { start, end }: Window): string[] =>
  service
    .events('clicks')
    .filter((record) => Date.parse(String(record.timestamp)) >= start && Date.parse(String(record.timestamp)) < end)
    .map((record) => String(at(record, 'click.id')))
    .sort();
const uncovered = async (config: Config, window: Window): Promise<Window[]> => {
  const track = { source: sourceOf(config), stream: 'clicks', sink: 'warehouse' } as const;
  const entries = await readLedger(engine.db, track, window.start);
  return gaps(
    entries.filter((entry) => entry.certified),
    window,
  );
};

it('reads a window before the start of the stream, proves it, and leaves the watermark to the syncs', async () => {
  const sandbox = await sandboxOf();
  const config = configFor(engine, sandbox, { since: '5d' });
  const window = { start: daysAgo(20), end: daysAgo(10) };
  const [outcome] = await backfill(config, { window }, clicks);
  expect(outcome?.report).toMatchObject({ state: 'done', cursor: { completeThrough: undefined } });
  const expected = inWindow(sandbox, window);
  expect(expected.length).toBeGreaterThan(100);
  expect(await storedIds(engine.db, config, 'clicks')).toEqual(expected);
  expect(await uncovered(config, window)).toEqual([]);
});

it('asks only for what is not proven yet; with force for all of it', async () => {
  const sandbox = await sandboxOf(6000);
  const config = configFor(engine, sandbox);
  await backfill(config, { window: { start: daysAgo(20), end: daysAgo(5) } }, clicks);
  const whole = { start: daysAgo(25), end: daysAgo(5) };
  const [again] = await backfill(config, { window: whole }, clicks);
  const [nothing] = await backfill(config, { window: whole }, clicks);
  const [forced] = await backfill(config, { window: whole, force: true }, clicks);
  const read = (outcome: typeof again): number => outcome?.report?.tally.read ?? -1;
  // A page that reaches into what is proven brings rows of it too.
  expect(read(again)).toBeLessThan(read(forced) / 2);
  expect(nothing?.report?.tally).toMatchObject({ read: 0, requests: 1 });
  expect(forced?.report?.tally).toMatchObject({ new: 0, changed: 0 });
  expect(await storedIds(engine.db, config, 'clicks')).toEqual(inWindow(sandbox, whole));
});

it('never calls complete what may still come late', async () => {
  const sandbox = await sandboxOf();
  const config = configFor(engine, sandbox, { since: '30d' });
  await backfill(config, { window: { start: daysAgo(3), end: Date.now() + DAY_MS } }, clicks);
  const [open] = await uncovered(config, { start: daysAgo(3), end: Date.now() });
  expect(Date.now() - (open?.start ?? 0)).toBeGreaterThan(9.9 * 60_000);
  const future = { start: Date.now(), end: Date.now() + DAY_MS };
  const [refused] = await backfill(config, { window: future }, clicks);
  expect(refused?.fault?.describe()).toMatch(/old enough to be called complete[\s\S]*next: choose an earlier --to/);
});

it('goes on where it was interrupted', async () => {
  const sandbox = await sandboxOf(3000);
  const config = configFor(engine, sandbox);
  await withSmallPages(engine.db, config, 50);
  const window = { start: daysAgo(25), end: daysAgo(5) };
  const stop = new AbortController();
  const onProgress = ({ done = 0 }): void => void (done > 0.4 && stop.abort());
  const [interrupted] = await backfill(config, { window }, { ...clicks, signal: stop.signal, onProgress });
  expect(interrupted?.report?.state).toBe('interrupted');
  const kept = interrupted?.report?.tally.new ?? 0;
  expect(kept).toBeGreaterThan(0);
  const [resumed] = await backfill(config, { window }, clicks);
  expect(resumed?.report).toMatchObject({ state: 'done' });
  const expected = inWindow(sandbox, window);
  expect((resumed?.report?.tally.new ?? 0) + kept).toBe(expected.length);
  expect(resumed?.report?.tally.read).toBeLessThan(expected.length);
  expect(await storedIds(engine.db, config, 'clicks')).toEqual(expected);
});

it('lets a sync go first and goes on afterwards', async () => {
  const sandbox = await sandboxOf(3000);
  const config = configFor(engine, sandbox, { since: '2d', requestsPerSecond: 12 });
  await withSmallPages(engine.db, config, 20);
  const window = { start: daysAgo(25), end: daysAgo(5) };
  let backfilling: Promise<unknown> | undefined;
  let done = 0;
  await new Promise<void>((resolve) => {
    const onProgress = (progress: { done?: number }): void => {
      done = progress.done ?? done;
      if (done > 0) resolve();
    };
    backfilling = backfill(config, { window }, { ...clicks, onProgress });
  });
  expect(statesOf(await sync(config, clicks))).toEqual(['done']);
  // The sync did not have to wait for the end of the backfill.
  expect(done).toBeLessThan(0.9);
  const [outcome] = (await backfilling) as Awaited<ReturnType<typeof backfill>>;
  expect(statesOf(outcome ? [outcome] : [])).toEqual(['done']);
  expect(await uncovered(config, window)).toEqual([]);
  const runs = await engine.db.query({
    text: 'select kind, state from tributary.runs where source = $1 order by started_at',
    values: [sourceOf(config)],
  });
  expect(runs).toEqual([
    { kind: 'backfill', state: 'done' },
    { kind: 'sync', state: 'done' },
  ]);
});

const LONG_AGO = { start: daysAgo(28), end: daysAgo(2) };
it.each([
  ['a backfill', (config: Config) => backfill(config, { window: LONG_AGO }, clicks), LONG_AGO],
  ['a first sync', (config: Config) => sync(config, clicks), { start: daysAgo(29), end: Date.now() }],
])('%s reads by several chains where answers are slow, and finds the same', async (_, read, window) => {
  const sandbox = await sandboxOf(5000);
  const { service } = sandbox;
  const delayMs = 200;
  service.faults.add({ delayMs, times: 10_000 });
  const config = configFor(engine, sandbox, { requestsPerSecond: 50, since: '29d' });
  await withSmallPages(engine.db, config, 50);
  expect(statesOf(await read(config))).toEqual(['done']);
  // Requests that arrived before the first of them can have been answered.
  const atOnce = service.requests.map(
    ({ at: first }) => service.requests.filter((other) => other.at >= first && other.at < first + delayMs).length,
  );
  expect(Math.max(...atOnce)).toBeGreaterThan(2);
  const stored = await storedIds(engine.db, config, 'clicks');
  expect(inWindow(sandbox, window).filter((id) => !stored.includes(id))).toEqual([]);
  expect(new Set(stored).size).toBe(stored.length);
});

it('tells the price before anything is written', async () => {
  const sandbox = await sandboxOf(13_000);
  const config = configFor(engine, sandbox, { requestsPerSecond: 100 });
  const window = { start: daysAgo(28), end: daysAgo(4) };
  const price = () =>
    withSyncApp({ config, log: silentLog, choice: { streams: ['clicks'] } }, ({ state, sinks, jobs: [job] }) => {
      if (!job) throw new Error('a job');
      return priceBackfill({ state, sinks, signal: new AbortController().signal }, job, { window });
    });
  const before = await price();
  const rows = inWindow(sandbox, window).length;
  expect(before).toMatchObject({ toRead: [window], certified: 0, isCounted: false });
  expect(before.rows / rows).toBeGreaterThan(0.8);
  expect(before.rows / rows).toBeLessThan(1.25);
  expect(before.probes).toBeLessThanOrEqual(17);
  expect(before.secondsAt(2)).toBeGreaterThan(before.secondsAt(8));
  expect(before.secondsAt(2)).toBeGreaterThanOrEqual(before.requests / 2);
  const [outcome] = await backfill(config, { window: { start: daysAgo(28), end: daysAgo(10) } }, clicks);
  expect(statesOf(outcome ? [outcome] : [])).toEqual(['done']);
  const after = await price();
  expect(after).toMatchObject({ toRead: [{ start: daysAgo(10), end: daysAgo(4) }] });
  expect(after.certified).toBeCloseTo(18 / 24);
  expect(after.requests).toBeLessThan(before.requests / 2);
});
