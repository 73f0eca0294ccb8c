import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyOf } from '../../src/sinks/files/event-index.ts';
import { evenParts, GROUP_ROWS, type PresentGroup, planSegments } from '../../src/sinks/files/layout.ts';
import { filePath, partitionAt, partitionOf } from '../../src/sinks/parquet/lake.ts';

describe("the plan of a partition's next file", () => {
  const group = (rows: number, oldest: number, newest: number, isTouched = false): PresentGroup => ({
    rows,
    oldest,
    newest,
    isTouched,
  });
  const added = (...times: number[]) => times.map((at) => ({ at, row: at }));

  it('copies groups without new rows, and appends new groups', () => {
    const full = group(GROUP_ROWS, 0, 9);
    expect(planSegments([full, group(15_000, 10, 19)], added(20, 21))).toEqual([
      { copy: 0 },
      { copy: 1 },
      { groups: [], added: [20, 21] },
    ]);
    expect(planSegments([full, group(15_000, 10, 19)], added(12))).toEqual([{ copy: 0 }, { groups: [1], added: [12] }]);
    expect(planSegments([group(9, 10, 19), full], added(5))).toEqual([{ groups: [0], added: [5] }, { copy: 1 }]);
    expect(planSegments([full], added(-5))).toEqual([{ groups: [], added: [-5] }, { copy: 0 }]);
    expect(planSegments([full, group(15_000, 10, 19, true)], [])).toEqual([{ copy: 0 }, { groups: [1], added: [] }]);
  });

  /** Loads batches of times into one file: how often a row was encoded on average, and the groups at the end. */
  function load(batches: readonly number[][]): { encoded: number; groups: number[] } {
    let stored: number[][] = [];
    let [encoded, rows] = [0, 0];
    for (const batch of batches) {
      const groups = stored.map((times) => group(times.length, times[0] ?? 0, times.at(-1) ?? 0));
      const before = stored;
      stored = planSegments(groups, added(...batch.toSorted((a, b) => a - b))).flatMap((one) => {
        if ('copy' in one) return [before[one.copy] ?? []];
        const times = [...one.groups.flatMap((i) => before[i] ?? []), ...one.added].sort((a, b) => a - b);
        encoded += times.length;
        return evenParts(times);
      });
      rows += batch.length;
    }
    expect(stored.flat()).toEqual(batches.flat().sort((a, b) => a - b));
    return { encoded: encoded / rows, groups: stored.map(({ length }) => length) };
  }
  const run = (first: number, rows: number): number[] => Array.from({ length: rows }, (_, i) => first + i);

  it('joins four small groups of similar size: a row is rewritten a few times, not with every batch', () => {
    const { encoded, groups } = load(Array.from({ length: 600 }, (_, n) => run(n * 100, 100)));
    // log4(20,000 / 100) is 3.8.
    expect(encoded).toBeLessThan(5);
    expect(groups.length).toBeLessThan(60_000 / (GROUP_ROWS / 2) + 9);
  });

  it('does not rewrite one range of a day when another gets rows', () => {
    const chains = run(0, 8).map((chain) => chain * 20_000);
    const { encoded, groups } = load(run(0, 16).map((n) => chains.flatMap((start) => run(start + n * 1250, 1250))));
    expect(encoded).toBeLessThan(3.5);
    expect(groups.length).toBeLessThan(20);
  });

  it('keeps recent groups small: late events rewrite the last polls, not the day', () => {
    const polls = run(0, 288).map((n) => [
      ...run(n * 1000, 340),
      ...run(0, 7).map((i) => Math.max(0, n - 3) * 1000 + 500 + i),
    ]);
    expect(load(polls).encoded).toBeLessThan(16);
  });

  it('joins bursts with pauses between them once there are many', () => {
    for (const rows of [500, 1500]) {
      const { encoded, groups } = load(run(0, 144).map((n) => run(n * 10_000, rows)));
      expect(groups.length).toBeLessThan(30 + (144 * rows) / 5000);
      expect(encoded).toBeLessThan(4);
    }
  });

  it('joins rare events, however far apart', () => {
    const { groups } = load(run(0, 288).map((n) => run(n * 300_000, 3)));
    expect(groups.length).toBeLessThan(10);
  });

  it('keeps every row, once and in order, for any batches', () => {
    const times = fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 60 });
    fc.assert(
      fc.property(fc.array(times, { maxLength: 8 }), times, (present, incoming) => {
        const sorted = present.flat().sort((a, b) => a - b);
        const size = Math.ceil(sorted.length / 4) || 1;
        const stored = Array.from({ length: Math.ceil(sorted.length / size) }, (_, i) =>
          sorted.slice(i * size, (i + 1) * size),
        );
        const groups = stored.map((rows) => group(rows.length, rows[0] ?? 0, rows.at(-1) ?? 0));
        const segments = planSegments(groups, added(...[...incoming].sort((a, b) => a - b)));
        const all = segments.flatMap((one) =>
          'copy' in one
            ? (stored[one.copy] ?? [])
            : [...one.groups.flatMap((i) => stored[i] ?? []), ...one.added].sort((a, b) => a - b),
        );
        expect(all).toEqual([...sorted, ...incoming].sort((a, b) => a - b));
      }),
    );
  });

  it('cuts an oversized group into even parts', () => {
    const sizes = (rows: number) => evenParts(Array.from({ length: rows }, (_, i) => i)).map((part) => part.length);
    expect([0, 1, GROUP_ROWS].map(sizes)).toEqual([[], [1], [GROUP_ROWS]]);
    expect(sizes(GROUP_ROWS + 1)).toEqual([10_001, 10_000]);
    expect(evenParts([1, 2, 3]).flat()).toEqual([1, 2, 3]);
  });
});

describe('the path of a partition', () => {
  it('can be parsed back to the partition', () => {
    const instants = fc.integer({ min: Date.parse('0001-01-01T00:00:00Z'), max: Date.parse('9999-12-31T23:59:59Z') });
    fc.assert(
      fc.property(instants, fc.constantFrom('day' as const, 'hour' as const), (at, scheme) => {
        const partition = partitionOf(scheme, at);
        expect(partitionAt(scheme, filePath(scheme, 'clicks', 'main', partition))).toBe(partition);
        expect(
          partitionAt(scheme === 'day' ? 'hour' : 'day', filePath(scheme, 'clicks', 'main', partition)),
        ).toBeUndefined();
      }),
    );
  });
});

it('keeps the key of an event, since the index has keys from earlier versions', () => {
  expect(['clk_1', 'clk_2', 'é😀'].map(keyOf)).toEqual([
    ...[-4124639908181875673n, 2132066926346312668n, 1262364650198372074n],
  ]);
});
