import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, startOfDay, type Window } from '../../src/model/window.ts';
import { chunksOf } from '../../src/sync/backfill/unread.ts';
import { createPageMs, parallelism } from '../../src/sync/parallelism.ts';

const START = Date.UTC(2026, 0, 1);
const days = (n: number): number => START + n * DAY_MS;

/** The chunks cover the window in order, without gaps, and are cut at midnight only. */
function expectCut(pieces: readonly Window[], { start, end }: Window): void {
  expect(pieces[0]?.start).toBe(start);
  expect(pieces.at(-1)?.end).toBe(end);
  for (const [i, piece] of pieces.entries()) {
    expect(piece.end).toBeGreaterThan(piece.start);
    const next = pieces[i + 1];
    if (next) {
      expect(piece.end).toBe(next.start);
      expect(startOfDay(piece.end)).toBe(piece.end);
    }
  }
}

const windows = fc
  .tuple(fc.integer({ min: 0, max: 4000 * DAY_MS }), fc.integer({ min: 1, max: 4000 * DAY_MS }))
  .map(([offset, length]) => ({ start: START + offset, end: START + offset + length }));
const densities = fc.oneof(fc.constant(0), fc.double({ min: 1e-9, max: 10, noNaN: true }));

describe('chunks of a window', () => {
  test('cover any window', () => {
    fc.assert(
      fc.property(windows, densities, (window, density) => {
        expectCut(chunksOf(window, density), window);
      }),
    );
  });

  test('are few enough for the queue: some 120 for ten empty years, at most 400 for thirty crowded ones', () => {
    expect(chunksOf({ start: days(0), end: days(3650) }, 0).length).toBeLessThanOrEqual(120);
    expect(chunksOf({ start: days(0), end: days(10_950) }, 10).length).toBeLessThanOrEqual(400);
  });
});

test('run as many at once as latency times budget requires', () => {
  expect(parallelism(20, 4)).toBe(2);
  expect(parallelism(300, 8)).toBe(5);
  expect(parallelism(5000, 8)).toBe(8);
});

test('run fewer at once if pages are large, so that memory stays within that of usual pages', () => {
  expect(parallelism(5000, 8, 4_400_000)).toBe(8);
  expect(parallelism(5000, 8, 20_000_000)).toBe(2);
  expect(parallelism(5000, 8, 60_000_000)).toBe(1);
  expect(parallelism(20, 4, 60_000_000)).toBe(1);
});

test('read no more windows at once than the process handles in pages', () => {
  // Sequentially from a fast service; from a slow one so many that a page is ready whenever the last is done.
  expect(parallelism(20, 1000, 0, 50)).toBe(1);
  expect(parallelism(120, 1000, 0, 50)).toBe(3);
  expect(parallelism(300, 8, 0, 150)).toBe(3);
  expect(parallelism(5000, 1000, 0, 50)).toBe(8);
  expect(parallelism(5000, 1000, 60_000_000, 50)).toBe(1);
  // If the budget is the bottleneck, it decides.
  expect(parallelism(300, 8, 0, 100)).toBe(5);
  expect(parallelism(20, 4, 0, 100)).toBe(2);
});

test('measure a page by the CPU time of the process, not by its wait', async () => {
  let answers = 0;
  const pageMs = createPageMs(() => answers);
  const work = (ms: number): void => {
    for (const end = performance.now() + ms; performance.now() < end; );
  };
  expect(pageMs()).toBe(50);
  const began = performance.now();
  for (; answers < 6; answers++) {
    work(100);
    await sleep(100);
  }
  const share = pageMs() / ((performance.now() - began) / answers);
  expect(share).toBeGreaterThan(0.2);
  expect(share).toBeLessThan(0.9);
});
