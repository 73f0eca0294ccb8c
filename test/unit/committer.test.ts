import { expect, it } from 'vitest';
import { emptyTally } from '../../src/cursor/runs.ts';
import type { Slice } from '../../src/extract/reader.ts';
import type { Row } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import type { Sink } from '../../src/sinks/sink.ts';
import { type Committer, createCommitter } from '../../src/sync/committer.ts';

/** Memory while a sink is slow: one batch being committed and one waiting, whatever the number of chains. */

const BATCH_ROWS = 40;
const SLICE_ROWS = 5;
const CHAINS = 8;
const SLICES = 30;
const receipt = { new: 0, changed: 0, unchanged: 0, sanitized: 0 };

/** A sink whose commits end on request, and a committer into it. */
function createSlowSink(): { committer: Committer; commits: Array<() => void>; committed: number[] } {
  const committed: number[] = [];
  const commits: Array<() => void> = [];
  const sink: Sink = {
    name: 'slow',
    place: 'nowhere',
    batchRows: BATCH_ROWS,
    prepare: async () => {},
    async open() {
      let rows = 0;
      return {
        async write(more) {
          rows += more.length;
        },
        commit: () =>
          new Promise((resolve) => {
            commits.push(() => {
              committed.push(rows);
              resolve(receipt);
            });
          }),
        abort: async () => {},
      };
    },
    close: async () => {},
  };
  return { committer: committerInto(sink), commits, committed };
}

const committerInto = (sink: Sink): Committer =>
  createCommitter({
    sinks: [sink],
    evolver: { evolve: async (rows) => ({ stream: STREAMS.clicks, rows: [...rows] }), widenColumns: async () => {} },
    base: () => ({ source: 's', runId: 'r', epoch: 1, since: 0 }),
    tally: emptyTally(),
    serverNow: () => 0,
    onCommit: () => {},
  });

const ROW: Row = { id: 'x', at: 0, values: [], extra: null, contradictions: [], typeMismatches: [] };
const sliceOf = (row: Row): Slice => ({
  ...{ window: undefined, certified: undefined, rejected: [] },
  rows: Array.from({ length: SLICE_ROWS }, () => row),
});
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

it('holds two batches during a slow commit, however many chains add to it', async () => {
  const { committer, commits, committed } = createSlowSink();
  let added = 0;
  const chain = async (): Promise<void> => {
    for (let i = 0; i < SLICES; i++) {
      await committer.add(sliceOf(ROW));
      added += SLICE_ROWS;
    }
  };
  const chains = Promise.all(Array.from({ length: CHAINS }, chain));

  await settled();
  expect(commits).toHaveLength(1);
  // Chains that found room at the same moment add one slice each.
  expect(added).toBeLessThanOrEqual(2 * BATCH_ROWS + CHAINS * SLICE_ROWS);
  while (committed.reduce((sum, n) => sum + n, 0) < CHAINS * SLICES * SLICE_ROWS) {
    commits.shift()?.();
    await settled();
  }
  await chains;
  await committer.flush();
  expect(Math.max(...committed)).toBeLessThanOrEqual(BATCH_ROWS + CHAINS * SLICE_ROWS);
});

it.each([
  ['metadata', { ...ROW, values: [{ note: 'x'.repeat(50_000) }] }],
  ['a list in an unknown field', { ...ROW, extra: { notes: ['x'.repeat(25_000), 'x'.repeat(25_000)] } }],
])('holds fewer rows if each has 50 KB of %s', async (_, row) => {
  const { committer, commits, committed } = createSlowSink();
  const adding = (async () => {
    for (let i = 0; i < SLICES; i++) await committer.add(sliceOf(row));
    await committer.flush();
  })();
  let isDone = false;
  void adding.then(() => {
    isDone = true;
  });
  while (!isDone) {
    commits.shift()?.();
    await settled();
  }
  // A batch of 50 KB rows takes no more memory than one of 4 KB rows: a slice of five fills it.
  expect(new Set(committed)).toEqual(new Set([SLICE_ROWS]));
});

/** Commits immediately, and records the times of the rows of each commit. */
function createTimedSink(isByTime: boolean) {
  const commits: number[][] = [];
  const sink: Sink = {
    ...{ name: 'timed', place: 'nowhere', batchRows: BATCH_ROWS, isByTime },
    prepare: async () => {},
    async open() {
      const times: number[] = [];
      return {
        write: async (rows) => void times.push(...rows.map(({ at }) => at)),
        async commit() {
          commits.push(times);
          return receipt;
        },
        abort: async () => {},
      };
    },
    close: async () => {},
  };
  return { committer: committerInto(sink), commits };
}

/** Two readers alternate, one from 0 and one from `second` on. */
async function readSideBySide(committer: Committer, second: number, slices: number): Promise<void> {
  const [a, b] = [{}, {}];
  for (let i = 0; i < slices; i++)
    for (const [reader, begin] of [[a, 0] as const, [b, second] as const]) {
      const window = { start: begin + i * SLICE_ROWS, end: begin + (i + 1) * SLICE_ROWS };
      const rows = Array.from({ length: SLICE_ROWS }, (_, n) => ({ ...ROW, at: window.start + n }));
      await committer.add({ window, certified: undefined, rows, rejected: [] }, undefined, reader);
    }
  await committer.flush();
}

const isOfOne = (times: readonly number[]): boolean =>
  times.every((at) => at < 10_000) || times.every((at) => at >= 10_000);

it('passes one range after another, each in order, to a sink that keeps order of time', async () => {
  const { committer, commits } = createTimedSink(true);
  await readSideBySide(committer, 10_000, 60);
  expect(commits.flat()).toHaveLength(2 * 60 * SLICE_ROWS);
  // All but the last, which is the remainder.
  expect(commits.slice(0, -1).every(isOfOne)).toBe(true);
  expect(commits.length).toBeLessThanOrEqual((2 * 60 * SLICE_ROWS) / BATCH_ROWS);
  for (const begin of [0, 10_000]) {
    const own = commits.flat().filter((at) => (at < 10_000 ? 0 : 10_000) === begin);
    expect(own).toEqual([...own].sort((x, y) => x - y));
  }
});

it('passes rows in order of arrival to other sinks', async () => {
  const { committer, commits } = createTimedSink(false);
  await readSideBySide(committer, 10_000, 60);
  expect(commits.slice(0, -1).some(isOfOne)).toBe(false);
});

it('keeps the order of two versions with the same time', async () => {
  const { committer, commits } = createTimedSink(true);
  await readSideBySide(committer, 7, 60);
  const own = commits.flat();
  const arrival = Array.from({ length: 60 }, (_, i) => i * SLICE_ROWS).flatMap((at) => [at, at + 7]);
  expect(own).toEqual(arrival.flatMap((at) => Array.from({ length: SLICE_ROWS }, (_, n) => at + n)));
});

it('does not delay a range of few rows until the end', async () => {
  const { committer, commits } = createTimedSink(true);
  const [few, many] = [{}, {}];
  const add = (reader: object, at: number, length: number) =>
    committer.add(
      {
        ...{ window: { start: at, end: at + length }, certified: undefined, rejected: [] },
        rows: Array.from({ length }, (_, n) => ({ ...ROW, at: at + n })),
      },
      undefined,
      reader,
    );
  await add(few, 0, 1);
  for (let i = 0; i < 500; i++) await add(many, 10_000 + i * SLICE_ROWS, SLICE_ROWS);
  await settled();
  expect(commits.flat()).toContain(0);
});
