import { beforeAll, expect, it } from 'vitest';
import type { Kind, Value } from '../../src/model/columns.ts';
import { evolvedStream } from '../../src/model/evolution.ts';
import { createFlatten } from '../../src/model/flatten.ts';
import { LONGEST_INTEGER, parseJson, stringifyJson } from '../../src/model/json.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createSandboxService } from './odd-service/service.ts';
import { createWriter, NOON, receipt, rowOf, rowsOf, type SinkPlace } from './sink-harness.ts';

/** A column of the sales for each kind. */
const COLUMN_OF: Readonly<Record<Kind, string>> = {
  text: 'event_name',
  integer: 'sale_amount',
  number: 'sale_rate',
  boolean: 'click_qr',
  timestamp: 'click_timestamp',
  json: 'metadata',
};

const DEEP = `${'{"down":'.repeat(60)}"bottom"${'}'.repeat(60)}`;

/** JSON is text: an object literal cannot hold a key called `__proto__` or an integer beyond 2^53. */
const VALUES: Readonly<Record<Kind, readonly Value[]>> = {
  text: [
    '',
    ' ',
    'tab\there',
    'line\nfeed',
    'carriage\r\nreturn',
    'back\\slash',
    '\\',
    '\\.',
    '\\N',
    'a\n\\.\nb',
    '"quoted", \'too\'',
    '😀 é 中 \u{10ffff}',
    '\ufeffbom',
    'null',
    '\\u0000',
    'x'.repeat(300_000),
  ],
  integer: [0, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)],
  number: [0, 42, -1, 10_000, 0.1, -2.5, 0.0001, 1e-7, 1.5e-10, 99_999_999.000_000_01, 2n ** 70n, -(10n ** 40n)],
  boolean: [true, false],
  timestamp: [
    0,
    Date.UTC(2026, 10, 14, 10, 30, 0, 123),
    Date.UTC(2026, 10, 14, 10, 30, 0, 123) + 0.456,
    Date.UTC(2026, 10, 14, 10, 30, 0, 999) + 0.999,
    Date.UTC(1999, 11, 31, 23, 59, 59, 1) + 0.001,
    Date.UTC(1969, 11, 31, 23, 59, 59, 999) + 0.25,
    Date.parse('0001-01-01T00:00:00.000Z'),
    Date.parse('9999-12-31T23:59:59.999Z'),
  ],
  json: [
    '{}',
    '[]',
    '0',
    'false',
    '"text"',
    '""',
    '[1,"two",{"three":[]},null]',
    '{"a":{"b":{"c":[[[]]]}}}',
    '{"d":0.1,"m":[-9223372036854775809],"n":9007199254740993}',
    '{"__proto__":{"admin":true}}',
    '{"":"empty key"}',
    '{"t":"tab\\t newline\\n back\\\\slash \\\\. \\\\u0000 😀"}',
    DEEP,
  ].map((text) => parseJson(text) as Value),
};

