import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Value } from '../../src/model/columns.ts';
import { RetryLater } from '../../src/model/errors.ts';
import { unpackers } from '../../src/sinks/parquet/format/compression.ts';
import { compareText } from '../../src/sinks/parquet/format/encodings.ts';
import {
  type Compression,
  encodeFooter,
  encodeGroup,
  type FileColumn,
  fitsSchema,
  MAGIC,
  type ParquetFile,
  readFooter,
  readGroup,
  type StoredGroup,
} from '../../src/sinks/parquet/format/index.ts';
import { readWithHyparquet } from '../support/lake-readers.ts';
import { countingSource, countPages, encodeFile, openDuck, type Rows, sourceOf } from './parquet-format.ts';

const duck = openDuck();
const NOON = Date.UTC(2026, 10, 14, 12);

const COLUMNS: readonly FileColumn[] = [
  { name: 'event_id', kind: 'text', nullable: false },
  { name: 'timestamp', kind: 'timestamp', nullable: false },
  { name: 'amount', kind: 'integer', nullable: true },
  { name: 'rate', kind: 'number', nullable: true },
  { name: 'metadata', kind: 'json', nullable: true },
];

/** Group `n` holds minutes from n × 100. */
const rowsOf = (n: number, count = 100): Rows =>
  Array.from({ length: count }, (_, i): Value[] => {
    const minute = n * 100 + i;
    return [
      `e${String(minute).padStart(5, '0')}`,
      NOON + minute * 60_000,
      minute % 7 === 0 ? null : minute,
      minute / 4,
      JSON.stringify({ i }),
    ];
  });

const bytesOf = (file: Buffer, { start, end }: StoredGroup): Buffer => file.subarray(start, end);
const groupAt = ({ groups }: ParquetFile, i: number): StoredGroup => groups.at(i) as StoredGroup;

