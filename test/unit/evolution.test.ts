import { describe, expect, it } from 'vitest';
import type { Kind, Value } from '../../src/model/columns.ts';
import {
  type EvolvedColumn,
  evolvedStream,
  findSchemaChanges,
  kindOf,
  MOST_EVOLVED,
  nameFor,
  promote,
  type SchemaChange,
  widen,
} from '../../src/model/evolution.ts';
import type { Row } from '../../src/model/flatten.ts';
import { BOOKKEEPING, STREAMS } from '../../src/model/streams.ts';
import { NOON, rowOf } from '../support/sink-harness.ts';

const stream = STREAMS.clicks;
const row = (extra: Row['extra']): Row => rowOf(stream, 'e', NOON, {}, extra);
const changesOf = (...extras: Row['extra'][]): SchemaChange[] => findSchemaChanges(stream, [], extras.map(row));
const columnOf = (value: unknown): [string | undefined, Kind | undefined] => {
  const [change] = changesOf({ click: { ua: value } });
  return [change?.name, change?.kind];
};
/** The values of a row's evolved columns by name, and the rest of `_extra`. */
function placed(
  known: readonly EvolvedColumn[],
  extra: Row['extra'],
): { values: Record<string, Value>; extra: unknown } {
  const [moved] = promote(stream, known, [row(extra)]);
  const values = known.map(({ name }, i) => [name, moved?.values[stream.columns.length + i] ?? null] as const);
  return { values: Object.fromEntries(values), extra: moved?.extra };
}

describe('the kind of a value', () => {
  it.each<[unknown, Kind | undefined]>([
    [true, 'boolean'],
    [7, 'integer'],
    [9_007_199_254_740_993n, 'integer'],
    [2n ** 63n, 'number'],
    [1.5, 'number'],
    [1e300, 'number'],
    ['text', 'text'],
    ['20261114', 'text'],
    ['2026-11-14', 'text'],
    ['2026-11-14T10:00:00Z', 'timestamp'],
    ['2026-11-14 10:00:00', 'timestamp'],
    ['2026-99-14T10:00:00Z', 'text'],
    [[1], 'json'],
    [{ a: 1 }, 'json'],
    ['', undefined],
    [null, undefined],
    [undefined, undefined],
  ])('%o is %s', (value, kind) => expect(kindOf(value)).toBe(kind));
});

describe('widening', () => {
  it.each<[Kind, Kind, Kind]>([
    ['integer', 'number', 'number'],
    ['integer', 'text', 'text'],
    ['number', 'text', 'text'],
    ['number', 'json', 'json'],
    ['text', 'json', 'json'],
    ['boolean', 'integer', 'text'],
    ['boolean', 'timestamp', 'text'],
    ['timestamp', 'number', 'text'],
    ['timestamp', 'json', 'json'],
  ])('%s and %s make %s, in either order', (a, b, c) => {
    expect([widen(a, b), widen(b, a)]).toEqual([c, c]);
  });
});

describe('names', () => {
  it.each([
    ['click.ua', 'click_ua'],
    ['click.userAgent', 'click_user_agent'],
    ['ingestedBy', 'ingested_by'],
    ['sale.taxAmount', 'sale_tax_amount'],
  ])('%s is called %s', (path, name) => expect(nameFor(path, new Set())).toBe(name));

  it.each([
    '_source',
    '__proto__',
    'xmin',
    'ctid',
    'click.ünïcödé',
    'click.a b;"\'',
    '123',
    '',
    '💥',
    `click.${'long'.repeat(40)}`,
    'a\0b',
  ])('gives %j a legal unique name, the same every time', (path) => {
    const name = nameFor(path, new Set());
    expect(name).toMatch(/^[a-z][a-z0-9_]*_[0-9a-f]{8}$/);
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
    expect(nameFor(path, new Set())).toBe(name);
    expect(BOOKKEEPING.map((column) => column.name)).not.toContain(name);
  });

  it('keep apart what the path rule would merge: case, declared columns, long tails, dots in keys', () => {
    const long = `click.${'x'.repeat(70)}`;
    const changes = changesOf({
      click: { ua: 'a', UA: 'b', [`${long}1`]: 1, [`${long}2`]: 2 },
      'click.ua': 'c',
      clickId: 'd',
      click_ip_: 'e',
      eventID: 'f',
    });
    const names = changes.map(({ name }) => name);
    expect(changes).toHaveLength(8);
    expect(new Set(names).size).toBe(8);
    expect(names.filter((name) => stream.columns.some((column) => column.name === name))).toEqual([]);
    expect(changes.find(({ path }) => path === 'clickId')?.name).toMatch(/^click_id_[0-9a-f]{8}$/);
    // Independent of the order of the fields.
    expect(
      findSchemaChanges(stream, [], [row({ clickId: 'd', click: { UA: 'b', ua: 'a' } })]).map(({ name }) => name),
    ).toEqual(changesOf({ click: { ua: 'a', UA: 'b' }, clickId: 'd' }).map(({ name }) => name));
  });

  it('stay unique even if a field is called like the digest', () => {
    const bent = nameFor('click.UA', new Set(['click_ua']));
    const other = nameFor('click.UA', new Set(['click_ua', bent]));
    expect(other).not.toBe(bent);
    expect(other.startsWith(bent.slice(0, -8))).toBe(true);
  });
});

