import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { coerce } from '../../src/model/columns.ts';
import { BadRecord } from '../../src/model/errors.ts';
import { createFlatten, type Row } from '../../src/model/flatten.ts';
import { parseJson, stringifyJson } from '../../src/model/json.ts';
import { STREAM_NAMES, STREAMS, type Stream } from '../../src/model/streams.ts';
import { stable } from '../support/flat.ts';
import { anyJson, oddRecord, reordered } from '../support/odd-records.ts';

/** A row, or the reason of its BadRecord. Any other error fails the test. */
function attempt(flatten: (record: unknown) => Row, record: unknown): Row | string {
  try {
    return flatten(record);
  } catch (error) {
    if (!(error instanceof BadRecord)) throw error;
    return error.message;
  }
}

describe.each(STREAM_NAMES)('flatten of %s', (name) => {
  const stream = STREAMS[name];
  const flatten = createFlatten(stream);

  it('throws only BadRecord, and a row always has an id and a time', () => {
    fc.assert(
      fc.property(fc.oneof(oddRecord(name), anyJson), (record) => {
        const row = attempt(flatten, record);
        if (typeof row === 'string') return;
        expect(row.id).not.toBe('');
        expect(row.values[stream.columns.findIndex((column) => column.name === 'event_id')]).toBe(row.id);
        expect(row.values).toHaveLength(stream.columns.length);
        expect(Number.isFinite(row.at)).toBe(true);
        expect(() => stringifyJson([row.values, row.extra])).not.toThrow();
      }),
      { numRuns: 200 },
    );
  });

  it('is deterministic, independent of key order and of earlier records', () => {
    fc.assert(
      fc.property(oddRecord(name), (record) => {
        const row = stable(attempt(flatten, record));
        expect(stable(attempt(flatten, record))).toBe(row);
        expect(stable(attempt(createFlatten(stream), record))).toBe(row);
        expect(stable(attempt(flatten, reordered(record)))).toBe(row);
      }),
    );
  });

  it('does not modify the record', () => {
    fc.assert(
      fc.property(oddRecord(name), (record) => {
        const before = stable(record);
        attempt(flatten, record);
        expect(stable(record)).toBe(before);
      }),
    );
  });

  it('loses no field: every value is in a column or at its path in _extra', () => {
    let rows = 0;
    fc.assert(
      fc.property(oddRecord(name), (record) => {
        const row = attempt(flatten, record);
        if (typeof row === 'string') return;
        rows++;
        const lost = fieldsOf(stream, record).filter(([path, value]) => !isFound(stream, row, path, value));
        expect(lost).toEqual([]);
      }),
      { numRuns: 300 },
    );
    // The test would be empty if most records had no identity.
    expect(rows).toBeGreaterThan(150);
  });
});

type Path = readonly [string] | readonly [string, string];

/** The fields of a record as columns read them: one level deep, or two in nested objects. */
function fieldsOf(stream: Stream, record: object): [Path, unknown][] {
  const parents = new Set(
    stream.columns.flatMap(({ from }) => from.flatMap(({ path }) => path.split('.').slice(0, -1))),
  );
  return Object.entries(record).flatMap(([key, value]): [Path, unknown][] => {
    if (!parents.has(key) || typeof value !== 'object' || value === null || Array.isArray(value))
      return [[[key], value]];
    return Object.entries(value).map(([inner, deep]) => [[key, inner], deep]);
  });
}

function isFound(stream: Stream, row: Row, path: Path, value: unknown): boolean {
  if (value === '' || (Array.isArray(value) && value.length === 0)) return true;
  const [first, second] = path;
  const inExtra = second === undefined ? own(row.extra, first) : own(own(row.extra, first), second);
  if (inExtra !== undefined && stable(inExtra) === stable(value)) return true;
  if (value === null) return isRead(stream, path) || path.length === 1;
  return stream.columns.some((column, i) => {
    const origin = column.from.find((from) => from.path === path.join('.'));
    return origin && !origin.via && stable(coerce(column.kind, value)) === stable(row.values[i]);
  });
}

const isRead = (stream: Stream, path: Path): boolean =>
  // A key with a dot is not a path.
  !path.some((step) => step.includes('.')) &&
  stream.columns.some((column) => column.from.some((from) => from.path === path.join('.')));

const own = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;

describe('odd records', () => {
  const base = { timestamp: '2026-11-14T10:00:00Z', eventId: 'e1' };
  const flatten = createFlatten(STREAMS.sales);
  const extraOf = (record: object): unknown => flatten({ ...base, ...record }).extra;

  it.each<[string, unknown]>([
    ['null', null],
    ['a list', []],
    ['text', 'click'],
    ['a number', 5],
    ['nothing', undefined],
    ['no time', { eventId: 'e1' }],
    ['an invalid time', { eventId: 'e1', timestamp: 'soon' }],
    ['no identity', { timestamp: '2026-11-14T10:00:00Z', eventId: '' }],
  ])('%s is a BadRecord', (_what, record) => {
    expect(() => flatten(record)).toThrow(BadRecord);
  });

  it('keep unknown fields at their paths', () => {
    expect(extraOf({ click: { ua: 'curl' }, link: { id: 'l', folder: { a: 1 } }, plan: null })).toEqual({
      click: { ua: 'curl' },
      link: { folder: { a: 1 } },
      plan: null,
    });
  });

  it('keep strings and lists in place of objects unchanged', () => {
    const record = { click: 'clk_1', link: ['l1', 'l2'], customer: 'Ada', sale: [1] };
    expect(extraOf(record)).toEqual(record);
  });

  it('with an empty key keep it as a key', () => {
    expect(extraOf({ '': { event: 'x', click: 1 } })).toEqual({ '': { event: 'x', click: 1 } });
  });

  it('with a dot in a key keep it as one key', () => {
    const row = flatten({ ...base, 'click.id': 'c9' });
    expect(stable(row.extra)).toBe('{"click.id":"c9"}');
  });

  it('with a key called __proto__ keep it unchanged', () => {
    const row = flatten(
      parseJson('{"timestamp":1705314600,"eventId":"e","__proto__":{"url":"x"},"link":{"__proto__":1}}'),
    );
    expect(stringifyJson(row.extra)).toBe('{"__proto__":{"url":"x"},"link":{"__proto__":1}}');
    expect(row.values).not.toContain('x');
  });

  it('keep integers above 2^53 exact in columns, in text and in _extra', () => {
    const large = 9_007_199_254_740_993n;
    const row = flatten({ ...base, sale: { amount: large, invoiceId: large }, more: [large], metadata: { n: large } });
    expect(row.values).toEqual(expect.arrayContaining([large, String(large), { n: large }]));
    expect(row.extra).toEqual({ more: [large] });
  });

  it('keep fractional cents in _extra', () => {
    const row = flatten({ ...base, sale: { amount: 19.99 } });
    expect(row).toMatchObject({ typeMismatches: ['sale_amount'], extra: { sale: { amount: 19.99 } } });
  });

  it.each(['metadata', 'unknown'])('with unbounded nesting in %s are a BadRecord, sixty levels are not', (key) => {
    const nest = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
    for (const more of [base, { timestamp: base.timestamp, eventName: 'no id' }]) {
      expect(() => flatten({ ...more, [key]: nest(100_000) })).toThrow(BadRecord);
      expect(flatten({ ...more, [key]: nest(60) }).id).not.toBe('');
    }
  });
});
