import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { quoteIdent } from '../../src/cursor/database/sql.ts';
import type { Column, Kind, Value } from '../../src/model/columns.ts';
import { evolvedStream, nameFor } from '../../src/model/evolution.ts';
import type { Row } from '../../src/model/flatten.ts';
import { EARLIEST, LATEST, parseInstant } from '../../src/model/instant.ts';
import { parseJson } from '../../src/model/json.ts';
import { STREAM_NAMES, STREAMS, type Stream, type StreamName } from '../../src/model/streams.ts';
import type { PostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { ODD_SCHEMA, type PostgresPlace, postgresPlace } from '../support/postgres-place.ts';
import { certified, createWriter, MINUTE, NOON, receipt, rowOf, type Writer } from '../support/sink-harness.ts';

/** Rows with difficult values in every column, to compare two ways of writing the same table. */

const words = (text: string): string[] => text.split(/\s+/);

const DEEP = `${'[{"":'.repeat(250)}"bottom"${'}]'.repeat(250)}`;
const ODD: Readonly<Record<Kind, readonly Value[]>> = {
  text: `| |null|\\N|\\.|\\|"|'|{}|{NULL}|(a,b)|\t\n\r\v\b\f|\0|\ud800|x\udc00y|😀\u{10ffff}|\u2028\ufeff\x7f|\\u0000|é|e\u0301|$1|${'\\"'.repeat(3000)}`.split(
    '|',
  ),
  integer: [0, -0, -1, Number.MAX_SAFE_INTEGER, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)],
  number: [0, -0, 0.1, 1e21, -1e-7, 5e-324, 1.797e308, 1 / 3, 2n ** 70n, -(10n ** 300n)],
  boolean: [true, false],
  timestamp: words(`0001-01-01T00:00:00Z 9999-12-31T23:59:59.999999Z 2026-11-14T10:30:00.123456Z 1883-11-18T12:03:58Z
    1969-12-31T23:59:59.999999Z 1700-01-01T00:00:00.000001Z`).map((text) => parseInstant(text) ?? null),
  json: words(`{} [] 0 -0 false "null" "" "text" [null] {"a":null} {"a":1,"a":2} {"b":1,"aa":2} 1e21 5e-324 "\\\\" "\\u0000"
    {"n":[9007199254740993,1e400]} {"":0,"\\u0000":"\\ud800","__proto__":"\\\\u0000"} "{\\"a\\":1}" ${DEEP}`).map(
    (text) => parseJson(text) as Value,
  ),
};
const KINDS = Object.keys(ODD) as Kind[];

/** Undeclared fields: odd ones, and words that a statement may use itself. */
const FIELDS =
  words(`n s t r k id at row value ordinality changed new select user __proto__ constructor odd"name;-- $1 ü
  link.odd customer.n click.${'long'.repeat(20)} stored known data`);

const withFields = (name: StreamName): Stream => {
  const taken = new Set(STREAMS[name].columns.map((column) => column.name));
  const kindOf = (i: number): Kind => KINDS[i % KINDS.length] ?? 'text';
  return evolvedStream(
    STREAMS[name],
    FIELDS.map((path, i) => ({ path, name: nameFor(path, taken), kind: kindOf(i) })),
  );
};

/** Draws odd rows, reproducible by seed. */
function drawer(stream: Stream, seed: number) {
  let state = seed;
  const below = (n: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) % n;
  };
  /** The row with other values in some of its columns. */
  const redraw = (before: Row, isDrawn: (column: Column) => boolean, at = before.at): Row => {
    const values = stream.columns.map((column, c) => {
      const odd = ODD[column.kind];
      return [column.name, isDrawn(column) ? (odd[below(odd.length + 1)] ?? null) : (before.values[c] ?? null)];
    });
    const fixed = { link_id: before.id, customer_id: before.id, event: 'x', event_id: before.id, timestamp: at };
    return rowOf(stream, before.id, at, { ...Object.fromEntries(values), ...fixed }, before.extra);
  };
  const rows = (count: number): Row[] =>
    Array.from({ length: count }, (_, i) =>
      redraw(rowOf(stream, `e${i}`, NOON + i * MINUTE, {}, i % 2 ? null : { odd: ODD.json[i % 20] }), () => true),
    );
  return { below, redraw, rows };
}

