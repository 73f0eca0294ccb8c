import { expect, it } from 'vitest';
import { withSyncApp } from '../../src/app/index.ts';
import type { Config } from '../../src/config/index.ts';
import type { Window } from '../../src/model/window.ts';
import { type Price, priceBackfill } from '../../src/sync/backfill/price.ts';
import { clicks, daysAgo, inWindow, monthOf, uncovered } from '../support/backfills.ts';
import {
  backfill,
  configFor,
  openEngine,
  sourceOf,
  statesOf,
  storedIds,
  sync,
  withSmallPages,
} from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { silentLog } from '../support/silent-log.ts';

const engine = await forThisFile(openEngine());

it('yields to a sync, then continues', async () => {
  const sandbox = await monthOf(3000);
  const config = configFor(engine, sandbox, { since: '2d', requestsPerSecond: 12 });
  await withSmallPages(engine.db, config, 20);
  const window = { start: daysAgo(25), end: daysAgo(5) };
  let backfilling: Promise<unknown> | undefined;
  await new Promise<void>((resolve) => {
    const onProgress = ({ done = 0 }: { done?: number }): void => {
      if (done > 0) resolve();
    };
    backfilling = backfill(config, { window }, { ...clicks, onProgress });
  });
  expect(statesOf(await sync(config, clicks))).toEqual(['done']);
  const [outcome] = (await backfilling) as Awaited<ReturnType<typeof backfill>>;
  expect(statesOf(outcome ? [outcome] : [])).toEqual(['done']);
  expect(await uncovered(engine, config, window)).toEqual([]);
  const runs = await engine.db.query({
    text: 'select kind, state from tributary.runs where source = $1 order by finished_at',
    values: [sourceOf(config)],
  });
  // The sync did not wait for the backfill to end.
  expect(runs).toEqual([
    { kind: 'sync', state: 'done' },
    { kind: 'backfill', state: 'done' },
  ]);
});

it('certifies nothing read with filters that a sync has since changed', async () => {
  const sandbox = await monthOf(3000);
  const name = 'filtered';
  const config = configFor(engine, sandbox, { name, since: '2d', requestsPerSecond: 12 });
  const other = configFor(engine, sandbox, {
    name,
    since: '2d',
    requestsPerSecond: 12,
    streams: { clicks: { filters: { country: ['DE'] } } },
  });
  await withSmallPages(engine.db, config, 20);
  const window = { start: daysAgo(25), end: daysAgo(5) };
  let backfilling: ReturnType<typeof backfill> | undefined;
  await new Promise<void>((resolve) => {
    const onProgress = ({ done = 0 }: { done?: number }): void => void (done > 0 && resolve());
    backfilling = backfill(config, { window }, { ...clicks, onProgress });
  });
  expect(statesOf(await sync(other, clicks))).toEqual(['done']);
  const [outcome] = (await backfilling) ?? [];
  expect(outcome?.fault?.message).toContain('another process changed the filters');
  const certified = await engine.db.query({
    text: `select start_at from tributary.windows where source = $1 and state = 'certified' and start_at < $2`,
    values: [name, new Date(window.end).toISOString()],
  });
  expect(certified).toEqual([]);
});

const LONG_AGO = { start: daysAgo(28), end: daysAgo(2) };
it.each([
  ['a backfill', (config: Config) => backfill(config, { window: LONG_AGO }, clicks), LONG_AGO],
  ['a first sync', (config: Config) => sync(config, clicks), { start: daysAgo(29), end: Date.now() }],
])('%s reads in parallel chains when answers are slow, with the same result', async (_, read, window) => {
  const sandbox = await monthOf(5000);
  const { service } = sandbox;
  const delayMs = 200;
  service.faults.add({ delayMs, times: 10_000 });
  const config = configFor(engine, sandbox, { requestsPerSecond: 50, since: '29d' });
  await withSmallPages(engine.db, config, 50);
  expect(statesOf(await read(config))).toEqual(['done']);
  // Requests that arrived before the first one can have been answered.
  const atOnce = service.requests.map(
    ({ at: first }) => service.requests.filter((other) => other.at >= first && other.at < first + delayMs).length,
  );
  expect(Math.max(...atOnce)).toBeGreaterThan(2);
  const stored = await storedIds(engine.db, config, 'clicks');
  expect(inWindow(sandbox, window).filter((id) => !stored.includes(id))).toEqual([]);
  expect(new Set(stored).size).toBe(stored.length);
});

const priceOf = (config: Config, window: Window): Promise<Price> =>
  withSyncApp({ config, log: silentLog, choice: { streams: ['clicks'] } }, ({ state, sinks, jobs: [job] }) => {
    if (!job) throw new Error('a job');
    return priceBackfill({ state, sinks, signal: new AbortController().signal }, job, { window });
  });

it('prices a window with a few requests, and a small one with fewer than its job', async () => {
  const window = { start: daysAgo(28), end: daysAgo(1) };
  // About three pages; and a month with nearly all events on one day.
  const [small, burst] = [await monthOf(2600), await monthOf(1500)];
  burst.service.arrive('clicks', 9000, { from: daysAgo(4), to: daysAgo(3) });
  for (const [sandbox, most, error] of [
    [small, 2, 1.3],
    [burst, 5, 2],
  ] as const) {
    const config = configFor(engine, sandbox, { requestsPerSecond: 100 });
    const { probes, rows, requests } = await priceOf(config, window);
    expect(probes).toBeLessThanOrEqual(most);
    expect(probes).toBeLessThan(requests);
    const there = inWindow(sandbox, window).length;
    expect(Math.max(rows / there, there / rows)).toBeLessThan(error);
  }
});

it('reports the price before anything is written', async () => {
  const sandbox = await monthOf(13_000);
  const config = configFor(engine, sandbox, { requestsPerSecond: 100 });
  const window = { start: daysAgo(28), end: daysAgo(4) };
  const price = () => priceOf(config, window);
  const before = await price();
  const rows = inWindow(sandbox, window).length;
  expect(before).toMatchObject({ toRead: [window], certified: 0, isCounted: false });
  expect(before.rows / rows).toBeGreaterThan(0.8);
  expect(before.rows / rows).toBeLessThan(1.25);
  expect(before.probes).toBeLessThanOrEqual(5);
  // Slower than any machine's answers.
  expect(before.secondsAt(0.01)).toBeGreaterThan(before.secondsAt(8));
  expect(before.secondsAt(2)).toBeGreaterThanOrEqual(before.requests / 2);
  const [outcome] = await backfill(config, { window: { start: daysAgo(28), end: daysAgo(10) } }, clicks);
  expect(statesOf(outcome ? [outcome] : [])).toEqual(['done']);
  const after = await price();
  expect(after).toMatchObject({ toRead: [{ start: daysAgo(10), end: daysAgo(4) }] });
  expect(after.certified).toBeCloseTo(18 / 24);
  expect(after.requests).toBeLessThan(before.requests / 2);
});