describe('schema changes', () => {
  it('add one column for each unknown field, typed by all values in the batch', () => {
    expect(columnOf(true)).toEqual(['click_ua', 'boolean']);
    expect(columnOf({ deep: 1 })).toEqual(['click_ua', 'json']);
    expect(changesOf({ n: 1 }, { n: null }, { n: 1.5 }, {}, null)).toEqual([
      { path: 'n', name: 'n', kind: 'number', was: undefined },
    ]);
  });

  it('ignore empty values, and values that a declared column reads but cannot hold', () => {
    expect(changesOf({ a: null, b: '', sale: {}, country: 'XX', click: { timestamp: [], id: {} } })).toEqual([]);
  });

  it('widen a known column that must hold more, and only then', () => {
    const known: EvolvedColumn[] = [{ path: 'n', name: 'n', kind: 'integer' }];
    expect(findSchemaChanges(stream, known, [row({ n: 2 })])).toEqual([]);
    expect(findSchemaChanges(stream, known, [row({ n: 'two' })])).toEqual([
      { path: 'n', name: 'n', kind: 'text', was: 'integer' },
    ]);
    expect(findSchemaChanges(stream, [{ path: 'n', name: 'n', kind: 'json' }], [row({ n: 'two' })])).toEqual([]);
  });

  it('stop at the maximum of columns, but still widen existing ones', () => {
    const known = Array.from({ length: MOST_EVOLVED - 1 }, (_, i) => ({
      path: `f${i}`,
      name: `f${i}`,
      kind: 'integer' as const,
    }));
    const changes = findSchemaChanges(stream, known, [row({ f1: 'x', f2: 'x', new1: 1, new2: 2 })]);
    expect(changes.map(({ path }) => path)).toEqual(['f1', 'f2', 'new1']);
  });
});

describe('joined objects', () => {
  it.each([
    ['link.utmId', true],
    ['customer.vip', true],
    ['link', true],
    ['linkage', undefined],
    ['click.ua', undefined],
  ])('%s is volatile: %s', (path, volatile) => {
    const { columns } = evolvedStream(stream, [{ path, name: 'x', kind: 'text' }]);
    expect(columns.at(-1)).toMatchObject({ name: 'x', nullable: true, from: [{ path }] });
    expect(columns.at(-1)?.volatile).toBe(volatile);
  });
});

describe('promotion', () => {
  const known: EvolvedColumn[] = [
    { path: 'click.ua', name: 'click_ua', kind: 'text' },
    { path: 'score', name: 'score', kind: 'integer' },
  ];

  it('moves a field into its column and keeps the rest in `_extra`', () => {
    expect(placed(known, { click: { ua: 'Mozilla', other: 1 }, score: 5 })).toEqual({
      values: { click_ua: 'Mozilla', score: 5 },
      extra: { click: { other: 1 } },
    });
    expect(placed(known, { click: { ua: 'Mozilla' } }).extra).toBeNull();
  });

  it('keeps in `_extra` what does not fit or has no column', () => {
    expect(placed(known, { score: 'five', sale: {}, 'click.ua': 'another' })).toEqual({
      values: { click_ua: null, score: null },
      extra: { score: 'five', sale: {}, 'click.ua': 'another' },
    });
  });

  it('keeps integers above 2^53 exact', () => {
    expect(placed(known, { score: 9_007_199_254_740_993n }).values.score).toBe(9_007_199_254_740_993n);
  });

  it('treats a key called __proto__ like any other', () => {
    const extra = JSON.parse('{"__proto__":"x","click":{"__proto__":1}}') as Row['extra'];
    const changes = changesOf(extra);
    expect(changes.map(({ path }) => path)).toEqual(['__proto__', 'click.__proto__']);
    const { values, extra: rest } = placed(changes, extra);
    expect(Object.values(values)).toEqual(['x', 1]);
    expect(rest).toBeNull();
    expect(JSON.stringify(placed([], extra).extra)).toBe(JSON.stringify(extra));
  });
});
