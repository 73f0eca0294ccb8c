import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filePath, partitionAt, partitionOf } from '../../src/sinks/parquet/lake.ts';
import { evenParts, GROUP_ROWS, type PresentGroup, planSegments } from '../../src/sinks/parquet/layout.ts';

describe('how the next file of a partition is made of the present one', () => {
  const group = (rows: number, oldest: number, newest: number, isTouched = false): PresentGroup => ({
    rows,
    oldest,
    newest,
    isTouched,
  });
  const added = (...times: number[]) => times.map((at) => ({ at, row: at }));

  it('copies groups that nothing falls into, and lets new ones follow', () => {
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

  it('joins small groups as a binary counter does: a row is written again a few times, not with every batch', () => {
    const batch = 100;
    const rowsOf = (segment: ReturnType<typeof planSegments<number>>[number], groups: readonly PresentGroup[]) =>
      'copy' in segment
        ? (groups[segment.copy]?.rows ?? 0)
        : segment.added.length + segment.groups.reduce((sum, i) => sum + (groups[i]?.rows ?? 0), 0);
    let groups: PresentGroup[] = [];
    let encoded = 0;
    const batches = 600;
    for (let n = 0; n < batches; n++) {
      const news = added(...Array.from({ length: batch }, (_, i) => n * batch + i));
      const segments = planSegments(groups, news);
      encoded += segments.reduce((sum, one) => sum + ('copy' in one ? 0 : rowsOf(one, groups)), 0);
      let at = 0;
      groups = segments.map((one) => {
        const rows = rowsOf(one, groups);
        at += rows;
        return group(rows, at - rows, at - 1);
      });
    }
    expect(groups.reduce((sum, { rows }) => sum + rows, 0)).toBe(batch * batches);
    // log2(20,000 / 100) is 7.6.
    expect(encoded / (batch * batches)).toBeLessThan(9);
    expect(groups.length).toBeLessThan((batch * batches) / (GROUP_ROWS / 2) + 9);
  });

  it('keeps every row, once and in order, whatever comes', () => {
    const times = fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 60 });
    fc.assert(
      fc.property(fc.array(times, { maxLength: 8 }), times, (present, news) => {
        const sorted = present.flat().sort((a, b) => a - b);
        const size = Math.ceil(sorted.length / 4) || 1;
        const stored = Array.from({ length: Math.ceil(sorted.length / size) }, (_, i) =>
          sorted.slice(i * size, (i + 1) * size),
        );
        const groups = stored.map((rows) => group(rows.length, rows[0] ?? 0, rows.at(-1) ?? 0));
        const segments = planSegments(groups, added(...[...news].sort((a, b) => a - b)));
        const all = segments.flatMap((one) =>
          'copy' in one
            ? (stored[one.copy] ?? [])
            : [...one.groups.flatMap((i) => stored[i] ?? []), ...one.added].sort((a, b) => a - b),
        );
        expect(all).toEqual([...sorted, ...news].sort((a, b) => a - b));
      }),
    );
  });

  it('cuts what is too much for one group into even parts', () => {
    const sizes = (rows: number) => evenParts(Array.from({ length: rows }, (_, i) => i)).map((part) => part.length);
    expect([0, 1, GROUP_ROWS].map(sizes)).toEqual([[], [1], [GROUP_ROWS]]);
    expect(sizes(GROUP_ROWS + 1)).toEqual([10_001, 10_000]);
    expect(evenParts([1, 2, 3]).flat()).toEqual([1, 2, 3]);
  });
});

describe('the path of a partition', () => {
  it('leads back to the partition', () => {
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
