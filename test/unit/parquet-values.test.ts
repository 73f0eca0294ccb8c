import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Kind, Value } from '../../src/model/columns.ts';
import {
  encodeGroup,
  type FileColumn,
  readFooter,
  readGroup,
  type StoredGroup,
} from '../../src/sinks/parquet/format/index.ts';
import { readWithHyparquet } from '../support/lake-readers.ts';
import { encodeFile, openDuck, type Rows, sourceOf } from './parquet-format.ts';

const duck = openDuck();

const KINDS: readonly Kind[] = ['text', 'integer', 'number', 'boolean', 'timestamp', 'json'];
const deep = `${'{"down":['.repeat(60)}9007199254740993${']}'.repeat(60)}`;
const at = (iso: string, fraction = 0): number => Date.parse(iso) + fraction;

const VALUES: Readonly<Record<Kind, readonly Value[]>> = {
  text: ['', ' ', 'null', 'é 中 😀', '！', 'a\0b', 'a\ud800b', '\udc00', 'x'.repeat(1_000_000), '😀'.repeat(90)],
  integer: [0, -0, 1, -1, 2 ** 31, -(2 ** 31) - 1, 2 ** 32, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER].concat([
    2n ** 53n + 1n,
    -(2n ** 53n) - 1n,
    2n ** 63n - 1n,
    -(2n ** 63n),
  ] as unknown as number[]),
  number: [
    0,
    -0,
    0.1,
    -2.5,
    1 / 300,
    5e-324,
    Number.MAX_VALUE,
    1e21,
    2 ** 60,
    2n ** 53n + 1n,
    2n ** 70n,
    -(10n ** 40n),
    10n ** 400n,
  ],
  boolean: [true, false, false, true, true, true, false, true, true],
  timestamp: [
    0,
    -0.001,
    at('1969-12-31T23:59:59.999Z', 0.25),
    at('2026-11-14T10:30:00.123Z'),
    at('2026-11-14T10:30:00.123Z', 0.456),
    at('2026-11-14T10:30:00.999Z', 0.999),
    at('0001-01-01T00:00:00.000Z'),
    at('9999-12-31T23:59:59.999Z'),
  ],
  json: [
    '{}',
    '[]',
    '0',
    'false',
    '""',
    '"null"',
    '[null]',
    '{"a":null}',
    '{"__proto__":{"a":1}}',
    deep,
    '{"t":"\\\\ud800 \\u0000"}',
    '{"half":"\ud800","\udc00":1}',
    '{"whole":"😀"}',
  ],
};

/** What a reader must return for a value. */
const AS_STORED: Readonly<Record<Kind, (value: never) => unknown>> = {
  text: (value: string) => value.toWellFormed(),
  integer: (value: number | bigint) => BigInt(value),
  number: (value: number | bigint) => (Number.isFinite(Number(value)) ? Number(value) + 0 : null),
  boolean: (value: boolean) => value,
  timestamp: (value: number) =>
    BigInt(Math.floor(value)) * 1000n + BigInt(Math.round((value - Math.floor(value)) * 1000)),
  json: (value: string) => value.toWellFormed(),
};

/** What the codec itself returns. */
const AS_READ: Readonly<Record<Kind, (value: never) => Value>> = {
  text: (value: string) => value.toWellFormed(),
  integer: (value: number | bigint) => (value === 0 ? 0 : value),
  number: (value: number | bigint) => (value === 0 ? 0 : value),
  boolean: (value: boolean) => value,
  timestamp: (value: number) => value,
  json: (value: string) => value.toWellFormed(),
};

/** Compares the same rows through the codec, DuckDB and hyparquet, value by value. */
async function checkEverywhere(columns: readonly FileColumn[], groups: readonly Rows[]): Promise<void> {
  const file = await encodeFile(columns, groups);
  const rows = groups.flat();
  const parsed = await readFooter(sourceOf(file));
  expect(parsed.columns).toEqual(columns);
  expect(parsed.rows).toBe(rows.length);
  const own: Value[][] = [];
  for (const group of parsed.groups) own.push(...(await readGroup(sourceOf(file), parsed, group)));
  const byDuck = await duck.query(file, 'select * from $file');
  const byHyparquet = await readWithHyparquet(file);
  expect([own.length, byDuck.length, byHyparquet.length]).toEqual([rows.length, rows.length, rows.length]);
  rows.forEach((row, r) => {
    columns.forEach(({ name, kind }, c) => {
      const value = row[c] ?? null;
      const stored = value === null ? null : AS_STORED[kind](value as never);
      expect(plain(byDuck[r]?.[name]), `DuckDB, ${name}, row ${r}`).toBe(stored);
      expect(byHyparquet[r]?.[name] ?? null, `hyparquet, ${name}, row ${r}`).toBe(stored);
      const read = own[r]?.[c] ?? null;
      const wanted = value === null ? null : AS_READ[kind](value as never);
      expect(Object.is(read, wanted), `${name}, row ${r}: ${String(read)} for ${String(wanted)}`).toBe(true);
    });
  });
}

/** DuckDB returns instants as objects. */
function plain(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'micros' in value ? value.micros : value;
}

const column = (kind: Kind, name = `a_${kind}`, nullable = true): FileColumn => ({ name, kind, nullable });

