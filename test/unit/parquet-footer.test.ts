import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { deserializeTCompactProtocol } from 'hyparquet/src/thrift.js';
import { describe, expect, it } from 'vitest';
import { RetryLater } from '../../src/model/errors.ts';
import {
  type Chunk,
  encodeFooter,
  encodeGroup,
  type FileColumn,
  MAGIC,
  readFooter,
  readGroup,
  type StoredGroup,
} from '../../src/sinks/parquet/format/index.ts';
import { queryDuckdb } from '../support/lake-readers.ts';
import { countingSource, encodeFile, openDuck, sourceOf } from './parquet-format.ts';

const duck = openDuck();

const COLUMNS: readonly FileColumn[] = [
  { name: 'event_id', kind: 'text', nullable: false },
  { name: 'rate', kind: 'number', nullable: true },
];
const ROWS = [
  ['a', 1],
  ['b', null],
  ['c', 2n ** 64n],
];

describe('the footer', () => {
  it('has the metadata of the file', async () => {
    const metadata = { source: 'main', stream: 'clicks', window: '2026-11-14/2026-11-15', note: 'ü😀 "x"', '': '' };
    const file = await encodeFile(COLUMNS, [ROWS], { metadata });
    expect((await readFooter(sourceOf(file))).metadata).toEqual(metadata);
    const entries = await duck.query(file, 'select decode(key) k, decode(value) v from parquet_kv_metadata($file)');
    expect(Object.fromEntries(entries.map(({ k, v }) => [k, v]))).toMatchObject(metadata);
    const [about] = await duck.query(
      file,
      'select created_by, num_rows, num_row_groups from parquet_file_metadata($file)',
    );
    expect(about).toEqual({ created_by: 'tributary version 1', num_rows: 3n, num_row_groups: 1n });
  });

  it('is read in one request if small, and completely if large', async () => {
    const columns = Array.from(
      { length: 400 },
      (_, i): FileColumn => ({ name: `column_${i}`, kind: 'text', nullable: true }),
    );
    const group = [columns.map(({ name }) => `a text that makes the bounds of ${name} long`)];
    const file = await encodeFile(
      columns,
      Array.from({ length: 4 }, () => group),
    );
    const large = countingSource(file);
    expect((await readFooter(large)).groups).toHaveLength(4);
    expect(large.asked).toHaveLength(3);
    const small = countingSource(await encodeFile(COLUMNS, [ROWS]));
    await readFooter(small);
    expect(small.asked).toHaveLength(2);
  });

  it('is refused if the file is truncated', async () => {
    const file = await encodeFile(COLUMNS, [ROWS, ROWS]);
    expect((await readFooter(sourceOf(file))).rows).toBe(6);
    for (let length = 0; length < file.length; length++) {
      await expect(readFooter(sourceOf(file.subarray(0, length))), `${length} bytes`).rejects.toThrow(RetryLater);
    }
    const error = await readFooter(sourceOf(file.subarray(0, -1))).catch((e) => e);
    expect(error.describe()).toBe(
      [
        'test.parquet is not a complete Parquet file: it lacks the magic bytes at its start or end',
        'kept: the file as it is',
        'next: move it away and run again, or run verify --repair: what it held is read again',
      ].join('\n'),
    );
  });

  it('is refused with a byte missing or added in the middle', async () => {
    const file = await encodeFile(COLUMNS, [ROWS, ROWS]);
    for (let i = 1; i < file.length - 1; i += 7) {
      const less = Buffer.concat([file.subarray(0, i), file.subarray(i + 1)]);
      const more = Buffer.concat([file.subarray(0, i), Buffer.from([0]), file.subarray(i)]);
      // A byte of a text may be lost; then the lengths no longer match.
      await expect(readFooter(sourceOf(less)), `less at ${i}`).rejects.toThrow(RetryLater);
      await expect(readFooter(sourceOf(more)), `more at ${i}`).rejects.toThrow(RetryLater);
    }
  });

  it('finds groups at any offset', async () => {
    const [one, two] = [await encodeGroup(COLUMNS, ROWS, 'zstd'), await encodeGroup(COLUMNS, ROWS.slice(0, 1), 'zstd')];
    const gap = Buffer.alloc(100);
    const starts = [MAGIC.length + two.length + gap.length, MAGIC.length] as const;
    const footer = encodeFooter(COLUMNS, [one, two], {}, { starts, footerAt: starts[0] + one.length });
    const source = sourceOf(Buffer.concat([MAGIC, two.bytes, gap, one.bytes, footer]));
    const file = await readFooter(source);
    expect(file.groups.map(({ start, rows }) => [start, rows])).toEqual([
      [starts[0], ROWS.length],
      [starts[1], 1],
    ]);
    const [first, second] = await Promise.all(file.groups.map((group) => readGroup(source, file, group)));
    expect(first).toHaveLength(ROWS.length);
    expect(second).toEqual(first?.slice(0, 1));
  });

  it('must agree with its groups: rows and offsets are checked', async () => {
    const group = await encodeGroup(COLUMNS, ROWS, 'zstd');
    const [first, ...others] = group.chunks;
    const swapped = { ...group, chunks: [...others, first as Chunk] };
    const refused = async (why: string, ...parts: Uint8Array[]) =>
      expect(readFooter(sourceOf(Buffer.concat([MAGIC, ...parts])))).rejects.toThrow(why);
    const { bytes } = group;
    const end = MAGIC.length + bytes.length;
    const at = (footerAt: number, ...starts: number[]) =>
      encodeFooter(
        COLUMNS,
        starts.map(() => group),
        {},
        { starts, footerAt },
      );
    await refused('bytes are missing in it', bytes, bytes, encodeFooter(COLUMNS, [group], {}));
    await refused('reach into its footer', bytes, at(end, 4 + 1));
    await refused('overlap', bytes, bytes, at(end + bytes.length, 4, 5));
    await refused('overlap', bytes, at(end, 3));
    await refused('columns of a group do not follow', bytes, encodeFooter(COLUMNS, [swapped], {}));
    await refused('other columns or rows', bytes, encodeFooter(COLUMNS, [{ ...group, rows: 4 }], {}));
    const file = await encodeFile(COLUMNS, [ROWS]);
    await expect(readFooter(sourceOf(Buffer.from(file).fill(0, 0, 1)))).rejects.toThrow('lacks the magic bytes');
  });

  it('is refused with one wrong byte, or gives the same rows and offsets', async () => {
    const file = await encodeFile(COLUMNS, [ROWS]);
    const whole = await readFooter(sourceOf(file));
    const reasons = new Set<string>();
    for (let i = whole.groups[0]?.end ?? 0; i < file.length; i++) {
      const wrong = Buffer.from(file);
      wrong[i] = (wrong[i] ?? 0) ^ 0x02;
      const found = await readFooter(sourceOf(wrong)).catch((error: unknown) => error);
      if (found instanceof RetryLater) reasons.add(found.message.split(': ')[1] ?? '');
      else expect(found).toMatchObject({ rows: 3, groups: [{ rows: 3, start: 4, end: whole.groups[0]?.end }] });
    }
    expect(reasons).toContain('its groups do not add up to its rows');
    expect(reasons).toContain('its footer cannot be read');
  });

  it("names the sort order of every column's bounds, without which readers ignore them", async () => {
    const footer = encodeFooter(COLUMNS, [], {});
    const metadata = deserializeTCompactProtocol({ view: new DataView(Uint8Array.from(footer).buffer), offset: 0 });
    expect(metadata.field_7).toEqual([{ field_1: {} }, { field_1: {} }, { field_1: {} }]);
  });

  it('numbers the leaves for a table format, and omits bounds of unordered types', async () => {
    const columns: FileColumn[] = [
      { name: 'event_id', kind: 'text', nullable: false, fieldIds: [7] },
      { name: 'rate', kind: 'number', nullable: true, fieldIds: [8, 9] },
      { name: 'extra', kind: 'json', nullable: true, fieldIds: [10] },
    ];
    const file = await encodeFile(columns, [[['a', 1.5, '{}']]]);
    const found = await duck.query(
      file,
      "select s.name, field_id, stats_min_value as low from parquet_schema($file) s left join parquet_metadata($file) m on path_in_schema = s.name where s.name <> 'root' order by field_id",
    );
    expect(found.map(({ name, field_id, low }) => [name, Number(field_id), low])).toEqual([
      ['event_id', 7, 'a'],
      ['rate', 8, '1.5'],
      ['_exact_rate', 9, null],
      ['extra', 10, null],
    ]);
  });

  it('is refused if another writer made it, with its name', async () => {
    const path = join(duck.dir, 'foreign.parquet');
    await queryDuckdb(`copy (select 'x' as event_id, [1, 2] as list) to '${path}' (format parquet)`);
    await expect(readFooter(sourceOf(readFileSync(path)))).rejects.toThrow(
      /^test\.parquet was not written by Tributary: it says DuckDB version/,
    );
  });
});

describe('a corrupted group', () => {
  it('is refused with its place', async () => {
    const file = await encodeFile(COLUMNS, [ROWS]);
    const parsed = await readFooter(sourceOf(file));
    const group = parsed.groups[0] as StoredGroup;
    const spoiled = Buffer.from(file).fill(0xff, group.start, group.end);
    await expect(readGroup(sourceOf(spoiled), parsed, group)).rejects.toThrow(
      'a group of 3 rows at byte 4 cannot be read',
    );
  });
});
