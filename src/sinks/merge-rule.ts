import { type Sql, sql, storableJson, storableText } from '../cursor/database/sql.ts';
import { type Column, isNone, type Value } from '../model/columns.ts';
import type { Row } from '../model/flatten.ts';
import { LONGEST_ID } from '../model/identity.ts';
import type { Instant } from '../model/instant.ts';
import { bare, renameFields, stringifyJson } from '../model/json.ts';
import type { Entity, Stream } from '../model/streams.ts';

/** The columns that make an event "changed", in every sink: not those of links and customers, which the service joins on each read. */
export const ownColumns = (stream: Stream): Column[] =>
  stream.columns.filter((column) => !column.volatile && !column.deprecated);

/** The keys of a record with joined values: `link`, `customer`, and aliases such as `domain`. */
export const joinedKeys = (stream: Stream): string[] => [
  ...new Set(
    stream.columns.filter((c) => c.volatile).flatMap((c) => c.from.map(({ path }) => path.split('.')[0] ?? '')),
  ),
];

/**
 * One of two reads of an event, of which every sink keeps the same one. Of two runs the later one: an event's time may move back. Within
 * a run the one with the newer time, of equal times the last one: the service may show both versions, in any order.
 */
interface Reading {
  at: Instant;
  runId: string | null;
}

/** Whether the stored row wins over the row that was just read. A row that is marked as missing never wins. */
export const outdates = (stored: Reading & { isMissing: boolean }, read: Reading): boolean =>
  !stored.isMissing && stored.runId === read.runId && stored.at > read.at;

/** `outdates` in SQL: `t` is stored, `s` was read by the run. */
export const outdatesSql = (runId: string): Sql =>
  sql`(t._missing_since is null and t._run_id = ${runId} and t."timestamp" > s."timestamp")`;

/** The winning row of each event in a batch of one run, by the id as it is stored. */
export function newestById(rows: readonly Row[]): Map<string, Row> {
  const newest = new Map<string, Row>();
  for (const row of rows) {
    const id = storableText(row.id);
    const before = newest.get(id);
    if (!before || row.at >= before.at) newest.set(id, row);
  }
  return newest;
}

/**
 * The last row of each link or customer in a batch: pages come in the order they were read, whatever the time of their events.
 * A row with known values is preferred to a later one without. An id that is too long for an index gets no row of its own.
 */
export function newestEntities(entity: Entity, stream: Stream, rows: readonly Row[], rules: TextRules): Row[] {
  const place = (name: string): number => stream.columns.findIndex((column) => column.name === name);
  const key = place(entity.key);
  const knowledge = entity.knowledge.map(place);
  const knows = (row: Row): boolean => knowledge.some((i) => !isNone(row.values[i] ?? null));
  const newest = new Map<unknown, Row>();
  for (const row of rows) {
    const id = row.values[key];
    if (typeof id !== 'string' || id === '' || id.length > LONGEST_ID) continue;
    // Ids that are stored as the same text are one row.
    const stored = rules.text(id);
    const before = newest.get(stored);
    if (!before || knows(row) || !knows(before)) newest.set(stored, row);
  }
  return [...newest.values()];
}

/** The key of `_extra` that lists the columns with sanitized text. Readers query it. */
export const SANITIZED = '_mended';

/** How a sink replaces characters that it cannot store, in text and in serialized JSON. */
interface TextRules {
  text(text: string): string;
  json(text: string): string;
}

/** Postgres refuses NUL and lone surrogates. */
export const POSTGRES_TEXT: TextRules = { text: storableText, json: storableJson };

/** UTF-8 has no lone surrogates, which `JSON.stringify` writes as an escape. NUL is an ordinary character. */
export const UTF8_TEXT: TextRules = {
  text: (text) => (text.isWellFormed() ? text : text.toWellFormed()),
  json: (text) =>
    text.includes('\\ud')
      ? text.replace(/\\(?:ud[89a-f][0-9a-f]{2}|[\\"/bfnrtu])/g, (pair) => (pair.length > 2 ? '\ufffd' : pair))
      : text,
};

export type Sanitizer = ReturnType<typeof createSanitizer>;

/**
 * Converts rows to values that the sink can store. Other characters become U+FFFD, and `_extra` lists the affected columns, so that
 * nobody takes them for the service's text. An event's id follows the rule of Postgres, to be the same in every sink.
 */
export function createSanitizer({ columns }: Pick<Stream, 'columns'>, rules: TextRules) {
  let count = 0;

  /** Replaces characters in serialized JSON, which is fast. Only if there are any, field names are checked for collisions, too. */
  const fitJson = (value: unknown, text: string): string => {
    const fit = rules.json(text);
    return fit === text ? text : rules.json(stringifyJson(renameFields(value, rules.text)));
  };

  /** The `front` values, then the stream's columns, then `_extra`; JSON as text. */
  const one = ({ values, extra }: Row, front: readonly Value[]): Value[] => {
    const first = front.length;
    // Allocated at full length: an array that grows value by value is copied several times.
    const stored = new Array<Value>(first + columns.length + 1).fill(null);
    for (let i = 0; i < first; i++) stored[i] = front[i] ?? null;
    const sanitized: string[] = [];
    for (let i = 0; i < columns.length; i++) {
      const { name, kind } = columns[i] as Column;
      const value = values[i] ?? null;
      if (value === null || (kind !== 'text' && kind !== 'json')) {
        stored[first + i] = value;
        continue;
      }
      const text = kind === 'text' ? String(value) : stringifyJson(value);
      const fit =
        kind === 'json' ? fitJson(value, text) : name === 'event_id' ? POSTGRES_TEXT.text(text) : rules.text(text);
      if (fit !== text) sanitized.push(name);
      stored[first + i] = fit;
    }
    const rest = extra === null ? null : stringifyJson(extra);
    const fitRest = rest === null ? null : fitJson(extra, rest);
    if (fitRest !== rest) sanitized.push('_extra');
    if (sanitized.length === 0) {
      stored[first + columns.length] = fitRest;
    } else {
      count++;
      // A field of the service with our name is renamed.
      const theirs = extra && SANITIZED in extra ? { [`${SANITIZED}_`]: extra[SANITIZED] } : {};
      const noted = Object.assign(bare(), extra, theirs, { [SANITIZED]: sanitized });
      stored[first + columns.length] = fitJson(noted, stringifyJson(noted));
    }
    return stored;
  };

  return {
    one,
    *all(rows: readonly Row[], front: readonly Value[] = []): Generator<Value[]> {
      for (const row of rows) yield one(row, front);
    },
    sanitized: () => count,
  };
}