export function valueSuite(place: () => SinkPlace): void {
  // No declared column is a fraction, so this one is evolved.
  const stream = evolvedStream(STREAMS.sales, [{ path: 'sale.rate', name: 'sale_rate', kind: 'number' }]);
  beforeAll(() => place().createSink().prepare(stream));

  it.each(Object.keys(COLUMN_OF) as Kind[])('reads back every %s exactly', async (kind) => {
    const writer = await createWriter(place(), stream);
    const column = COLUMN_OF[kind];
    const values = [...VALUES[kind], null];
    await writer.commit(values.map((value, i) => rowOf(stream, `v${i}`, NOON, { [column]: value })));
    const rows = await rowsOf(place(), stream, writer.lease.source);
    values.forEach((value, i) => {
      const found = rows.get(`v${i}`)?.[column];
      // As text: toEqual ignores a key called __proto__.
      if (kind === 'json' && value !== null) expect(stringifyJson(found)).toBe(stringifyJson(value));
      else expect(found).toBe(value);
    });
  });

  it('stores integers of any length in a column, in metadata and in _extra', async () => {
    const writer = await createWriter(place(), stream);
    for (const digits of [LONGEST_INTEGER - 3, LONGEST_INTEGER, LONGEST_INTEGER + 1, 3 * LONGEST_INTEGER]) {
      const n = parseJson('8'.repeat(digits)) as Value;
      const isKept = digits <= LONGEST_INTEGER;
      const row = rowOf(stream, `n${digits}`, NOON, { sale_rate: isKept ? n : null, metadata: { n } }, { n });
      expect(await writer.commit([row])).toEqual(receipt({ new: 1 }));
      expect(await writer.commit([row])).toEqual(receipt({ unchanged: 1 }));
      const { sale_rate, metadata, _extra } =
        (await rowsOf(place(), stream, writer.lease.source)).get(`n${digits}`) ?? {};
      // Not by toBe, which would print them.
      const isSame = [metadata, _extra].every((json) => (json as { n: Value }).n === n);
      expect({ isSame, isKept: sale_rate === n }).toEqual({ isSame: true, isKept });
    }
  });

  it('reads back _extra, and ids of any text', async () => {
    const writer = await createWriter(place(), stream);
    const ids = ['', ' ', 'a\tb', "o'clock", '"; drop table sales; --', '😀', '../../etc', 'Ä', 'ä'];
    const extra = (id: string) => ({ unknown: { id, list: [1, null] }, click: { ua: 'Mozilla' } });
    await writer.commit(ids.map((id) => rowOf(stream, id, NOON, {}, extra(id))));
    const rows = await rowsOf(place(), stream, writer.lease.source);
    expect([...rows.keys()].sort()).toEqual([...ids].sort());
    for (const id of ids) expect(rows.get(id)?._extra).toEqual(extra(id));
  });

  it.each(['clicks', 'leads', 'sales'] as const)(
    'stores all difficult %s of the field notes in one batch',
    async (name) => {
      const service = createSandboxService({ rows: { clicks: 5, leads: 5, sales: 5 }, traits: { dirty: true } });
      const flatten = createFlatten(STREAMS[name]);
      const records = service.events(name).map((record) => flatten(parseJson(stringifyJson(record))));
      expect(records.length).toBeGreaterThan(10);
      const writer = await createWriter(place(), STREAMS[name]);
      const { sanitized, ...counts } = await writer.commit(records);
      expect(counts).toEqual({ new: records.length, changed: 0, unchanged: 0 });
      expect(sanitized).toBeLessThan(records.length / 2);
      const rows = await rowsOf(place(), STREAMS[name], writer.lease.source);
      expect([...rows.keys()].sort()).toEqual(records.map((row) => row.id).sort());
      // Sanitized or not, they must be equal the next time, or every sync would rewrite them.
      expect(await writer.commit(records)).toMatchObject({ new: 0, changed: 0, unchanged: records.length });
      const timeOf = (id: string) => rows.get(id)?.timestamp;
      for (const { id, at } of records) expect(timeOf(id)).toBe(at);
    },
  );

  it('stores text that no column of a database can hold, in any place', async () => {
    const writer = await createWriter(place(), stream);
    const bad = 'a\0b\ud800c\udc00';
    const backslashes = '\\'.repeat(400_000);
    const row = rowOf(stream, bad, NOON, { event_name: bad, metadata: { [bad]: bad, backslashes } }, { [bad]: [bad] });
    expect(await writer.commit([row])).toMatchObject({ new: 1, changed: 0, unchanged: 0 });
    const [stored] = (await rowsOf(place(), stream, writer.lease.source)).values();
    expect(stored?.event_name).toMatch(/^a.b.c.$/su);
    expect(stored?.metadata).toMatchObject({ backslashes });
    expect(await writer.commit([row])).toMatchObject({ new: 0, changed: 0, unchanged: 1 });
  });
}
