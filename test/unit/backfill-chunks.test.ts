import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, startOfDay, type Window } from '../../src/model/window.ts';
import { chunksOf } from '../../src/sync/backfill/unread.ts';
import { createPageMs, parallelism } from '../../src/sync/parallelism.ts';

const START = Date.UTC(2026, 0, 1);
const days = (n: number): number => START + n * DAY_MS;

/** The pieces cover the window in order, without gaps, and are cut at midnight only. */
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

describe('cutting a window', () => {
  test('chunks cover it, whatever it is', () => {
    fc.assert(
      fc.property(windows, densities, (window, density) => {
        expectCut(chunksOf(window, density), window);
      }),
    );
  });

  test('a queue is not flooded: ten empty years are some 120 chunks, thirty crowded ones at most 400', () => {
    expect(chunksOf({ start: days(0), end: days(3650) }, 0).length).toBeLessThanOrEqual(120);
    expect(chunksOf({ start: days(0), end: days(10_950) }, 10).length).toBeLessThanOrEqual(400);
  });
});

test('as many side by side as latency times budget asks for', () => {
  expect(parallelism(20, 4)).toBe(2);
  expect(parallelism(300, 8)).toBe(5);
  expect(parallelism(5000, 8)).toBe(8);
});

test('fewer side by side where pages are large, so that together they stay as small as usual ones', () => {
  expect(parallelism(5000, 8, 4_400_000)).toBe(8);
  expect(parallelism(5000, 8, 20_000_000)).toBe(2);
  expect(parallelism(5000, 8, 60_000_000)).toBe(1);
  expect(parallelism(20, 4, 60_000_000)).toBe(1);
});

test('reads no more windows at a time than the process takes in pages', () => {
  // From a fast service one after the other; from a slow one so many that a page is there whenever the last is done.
  expect(parallelism(20, 1000, 0, 50)).toBe(1);
  expect(parallelism(120, 1000, 0, 50)).toBe(3);
  expect(parallelism(300, 8, 0, 150)).toBe(3);
  expect(parallelism(5000, 1000, 0, 50)).toBe(8);
  expect(parallelism(5000, 1000, 60_000_000, 50)).toBe(1);
  // Where the budget is what it waits for, the budget says.
  expect(parallelism(300, 8, 0, 100)).toBe(5);
  expect(parallelism(20, 4, 0, 100)).toBe(2);
});

test('a page takes as long as the process is busy for it, not as long as it waits', async () => {
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