describe('groups', () => {
  it('are copied between files unchanged', async () => {
    const old = await encodeFile(COLUMNS, [rowsOf(0), rowsOf(1), rowsOf(2)]);
    const parsed = await readFooter(sourceOf(old));
    // The second group is rewritten, larger and with another compression; the others only move.
    const changed = await encodeGroup(COLUMNS, [...rowsOf(1), ...rowsOf(9, 50)], 'snappy');
    const [first, last] = [groupAt(parsed, 0), groupAt(parsed, 2)];
    const file = Buffer.concat([
      MAGIC,
      bytesOf(old, first),
      changed.bytes,
      bytesOf(old, last),
      encodeFooter(COLUMNS, [first, changed, last], {}),
    ]);
    const wanted = [rowsOf(0), rowsOf(1), rowsOf(9, 50), rowsOf(2)].flat();
    const again = await readFooter(sourceOf(file));
    expect(again.groups.map(({ rows }) => rows)).toEqual([100, 150, 100]);
    const own: Value[][] = [];
    for (const group of again.groups) own.push(...(await readGroup(sourceOf(file), again, group)));
    expect(own).toEqual(wanted);
    expect(bytesOf(file, groupAt(again, 2)).equals(bytesOf(old, last))).toBe(true);
    // The footer's metadata of a group moves with it, bounds included.
    const { start: _, end: __, ...moved } = groupAt(again, 2);
    const { start: ___, end: ____, ...before } = last;
    expect(moved).toEqual(before);
    const ids = wanted.map(([id]) => id);
    expect((await duck.query(file, 'select event_id from $file')).map((row) => row.event_id)).toEqual(ids);
    expect((await readWithHyparquet(file)).map((row) => row.event_id)).toEqual(ids);
  });

  it('are identical for identical rows, so that an unnecessary rewrite is detected', async () => {
    const file = await encodeFile(COLUMNS, [rowsOf(0)]);
    const parsed = await readFooter(sourceOf(file));
    const rows = await readGroup(sourceOf(file), parsed, groupAt(parsed, 0));
    expect(await encodeFile(COLUMNS, [rows])).toEqual(file);
  });

  it('give only the requested columns, and read no others', async () => {
    const file = await encodeFile(COLUMNS, [rowsOf(0), rowsOf(1)]);
    const parsed = await readFooter(sourceOf(file));
    const counting = countingSource(file);
    const rows = await readGroup(counting, parsed, groupAt(parsed, 1), ['rate', 'event_id']);
    expect(rows).toEqual(rowsOf(1).map(([id, , , rate]) => [rate, id]));
    const bytes = counting.asked.reduce((sum, asked) => sum + asked);
    const { chunks, length } = groupAt(parsed, 1);
    expect(bytes).toBe([0, 3, 4].reduce((sum, i) => sum + (chunks[i]?.length ?? 0), 0));
    expect(bytes).toBeLessThan(length);
    await expect(readGroup(counting, parsed, groupAt(parsed, 1), ['nope'])).rejects.toThrow('has no column nope');
  });

  it('are not reported as corrupt after a network error', async () => {
    const file = await encodeFile(COLUMNS, [rowsOf(0)]);
    const parsed = await readFooter(sourceOf(file));
    const cut = new RetryLater('the connection was cut');
    const source = { ...sourceOf(file), read: () => Promise.reject(cut) };
    await expect(readGroup(source, parsed, groupAt(parsed, 0))).rejects.toBe(cut);
    await expect(readGroup(source, parsed, groupAt(parsed, 0), ['amount'])).rejects.toBe(cut);
    await expect(readFooter(source)).rejects.toBe(cut);
  });

  it('fit only a file with the same columns', async () => {
    const file = await readFooter(sourceOf(await encodeFile(COLUMNS, [rowsOf(0)])));
    const change = (i: number, more: Partial<FileColumn>) => COLUMNS.map((c, at) => (at === i ? { ...c, ...more } : c));
    expect(fitsSchema(file, COLUMNS)).toBe(true);
    expect(fitsSchema(file, [...COLUMNS, { name: 'more', kind: 'text', nullable: true }])).toBe(false);
    expect(fitsSchema(file, COLUMNS.slice(1))).toBe(false);
    expect(fitsSchema(file, COLUMNS.toReversed())).toBe(false);
    expect(fitsSchema(file, change(2, { kind: 'number' }))).toBe(false);
    expect(fitsSchema(file, change(0, { nullable: true }))).toBe(false);
    expect(fitsSchema(file, change(0, { name: 'id' }))).toBe(false);
    const group = await encodeGroup(
      COLUMNS.slice(1),
      rowsOf(0).map((row) => row.slice(1)),
      'zstd',
    );
    expect(() => encodeFooter(COLUMNS, [group], {})).toThrow('does not fit a file');
  });

  it.each<Compression>(['zstd', 'snappy', 'gzip'])(
    'are packed with %s, in pages of a bounded size',
    async (compression) => {
      const columns: FileColumn[] = [{ name: 't', kind: 'text', nullable: true }];
      const rows = Array.from({ length: 40 }, (_, i) => [i % 5 === 0 ? null : `${i}-`.repeat(60_000)]);
      const file = await encodeFile(columns, [rows], { compression });
      const [meta] = await duck.query(file, 'select compression, num_values from parquet_metadata($file)');
      expect(meta).toEqual({ compression: compression.toUpperCase(), num_values: 40n });
      expect((await duck.query(file, 'select t from $file')).map(({ t }) => t)).toEqual(rows.flat());
      const parsed = await readFooter(sourceOf(file));
      expect(await readGroup(sourceOf(file), parsed, groupAt(parsed, 0))).toEqual(rows);
      const bytes = rows.flat().join('').length;
      expect(countPages(file, groupAt(parsed, 0))).toBe(Math.floor(bytes / 2 ** 20));
      expect(file.length).toBeLessThan(bytes / 5);
    },
  );

  it('are decompressed even if zstd omits their length', async () => {
    const { ZSTD } = await unpackers();
    const text = Buffer.alloc(900, 'tributary ');
    // The shortest frame: magic, no size, a window of 1 KiB, and one raw last block.
    const block = (text.length << 3) | 1;
    const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0, block & 0xff, (block >> 8) & 0xff, block >> 16, ...text]);
    expect(Buffer.from(ZSTD(frame, text.length)).equals(text)).toBe(true);
  });

  it('yield to other work while they are encoded', async () => {
    const columns = Array.from({ length: 60 }, (_, i): FileColumn => ({ name: `c${i}`, kind: 'text', nullable: true }));
    const rows = Array.from({ length: 8000 }, (_, r) => columns.map((_column, c) => `value ${(r * 31 + c) % 4001}`));
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await encodeGroup(columns, rows, 'zstd');
    clearInterval(timer);
    expect(turns).toBeGreaterThan(2);
  });
});

