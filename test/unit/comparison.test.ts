import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Row } from '../../src/model/flatten.ts';
import { chunked, cutPages, type Found } from '../../src/sync/maintain/comparison.ts';

const row = (at: number): Row => ({
  id: String(at),
  at,
  values: [],
  extra: null,
  contradictions: [],
  typeMismatches: [],
});

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}
async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test('pages of rows become consecutive windows, each with exactly its rows', async () => {
  const pages = fc
    .array(fc.integer({ min: 0, max: 30 }), { maxLength: 60 })
    .map((times) => times.sort((a, b) => a - b).map(row));
  await fc.assert(
    fc.asyncProperty(pages, fc.integer({ min: 1, max: 9 }), async (rows, size) => {
      const cut = Array.from({ length: Math.ceil(rows.length / size) }, (_, i) => rows.slice(i * size, (i + 1) * size));
      const parts = await all(cutPages(each(cut), { start: 0, end: 31 }));
      expect(parts.flatMap((part) => part.rows)).toEqual(rows);
      expect(parts[0]?.window.start).toBe(0);
      expect(parts.at(-1)?.window.end).toBe(31);
      for (const [i, part] of parts.entries()) {
        expect(part.rows.every(({ at }) => at >= part.window.start && at < part.window.end)).toBe(true);
        if (i > 0) expect(part.window.start).toBe(parts[i - 1]?.window.end);
      }
    }),
  );
});

test('chunks hold a few thousand rows and keep every doubt', async () => {
  const part = (start: number, rows: number, doubt?: string): Found => ({
    window: { start, end: start + 10 },
    rows: Array.from({ length: rows }, () => row(start)),
    doubt,
  });
  const chunks = await all(chunked(each([part(0, 3000), part(10, 0, 'torn'), part(20, 2500), part(30, 7)])));
  expect(chunks.map(({ window, rows }) => [window.start, window.end, rows.length])).toEqual([
    [0, 30, 5500],
    [30, 40, 7],
  ]);
  expect(chunks.map(({ doubts }) => doubts)).toEqual([[{ start: 10, end: 20, note: 'torn' }], []]);
});