/** Few rows reach the server by another path than many. Tables and receipts must be the same for one commit and for small ones. */
const EVENTS = 120;
const PIECES = [1, 3, 50, 51, 2, 13];
const DAY = 24 * 60 * MINUTE;
function cut<T>(list: readonly T[]): T[][] {
  const pieces: T[][] = [];
  for (let from = 0; from < list.length; from += pieces.at(-1)?.length ?? 0)
    pieces.push(list.slice(from, from + (PIECES[pieces.length % PIECES.length] ?? 1)));
  return pieces;
}

/** Which rows and columns differ; `toEqual` would compare and print megabytes. */
function differing(some: readonly string[], others: readonly string[]): string[] {
  const pairs = some.map((row, i) => [row, others[i] ?? '{}']).filter(([a, b]) => a !== b);
  const names = pairs.slice(0, 3).map((pair) => {
    const [a, b] = pair.map((text) => JSON.parse(text) as Record<string, unknown>);
    return Object.keys(a ?? {}).filter((key) => JSON.stringify(a?.[key]) !== JSON.stringify(b?.[key]));
  });
  return [
    ...names.map(String),
    ...(some.length === others.length ? [] : [`${some.length}, not ${others.length} rows`]),
  ];
}

describe.each([
  ['in one piece', {}],
  ['in monthly partitions', { partition: 'month' }],
  ['in another database', { sameDatabase: false }],
] as const)('few rows and many, %s', (_where, options) => {
  let place: PostgresPlace;
  let sink: PostgresSink;
  const streams = { clicks: withFields('clicks'), leads: withFields('leads'), sales: withFields('sales') };
  beforeAll(async () => {
    place = await postgresPlace(options);
    sink = place.createSink();
    for (const name of STREAM_NAMES) await sink.prepare(streams[name]);
  });
  afterAll(() => place.close());

  const CLOCKS = ['_source', '_synced_at', '_first_synced_at', '_run_id', '_observed_at'];
  const stored = async (table: string, { lease }: Writer, without = CLOCKS): Promise<string[]> => {
    const found = await place.db.query<{ row: string }>({
      text: `select (j - $1::text[] || jsonb_build_object('_missing_since', j ->> '_missing_since' is null))::text as row
        from ${quoteIdent(ODD_SCHEMA)}.${table} "whole row", to_jsonb("whole row") j where _source = $2
        order by coalesce(j ->> 'event_id', j ->> 'link_id', j ->> 'customer_id') collate "C"`,
      values: [without, lease.source],
    });
    return found.map(({ row }) => row);
  };

  /** Two writers of the same rows: one commits all at once, the other in pieces. Groups stay together. */
  async function twoWriters(stream: Stream) {
    const [atOnce, pieces] = [await createWriter(place, stream), await createWriter(place, stream)];
    const commit = async (writer: Writer, writes: readonly Row[][], runId: string) => {
      const batch = await sink.open(stream);
      for (const rows of writes) await batch.write(rows);
      return batch.commit(writer.advance({ runId }));
    };
    const both = async (groups: readonly Row[][], runId: string) => {
      const parts = cut(groups).map((part) => part.flat());
      const sum = receipt({});
      for (const part of parts) {
        const few = await commit(pieces, [part.slice(0, 1), part.slice(1)], runId);
        for (const key of ['new', 'changed', 'unchanged', 'sanitized'] as const) sum[key] += few[key];
      }
      expect(await commit(atOnce, parts, runId)).toEqual(sum);
      for (const table of [stream.name, 'links', 'customers'])
        expect(differing(await stored(table, pieces), await stored(table, atOnce))).toEqual([]);
      return sum;
    };
    return { atOnce, pieces, both };
  }
  const alone = (rows: readonly Row[]): Row[][] => rows.map((row) => [row]);

  it.each(STREAM_NAMES)('%s with any values: read again, changed, moved, deleted and restored', async (name) => {
    const stream = streams[name];
    const property = fc.asyncProperty(fc.integer(), async (seed) => {
      const { below, redraw, rows } = drawer(stream, seed);
      const { atOnce, pieces, both } = await twoWriters(stream);
      const first = rows(EVENTS);
      await both(alone(first.filter((_, i) => i % 2 === 0)), '20261114T120000-00000001');
      expect(await both(alone(first), '20261114T120000-00000001')).toMatchObject({
        new: EVENTS / 2,
        unchanged: EVENTS / 2,
      });
      const before = await stored(name, pieces, []);
      const joined = first.map((row) => redraw(row, ({ volatile }) => volatile === true && below(2) > 0));
      expect(await both(alone(joined), '20261114T120000-00000002')).toMatchObject({ unchanged: EVENTS });
      expect(differing(await stored(name, pieces, []), before)).toEqual([]);

      const times = [0, 0, 0, 0.001, -MINUTE, 40 * DAY, -365 * DAY, EARLIEST - NOON, LATEST - NOON];
      const own = stream.columns.filter((column) => !column.volatile && !column.deprecated);
      const moved = joined.map((row) => {
        const drawn = own[below(own.length)];
        return redraw(row, (column) => column === drawn, Math.min(LATEST, row.at + (times[below(times.length)] ?? 0)));
      });
      const compare = async (of: readonly Row[]): Promise<string[]> => {
        const window = { start: EARLIEST, end: LATEST };
        const found = await sink.compare({ stream, source: atOnce.lease.source, window, rows: of, isWhole: false });
        return found.map(({ kind, id, at, columns }) => [kind, id, at, ...columns].join(' '));
      };
      const found = await compare(moved);
      expect((await Promise.all(cut(moved).map(compare))).flat().sort()).toEqual(found.sort());
      expect(await both(alone(moved), '20261114T120000-00000003')).toMatchObject({ changed: found.length });
      expect(found.length).toBeGreaterThan(EVENTS / 2);

      const spans = [{ ...certified(NOON, NOON + 60 * MINUTE), whole: true }];
      for (const writer of [atOnce, pieces]) await writer.commit([], { spans, runId: '20261114T120000-00000004' });
      expect((await compare(moved)).length).toBeGreaterThan(10);
      await both(alone(moved.filter((_, i) => i % 3 > 0)), '20261114T120000-00000005');
      await both(alone(moved), '20261114T120000-00000005');
      for (const part of [moved, ...cut(moved)]) expect(await compare(part)).toEqual([]);
    });
    await fc.assert(property, { numRuns: 1, endOnFailure: true });
  });

  it('events that a batch has several times, under ids that are stored alike', async () => {
    const { redraw, rows } = drawer(streams.leads, 7);
    const { both } = await twoWriters(streams.leads);
    const known = rows(EVENTS);
    await both([known], '20261114T120000-00000001');
    const groups = known.map((row, i) => {
      const versions = [0, 1, -45 * DAY, 1].map((by) => redraw(row, () => true, row.at + by));
      return [...versions.slice(i % 4), ...versions.slice(0, i % 4)];
    });
    groups.push(['x\0', 'x\ufffd', 'x\ud800'].map((id) => rowOf(streams.leads, id, NOON, { event_name: id })));
    expect(await both(groups, '20261114T120000-00000001')).toMatchObject({ new: 1, changed: EVENTS });
    await both(groups, '20261114T120000-00000002');
  });

  it('links and customers that many events share, and that are empty in some', async () => {
    const { both } = await twoWriters(streams.sales);
    const texts = ['', 'a', null, 'b', 'x\0', null, null, 'c\\'];
    const read = (i: number, from: number): Row =>
      rowOf(streams.sales, `e${i}`, NOON + i, {
        link_id: ['l', 'x\0', 'x\ufffd', '', null, 'm'][i % 6] ?? null,
        link_url: texts[(i + from) % 7] ?? null,
        link_title: texts[(i + from) % 8] ?? null,
        customer_id: `c${i % 4}`,
        customer_email: texts[(i + from) % 5] ?? null,
        customer_name: texts[(i * 3 + from) % 8] ?? null,
      });
    for (const from of [0, 1, 2]) {
      const rows = Array.from({ length: EVENTS }, (_, i) => read(i, from));
      await both(alone(rows), `run-${from}`);
    }
  });

  it.each([3, EVENTS])('refuses %i known rows of a writer who lost the lease after writing them', async (count) => {
    const { redraw, rows } = drawer(streams.sales, count);
    const old = await createWriter(place, streams.sales);
    const first = rows(count);
    await old.commit(first);
    const all = async () => (await Promise.all(['sales', 'links'].map((table) => stored(table, old, [])))).flat();
    const before = await all();
    const batch = await sink.open(streams.sales);
    await batch.write(first.map((row) => redraw(row, () => true)));
    await old.lease.release();
    const next = await createWriter(place, streams.sales, old.lease.source);
    await expect(batch.commit(old.advance({ runId: 'late' }))).rejects.toThrow(/lost its lease on the stream/);
    expect(differing(await all(), before)).toEqual([]);
    expect(await next.commit(first)).toMatchObject({ unchanged: count });
  });
});
