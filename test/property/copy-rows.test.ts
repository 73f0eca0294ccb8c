import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Value } from '../../src/model/columns.ts';
import type { Row } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createSanitizer, POSTGRES_TEXT } from '../../src/sinks/merge-rule.ts';
import { encodeCopy, encodeRows } from '../../src/sinks/postgres/copy-encoder.ts';

/** New rows are encoded directly; the bytes must equal those of sanitized rows. */

const stream = STREAMS.sales;
const KINDS = ['text', 'text', ...stream.columns.map(({ kind }) => kind), 'json'] as const;

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.constantFrom('', 'a\0b', '\ud800', 'ä'.repeat(30), 'x'.repeat(49), '日本'.repeat(90_000), '\\u0000', '😀'),
);
const json = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom<unknown>('a\0b', ['\udc00'], { '\0': 1, '\ud800': 2 }, { deep: [{ big: 2n ** 70n }] }, 'text', {}),
);
const VALUES: Record<(typeof KINDS)[number], fc.Arbitrary<unknown>> = {
  text,
  json,
  integer: fc.oneof(fc.maxSafeInteger(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
  number: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.bigInt()),
  boolean: fc.boolean(),
  timestamp: fc.double({ min: -6.2e13, max: 2.5e14, noNaN: true }),
};
const rowOf = (some: typeof VALUES, extra: fc.Arbitrary<Row['extra']>): fc.Arbitrary<Row> =>
  fc
    .record({
      values: fc.tuple(...stream.columns.map(({ kind }) => fc.option(some[kind] as fc.Arbitrary<Value>))),
      extra,
    })
    .map((made) => ({ id: 'e', at: 0, contradictions: [], typeMismatches: [], ...made }));
const row = rowOf(VALUES, fc.option(fc.dictionary(text, json, { maxKeys: 3 })));

/** Values that can be stored unchanged. */
const plain = fc.constantFrom('', 'a', 'Größe', 'x'.repeat(49));
const plainRow = rowOf({ ...VALUES, text: plain, json: fc.array(plain, { maxLength: 3 }) }, fc.constant(null));

/** Ids shared by links and customers: cached values of one must not be used for the other. */
const alike: fc.Arbitrary<Row> = fc.tuple(plainRow, fc.constantFrom(null, 'a')).map(([made, id]) => ({
  ...made,
  values: made.values.map((value, i) => (/^(?:link|customer)_id$/.test(stream.columns[i]?.name ?? '') ? id : value)),
}));

/** A row repeated, with other values here and there: mostly those of a link are unchanged. */
const repeated = fc
  .tuple(
    fc.oneof(row, alike),
    fc.array(fc.array(fc.tuple(fc.nat(stream.columns.length - 1), row), { maxLength: 2 }), { maxLength: 6 }),
  )
  .map(([first, changes]) => [
    first,
    ...changes.map((some) => ({
      ...first,
      values: first.values.map((value, i) => some.find(([place]) => place === i)?.[1].values[i] ?? value),
    })),
  ]);

describe('encodeRows', () => {
  it('gives the bytes of sanitized rows, and counts as many, for any rows', () => {
    fc.assert(
      fc.property(fc.oneof(fc.array(row, { maxLength: 4 }), repeated), (rows) => {
        const [direct, detour] = [createSanitizer(stream, POSTGRES_TEXT), createSanitizer(stream, POSTGRES_TEXT)];
        const front = ['main', 'run-1'];
        const bytes = Buffer.concat([...encodeRows(stream, rows, front, direct)]);
        expect(bytes.equals(Buffer.concat([...encodeCopy(KINDS, detour.all(rows, front))]))).toBe(true);
        expect(direct.sanitized()).toBe(detour.sanitized());
      }),
    );
  });
});
