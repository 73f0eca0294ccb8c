import { expect, it } from 'vitest';
import { emptyTally } from '../../src/cursor/runs.ts';
import type { Slice } from '../../src/extract/reader.ts';
import type { Row } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import type { Sink } from '../../src/sinks/sink.ts';
import { type Committer, createCommitter } from '../../src/sync/committer.ts';

/** How much is held while a sink is slow: one batch that is being committed and one that waits, however many chains read. */

const BATCH_ROWS = 40;
const SLICE_ROWS = 5;
const CHAINS = 8;
const SLICES = 30;
const receipt = { new: 0, changed: 0, unchanged: 0, sanitized: 0 };

/** A sink whose commits end when they are told to, and a committer into it. */
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
  const committer = createCommitter({
    sinks: [sink],
    evolver: { evolve: async (rows) => ({ stream: STREAMS.clicks, rows: [...rows] }), widenColumns: async () => {} },
    base: () => ({ source: 's', runId: 'r', epoch: 1, since: 0 }),
    tally: emptyTally(),
    serverNow: () => 0,
    onCommit: () => {},
  });
  return { committer, commits, committed };
}

const ROW: Row = { id: 'x', at: 0, values: [], extra: null, contradictions: [], typeMismatches: [] };
const sliceOf = (row: Row): Slice => ({
  ...{ window: undefined, certified: undefined, rejected: [] },
  rows: Array.from({ length: SLICE_ROWS }, () => row),
});
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

it('holds two batches while a commit takes its time, however many add to it', async () => {
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
  // Those who found room at the same moment add one slice each.
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
  ['a list in a field that no column knows', { ...ROW, extra: { notes: ['x'.repeat(25_000), 'x'.repeat(25_000)] } }],
])('holds fewer rows where each has 50 KB of %s', async (_, row) => {
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
  // A batch of 50 KB rows takes no more than one of the usual 4 KB: a slice of five is enough to fill it.
  expect(new Set(committed)).toEqual(new Set([SLICE_ROWS]));
});