describe('values', () => {
  it.each(KINDS)('carries every %s to every reader', async (kind) => {
    const values = VALUES[kind];
    // Alone, between nulls, repeated enough for a dictionary, and in a column without nulls.
    await checkEverywhere(
      [column(kind)],
      [values.map((value) => [value]), values.flatMap((value) => [[null], [value]])],
    );
    const often = [...values, ...values, ...values, ...values].map((value) => [value]);
    await checkEverywhere([column(kind, 'often', kind === 'number')], [often]);
  });

  it('store columns without values, and no rows at all', async () => {
    const columns = KINDS.map((kind) => column(kind));
    await checkEverywhere(columns, [Array.from({ length: 20 }, () => KINDS.map(() => null))]);
    await checkEverywhere(columns, [[], [KINDS.map((kind) => VALUES[kind][0] as Value)], []]);
    await checkEverywhere(columns, []);
  });

  it('distinguish no text from empty text, and no JSON from JSON null', async () => {
    const file = await encodeFile(
      [column('text', 't'), column('json', 'j')],
      [
        [
          ['', '[null]'],
          [null, null],
        ],
      ],
    );
    const [row] = await duck.query(file, 'select count(t) t, count(j) j, count(j->>0) inside from $file');
    expect(row).toEqual({ t: 1n, j: 1n, inside: 0n });
  });

  it('keep a byte order mark, which the clients of both readers remove', async () => {
    const file = await encodeFile([column('text', 't')], [[['\ufeffbom']]]);
    expect(await duck.query(file, 'select strlen(t) bytes from $file')).toEqual([{ bytes: 6n }]);
    const parsed = await readFooter(sourceOf(file));
    expect(await readGroup(sourceOf(file), parsed, parsed.groups[0] as StoredGroup)).toEqual([['\ufeffbom']]);
  });

  it('may have any column name', async () => {
    const names = ['a.b', '"quoted"', "it's", 'with space', 'ü😀', 'SELECT', 'x'.repeat(300)];
    await checkEverywhere(
      names.map((name) => column('text', name)),
      [[names]],
    );
  });

  it('have types that DuckDB knows', async () => {
    const file = await encodeFile(
      KINDS.map((kind) => column(kind)),
      [[KINDS.map((kind) => VALUES[kind][0] as Value)]],
    );
    const described = await duck.query(file, 'describe select * from $file');
    expect(Object.fromEntries(described.map((row) => [row.column_name, row.column_type]))).toEqual({
      a_text: 'VARCHAR',
      a_integer: 'BIGINT',
      a_number: 'DOUBLE',
      _exact_a_number: 'VARCHAR',
      a_boolean: 'BOOLEAN',
      a_timestamp: 'TIMESTAMP WITH TIME ZONE',
      a_json: 'JSON',
    });
  });

  it('keep the digits of numbers that are no doubles', async () => {
    const numbers = [2n ** 53n + 1n, 0.5, 10n ** 400n, 7];
    const file = await encodeFile([column('number', 'n')], [numbers.map((n) => [n])]);
    const rows = await duck.query(file, 'select _exact_n from $file');
    expect(rows.map((row) => row._exact_n)).toEqual(['9007199254740993', null, `1${'0'.repeat(400)}`, null]);
  });

  it('are refused if a column cannot hold them, without being quoted', async () => {
    const encode = (kind: Kind, value: Value) => encodeGroup([column(kind, 'c', false)], [[value]], 'zstd');
    await expect(encode('integer', 2n ** 63n)).rejects.toThrow('column c (integer) cannot hold this bigint');
    await expect(encode('integer', 0.5)).rejects.toThrow('cannot hold');
    await expect(encode('number', Number.NaN)).rejects.toThrow('cannot hold');
    await expect(encode('timestamp', Number.POSITIVE_INFINITY)).rejects.toThrow('cannot hold');
    await expect(encode('text', { name: 'Ada' })).rejects.toThrow(/^column c \(text\) cannot hold this object$/);
    await expect(encode('text', null)).rejects.toThrow('column c must have a value in every row');
  });

  it('of any kind are stored', async () => {
    const text = fc
      .oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom('a', 'b', '😀', '！', '\ud800') }))
      .filter((value) => !value.startsWith('\ufeff'));
    const micros = fc.integer({ min: -8e15, max: 8e15 });
    const arbitrary: Record<Kind, fc.Arbitrary<Value>> = {
      text,
      integer: fc.oneof(fc.maxSafeInteger(), fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n - 1n }), fc.constantFrom(1, 2)),
      number: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.bigInt({ min: 2n ** 53n })),
      boolean: fc.boolean(),
      timestamp: fc.oneof(micros, fc.integer({ min: 0, max: 3 })).map((m) => m / 1000),
      json: fc
        .jsonValue({ maxDepth: 4 })
        .filter((v) => v !== null)
        .map((v) => JSON.stringify(v)),
    };
    const table = fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 6 }).chain((kinds) =>
      fc.record({
        columns: fc.constant(kinds.map((kind, i) => column(kind, `c${i}`))),
        groups: fc.array(
          fc.array(fc.tuple(...kinds.map((kind) => fc.option(arbitrary[kind], { freq: 4 }))), { maxLength: 60 }),
          { maxLength: 3 },
        ),
      }),
    );
    await fc.assert(
      fc.asyncProperty(table, ({ columns, groups }) => checkEverywhere(columns, groups)),
      { numRuns: 80 },
    );
  });
});
