import { expect, it } from 'vitest';
import { STREAM_NAMES } from '../../src/model/streams.ts';
import {
  configFor,
  expectComplete,
  forgetProofs,
  openEngine,
  sync,
  syncAllDone,
  tallies,
  versionsOf,
} from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { sandboxWith, smallSandbox } from '../support/sandbox.ts';

const engine = await forThisFile(openEngine());

const ROWS = { clicks: 240, leads: 60, sales: 30 };
const small = { rows: ROWS, days: 20 };

it('stores every event of all three streams, each once', async () => {
  const clicks = 1200; // More than the largest page.
  const sandbox = await smallSandbox({ ...small, rows: { ...ROWS, clicks } });
  const config = configFor(engine, sandbox);
  const outcomes = await syncAllDone(config);
  await expectComplete(engine.db, config, sandbox);
  expect(tallies(outcomes)).toEqual([
    [clicks, 0],
    [ROWS.leads, 0],
    [ROWS.sales, 0],
  ]);
  for (const { report } of outcomes) {
    // No time younger than the settle time is certified.
    expect(Date.now() - (report?.cursor?.completeThrough ?? 0)).toBeGreaterThan(9 * 60_000);
    expect(Date.now() - (report?.cursor?.completeThrough ?? 0)).toBeLessThan(12 * 60_000);
  }
});

it('changes no row the second time, although every joined field has changed', async () => {
  const sandbox = await smallSandbox(small);
  const { service } = sandbox;
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const before = await versionsOf(engine.db, config);
  expect(before).toHaveLength(ROWS.clicks + ROWS.leads + ROWS.sales);

  service.touchCounters();
  for (const link of service.links) service.renameLink(link.id, { domain: 'renamed.test', key: `new-${link.id}` });
  service.traits = { volatile: true, deletedCustomers: 0.5, unknownFields: false };
  // Everything is read again, not only the tail: all progress is reset.
  await forgetProofs(engine.db, config);
  const outcomes = await syncAllDone(config);
  expect(tallies(outcomes)).toEqual([
    [0, 0],
    [0, 0],
    [0, 0],
  ]);
  for (const { stream, report } of outcomes) {
    expect(report?.tally.unchanged).toBeGreaterThanOrEqual(ROWS[stream as keyof typeof ROWS]);
    expect(report?.tally.unchanged).toBe(report?.tally.read);
  }
  expect(await versionsOf(engine.db, config)).toEqual(before);
});

it('stores new events with the next sync, wherever the cursor is', async () => {
  const sandbox = await smallSandbox(small);
  const { service } = sandbox;
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  for (const stream of STREAM_NAMES) service.arrive(stream, 3);
  // Late, but within the lookback before the watermark.
  service.arrive('leads', 2, { from: service.now() - 12 * 60_000, to: service.now() - 11 * 60_000 });
  const outcomes = await syncAllDone(config);
  expect(tallies(outcomes)).toEqual([
    [3, 0],
    [5, 0],
    [3, 0],
  ]);
  await expectComplete(engine.db, config, sandbox);
  // A poll without new events costs a request or two per stream.
  for (const { report } of outcomes) expect(report?.tally.requests).toBeLessThanOrEqual(4);
});

it('reads only the given streams', async () => {
  const sandbox = await smallSandbox(small);
  const config = configFor(engine, sandbox);
  const outcomes = await sync(config, { streams: ['sales'] });
  expect(outcomes.map(({ stream, report }) => [stream, report?.state])).toEqual([['sales', 'done']]);
  expect(new Set(sandbox.service.requests.map(({ query }) => query.event))).toEqual(new Set(['sales']));
});

it.each(['00:00', '12:00'])('finds the first event with since all, founded at %s', async (time) => {
  const founded = `${daysAgo(50)}T${time}Z`;
  const sandbox = await sandboxWith([`founded=${founded}`], { ...small, days: 45 });
  const config = configFor(engine, sandbox, { since: 'all' });
  const [clicks] = await syncAllDone(config);
  await expectComplete(engine.db, config, sandbox);
  expect(clicks?.report?.cursor?.since).toBe(Date.parse(founded));
  expect(tallies(await syncAllDone(config))).toEqual([
    [0, 0],
    [0, 0],
    [0, 0],
  ]);
});

it.each([
  ['a date', () => [daysAgo(10), daysAgo(70)] as const],
  ['a duration', () => ['10d', '70d'] as const],
])('reads older time when since moves back: %s', async (kind, dates) => {
  const sandbox = await smallSandbox({ ...small, days: 60 });
  const name = `moved-back-${kind.slice(2)}`;
  const [first, earlier] = dates();
  await syncAllDone(configFor(engine, sandbox, { name, since: first }));
  const config = configFor(engine, sandbox, { name, since: earlier });
  await syncAllDone(config);
  await expectComplete(engine.db, config, sandbox);
});

const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