describe('bounds', () => {
  const groupsOf = async (values: readonly Value[][], kind: FileColumn['kind'] = 'text') =>
    encodeFile(
      [{ name: 's', kind, nullable: true }],
      values.map((group) => group.map((value) => [value])),
    );

  it('let DuckDB skip groups, even corrupt ones', async () => {
    const file = await encodeFile(COLUMNS, [rowsOf(0), rowsOf(1), rowsOf(2)]);
    const parsed = await readFooter(sourceOf(file));
    const spoiled = Buffer.from(file);
    for (const i of [0, 2]) spoiled.fill(0xff, groupAt(parsed, i).start, groupAt(parsed, i).end);
    await expect(duck.query(spoiled, 'select sum(amount), max(event_id) from $file')).rejects.toThrow();
    const within = `timestamp >= timestamptz '2026-11-14T13:40:00Z' and timestamp < timestamptz '2026-11-14T15:20:00Z'`;
    for (const where of [
      within,
      `event_id between 'e00100' and 'e00199'`,
      'amount between 100 and 199',
      'rate between 25 and 49.75',
    ]) {
      const [row] = await duck.query(
        spoiled,
        `select count(*) n, min(event_id) a, max(event_id) z from $file where ${where}`,
      );
      expect(row, where).toMatchObject({ a: 'e00100', z: 'e00199' });
    }
  });

  it('have the order of bytes, not of UTF-16', async () => {
    const file = await groupsOf([['！', '😀', 'z']]);
    expect(await duck.query(file, `select s from $file where s = '😀'`)).toEqual([{ s: '😀' }]);
    const [stats] = await duck.query(
      file,
      'select stats_min_value a, stats_max_value z, stats_null_count n from parquet_metadata($file)',
    );
    expect(stats).toEqual({ a: 'z', z: '😀', n: 0n });
    const text = fc.string({ unit: fc.constantFrom('a', 'é', '中', '！', '😀', '\u{10ffff}', '\ue000', '\ud7ff') });
    fc.assert(
      fc.property(
        text,
        text,
        (a, b) => Math.sign(compareText(a, b)) === Buffer.compare(Buffer.from(a), Buffer.from(b)),
      ),
    );
  });

  it('of long text are short and include all of it', async () => {
    const long = (end: string): string => `${'😀'.repeat(40)}${'x'.repeat(5000)}${end}`;
    const file = await groupsOf([
      [long('a'), long('b')],
      ['\u{10ffff}'.repeat(100)],
      [`${'y'.repeat(63)}\ud7ff\ud7ff`],
    ]);
    const parsed = await readFooter(sourceOf(file));
    expect(parsed.groups.map(({ ranges }) => ranges.size)).toEqual([1, 0, 1]);
    const { min, max } = groupAt(parsed, 0).ranges.get('s') ?? {};
    expect(String(min).length).toBeLessThan(70);
    expect(compareText(String(min), long('a'))).toBeLessThan(0);
    expect(compareText(String(max), long('b'))).toBeGreaterThan(0);
    for (const text of [long('a'), long('b'), '\u{10ffff}'.repeat(100), `${'y'.repeat(63)}\ud7ff\ud7ff`]) {
      expect(await duck.query(file, `select count(*) n from $file where s = '${text}'`)).toEqual([{ n: 1n }]);
    }
    expect(await duck.query(file, 'select length(max(s)) n from $file')).toEqual([{ n: 100n }]);
  });

  it('are read back as their values', async () => {
    const rangeOf = async (kind: FileColumn['kind'], values: Value[]) =>
      groupAt(await readFooter(sourceOf(await groupsOf([values], kind))), 0).ranges.get('s');
    const noon = NOON + 0.456;
    expect(await rangeOf('timestamp', [noon, null, -0.001])).toEqual({ min: -0.001, max: noon });
    expect(await rangeOf('integer', [3, 2n ** 63n - 1n, -7])).toEqual({ min: -7, max: 2n ** 63n - 1n });
    expect(await rangeOf('text', ['b', 'a\ud800', 'c'])).toEqual({ min: 'a\ufffd', max: 'c' });
    expect(await rangeOf('text', [null])).toBeUndefined();
    expect(await rangeOf('json', ['{}'])).toBeUndefined();
  });

  it('include both zeros, as Parquet requires', async () => {
    const file = await groupsOf([[0, 0]], 'number');
    const [chunk] = groupAt(await readFooter(sourceOf(file)), 0).chunks;
    const doubles = [chunk?.min, chunk?.max].map((bound) => Buffer.from(bound?.bytes ?? []).readDoubleLE());
    expect(doubles).toEqual([-0, 0]);
  });

  it('of any text include every value', async () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '！', '😀', '\ud800', '\u{10ffff}'),
      maxLength: 90,
      size: 'max',
    });
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 8 }), async (values) => {
        const { groups } = await readFooter(sourceOf(await groupsOf([values])));
        const range = groups[0]?.ranges.get('s');
        if (range === undefined) return;
        for (const value of values) {
          const bytes = Buffer.from(value);
          expect(Buffer.compare(Buffer.from(range.min as string), bytes)).toBeLessThanOrEqual(0);
          expect(Buffer.compare(Buffer.from(range.max as string), bytes)).toBeGreaterThanOrEqual(0);
        }
      }),
      { numRuns: 200 },
    );
  });
});
