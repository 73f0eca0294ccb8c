import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeExport } from '../../src/cli/commands/export.ts';
import type { Reader, Slice } from '../../src/extract/reader.ts';
import type { Row } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import type { Window } from '../../src/model/window.ts';
import { createSpool } from '../../src/sinks/export.ts';
import type { StreamJob } from '../../src/sync/job.ts';
import { exportStream } from '../../src/sync/maintain/export-stream.ts';
import { certified } from '../support/certified.ts';
import { NOON, rowOf } from '../support/sink-harness.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tributary-export-'));
});
afterAll(() => rm(folder, { recursive: true }));

const WINDOW = { start: NOON, end: NOON + 100 };
const row = (id: string, at: number): Row => rowOf(STREAMS.clicks, id, at);
const slice = (more: Partial<Slice>): Slice => ({
  window: undefined,
  certified: undefined,
  rows: [],
  rejected: [],
  ...more,
});

const proven = (window: Window) => ({ window, certified: certified(window) });

/** An export of a reader's slices. */
async function exported(slices: readonly Slice[], { spooled = false, forgotten = '', settleMs = 900 } = {}) {
  const written: Row[] = [];
  const reader: Partial<Reader> = {
    async *sweep() {
      yield* slices;
    },
    serverNow: () => NOON + 1000,
    doubt: () => undefined,
  };
  const job = {
    source: 'main',
    stream: 'clicks',
    policy: { lookbackMs: 0, settleMs, resweepMs: undefined },
    createReader: () => reader as Reader,
    requests: () => ({ requests: 3, tooManyRequests: 0 }),
  } as unknown as StreamJob;
  const file = {
    write: async (rows: readonly Row[]) => void written.push(...rows),
    finish: async () => {},
    abandon: async () => {},
  };
  const { signal } = new AbortController();
  const spool = spooled ? await createSpool(join(folder, 'x.spool')) : undefined;
  const report = await exportStream(job, {
    window: WINDOW,
    file,
    scrub: async (rows) => rows.filter(({ id }) => id !== forgotten),
    ...(spool && { spool }),
    signal,
    onProgress: () => {},
  });
  return {
    ids: written.map(({ id }) => id),
    times: written.map(({ at }) => at - NOON),
    report,
    text: describeExport(report, 'x.csv', WINDOW),
  };
}

it('writes each event once: one shown ahead of its turn is written in its place', async () => {
  const { ids, report, text } = await exported([
    slice({ rows: [row('b', NOON + 20), row('late', NOON + 30), row('beyond', NOON + 100)] }),
    slice({ ...proven({ start: NOON, end: NOON + 20 }), rows: [row('a', NOON + 10)] }),
    slice({
      ...proven({ start: NOON + 20, end: NOON + 100 }),

      rows: [row('b', NOON + 20), row('a', NOON + 40)],
    }),
  ]);
  // `late` was shown only once, and is not lost.
  expect(ids).toEqual(['a', 'b', 'late']);
  expect(report).toMatchObject({ certified: true, rows: 3, doubts: [], changed: 1 });
  expect(text).toContain('certified: every event of the range is there, each once');
  expect(text).toContain('note: 1 events were returned twice with different times');
  expect(text).not.toContain('may still arrive late');
});

const TWICE = [
  slice({ rows: [row('a', NOON + 10)] }),
  slice({
    ...proven({ start: NOON, end: NOON + 20 }),

    rows: [row('a', NOON + 10), row('b', NOON + 15), row('b', NOON + 16)],
  }),
  slice({
    ...proven({ start: NOON + 20, end: NOON + 100 }),

    rows: [row('c', NOON), row('a', NOON + 40)],
  }),
];

it('writes the newest version of an event, in its place, if it is spooled', async () => {
  const { ids, times, report, text } = await exported(TWICE, { spooled: true });
  expect([ids, times]).toEqual([
    ['b', 'c', 'a'],
    [16, 0, 40],
  ]);
  expect(report).toMatchObject({ rows: 3, changed: 2 });
  expect(text).toContain('2 events were returned twice with different times; the newest is in the file');
  expect(await readdir(folder)).toEqual([]);
});

it('writes the first version if rows are streamed', async () => {
  const { ids, times, report } = await exported(TWICE);
  expect([ids, times]).toEqual([
    ['a', 'b', 'c'],
    [10, 15, 0],
  ]);
  expect(report).toMatchObject({ rows: 3, changed: 2 });
});

it.each([true, false])('leaves out and does not count events of forgotten customers (spooled: %s)', async (spooled) => {
  const { ids, report } = await exported(TWICE, { spooled, forgotten: 'a' });
  expect(ids).toEqual(['b', 'c']);
  expect(report).toMatchObject({ rows: 2 });
});

it.each([
  ['recent events', [], 950, 'may still arrive late'],
  ['unusable records', [{ record: {}, reason: 'no time' }], 900, '1 records could not be used and were left out'],
] as const)('does not say certified of %s', async (_, rejected, settleMs, note) => {
  const { report, text } = await exported([slice({ ...proven(WINDOW), rejected })], { settleMs });
  expect(report).toMatchObject({ certified: false, doubts: [] });
  expect(text).toContain('complete as the service shows it now, but not certified:');
  expect(text).toContain(note);
});

it('names what is not proven, and what was left out', async () => {
  const { report, text } = await exported([
    slice({ ...proven({ start: NOON, end: NOON + 50 }), rows: [row('a', NOON)] }),
    slice({
      window: { start: NOON + 50, end: NOON + 100 },
      note: 'one row breaks its page',
      rejected: [{ record: {}, reason: 'no time' }],
    }),
  ]);
  expect(report).toMatchObject({
    rows: 1,
    rejected: 1,
    doubts: [{ start: NOON + 50, note: 'one row breaks its page' }],
  });
  expect(text).toMatch(
    /NOT certified: some events may be missing\n {2}2\S+ .* UTC \(exclusive\): one row breaks its page/,
  );
  expect(text).toContain('1 records could not be used and were left out');
});
