import type { Column, Kind, Value } from '../../src/model/columns.ts';
import { evolvedStream, nameFor } from '../../src/model/evolution.ts';
import type { Row } from '../../src/model/flatten.ts';
import { parseInstant } from '../../src/model/instant.ts';
import { parseJson } from '../../src/model/json.ts';
import { STREAMS, type Stream, type StreamName } from '../../src/model/streams.ts';
import { MINUTE, NOON, rowOf } from './sink-harness.ts';

/** Rows with what is hard to carry in every column, for comparing two ways to the same table. */

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

/** Fields that nobody declared: odd ones, and words that a statement may use itself. */
const FIELDS =
  words(`n s t r k id at row value ordinality changed new select user __proto__ constructor odd"name;-- $1 ü
  link.odd customer.n click.${'long'.repeat(20)} stored known data`);

export const withFields = (name: StreamName): Stream => {
  const taken = new Set(STREAMS[name].columns.map((column) => column.name));
  const kindOf = (i: number): Kind => KINDS[i % KINDS.length] ?? 'text';
  return evolvedStream(
    STREAMS[name],
    FIELDS.map((path, i) => ({ path, name: nameFor(path, taken), kind: kindOf(i) })),
  );
};

/** Draws odd rows: the same for the same seed. */
export function drawer(stream: Stream, seed: number) {
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
