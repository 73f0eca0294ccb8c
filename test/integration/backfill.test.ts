import { expect, it } from 'vitest';
import { listRuns } from '../../src/cursor/runs.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { clicks, daysAgo, inWindow, monthOf, uncovered } from '../support/backfills.ts';
import { backfill, configFor, openEngine, sourceOf, storedIds, withSmallPages } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';

const engine = await forThisFile(openEngine());

it('reads and certifies a window before the start of the stream, and leaves the watermark alone', async () => {
  const sandbox = await monthOf();
  const config = configFor(engine, sandbox, { since: '5d' });
  const window = { start: daysAgo(20), end: daysAgo(10) };
  // Some services round times: events within a second of the edges may belong to the window.
  const [near] = sandbox.service.arrive('clicks', 1, { from: window.end + 500, to: window.end + 500 });
  sandbox.service.arrive('clicks', 1, { from: window.end + 1500, to: window.end + 1500 });
  const [outcome] = await backfill(config, { window }, clicks);
  expect(outcome?.report).toMatchObject({ state: 'done', cursor: { completeThrough: undefined } });
  const expected = [...inWindow(sandbox, window), String(near)].sort();
  expect(expected.length).toBeGreaterThan(100);
  expect(await storedIds(engine.db, config, 'clicks')).toEqual(expected);
  expect(await uncovered(engine, config, window)).toEqual([]);
});

it('reads only what is not proven yet; with force, all of it', async () => {
  const sandbox = await monthOf(6000);
  const config = configFor(engine, sandbox);
  await backfill(config, { window: { start: daysAgo(20), end: daysAgo(5) } }, clicks);
  const wider = { start: daysAgo(25), end: daysAgo(5) };
  const [again] = await backfill(config, { window: wider }, clicks);
  const [nothing] = await backfill(config, { window: wider }, clicks);
  const [forced] = await backfill(config, { window: wider, force: true }, clicks);
  const read = (outcome: typeof again): number => outcome?.report?.tally.read ?? -1;
  // A page that overlaps the proven part returns its rows too.
  expect(read(again)).toBeLessThan(read(forced) / 2);
  expect(nothing?.report?.tally).toMatchObject({ read: 0, requests: 1 });
  expect(forced?.report?.tally).toMatchObject({ new: 0, changed: 0 });
  expect(await storedIds(engine.db, config, 'clicks')).toEqual(inWindow(sandbox, wider));
});

it('does not certify time in which events may still arrive', async () => {
  const sandbox = await monthOf();
  const config = configFor(engine, sandbox, { since: '30d' });
  await backfill(config, { window: { start: daysAgo(3), end: daysAgo(-1) } }, clicks);
  const [open] = await uncovered(engine, config, { start: daysAgo(3), end: Date.now() });
  expect(Date.now() - (open?.start ?? 0)).toBeGreaterThan(9.9 * 60_000);
  const runs = await listRuns(engine.db, { source: sourceOf(config), limit: 9 });
  const refused = (start: number, end: number) =>
    backfill(config, { window: { start, end } }, clicks).catch((error: unknown) => String(error));
  expect(await refused(Date.now() - 60_000, Date.now())).toMatch(/old enough to be certified/);
  expect(await refused(daysAgo(3), Date.now() + 2 * DAY_MS)).toMatch(/lies in the future/);
  // Nor does a failed run.
  expect(await listRuns(engine.db, { source: sourceOf(config), limit: 9 })).toEqual(runs);
});

it('resumes where it was interrupted', async () => {
  const sandbox = await monthOf(3000);
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
