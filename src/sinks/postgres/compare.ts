import type { Database, Transaction } from '../../cursor/database/index.ts';
import { instantOf, nameIn, quoteIdent, quoteLiteral, raw, type Sql, sql } from '../../cursor/database/sql.ts';
import type { Value } from '../../model/columns.ts';
import type { Row } from '../../model/flatten.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { type JsonObject, parseJson } from '../../model/json.ts';
import type { Stream } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import {
  createSanitizer,
  joinedKeys,
  newestById,
  outdatesSql,
  ownColumns,
  POSTGRES_TEXT,
  SANITIZED,
} from '../merge-rule.ts';
import type { Comparison, Difference } from '../sink.ts';
import { isOurs, type Of } from './holdings.ts';
import { joinKnown, type Known, type Target } from './merge.ts';
import { type Stage, type Staged, sendStage } from './staged.ts';
import { describeTable, type Present } from './table.ts';

/** Finds the known events that changed. If joined counters and names counted, every sync would rewrite every row. */

const EXTRA = { name: '_extra', kind: 'json' } as const;

/** The compared columns, with the index of each in a row of `createSanitizer`. */
const comparedColumns = (stream: Stream) => [
  ...ownColumns(stream).map((column) => ({ ...column, index: stream.columns.indexOf(column) })),
  { ...EXTRA, index: stream.columns.length },
];

export const seenStage = (stream: Stream): Stage => ({ name: 'seen', columns: comparedColumns(stream) });

/** Sends the compared columns of rows from `createSanitizer`. */
export function sendSeen(tx: Transaction, stream: Stream, rows: Iterable<readonly Value[]>): Promise<Staged> {
  const indexes = comparedColumns(stream).map(({ index }) => index);
  return sendStage(tx, seenStage(stream), pickValues(rows, indexes));
}

export const pickValues = (rows: Iterable<readonly Value[]>, indexes: readonly number[]): Value[][] =>
  Array.from(rows, (values) => indexes.map((index) => values[index] ?? null));

/** Rows that differ, that somebody else wrote, or that were missing and are back; unless this run has already read a newer version. */
export function selectChanged(target: Target, staged: Staged, known: readonly Known[]): Sql {
  const { stream, runId } = target;
  const tests = differencesOf(stream);
  const names = [...tests.map(([name]) => name), '_run_id'];
  return sql`
    select s.event_id from ${staged('s')} ${joinKnown(target, known, names.map(quoteIdent).join(', '))}
    where (not ${isOurs('t', stream)} or ${anyOf(tests)}) and not ${outdatesSql(runId)}`;
}

/** By column, how the row of the table (`t`) may differ from the one that was read (`s`). */
function differencesOf(stream: Stream): Array<[column: string, test: string]> {
  const joined = joinedKeys(stream);
  const own = (row: string, name: string): string =>
    name === '_extra' ? ownExtra(row, joined) : `${row}.${quoteIdent(name)}`;
  return [
    ...comparedColumns(stream).map(({ name }): [string, string] => [
      name,
      `${own('t', name)} is distinct from ${own('s', name)}`,
    ]),
    // The service shows the event, so it has not vanished.
    ['_missing_since', 't._missing_since is not null'],
  ];
}

const anyOf = (tests: ReturnType<typeof differencesOf>): Sql => raw(`(${tests.map(([, test]) => test).join(' or ')})`);

/** `_extra` without unknown fields of joined objects and the note of sanitizing, which change on their own. `{}` equals null. */
const ownExtra = (row: string, joined: readonly string[]): string =>
  `nullif(${row}._extra - array[${[...joined, SANITIZED].map(quoteLiteral).join(', ')}]::text[], '{}')`;

/** Compares on the server, by Postgres' equality, so that a range without differences returns no row. */
export function findDifferences(db: Database, schema: string, question: Comparison): Promise<Difference[]> {
  const { stream } = question;
  return db.transaction(async (tx) => {
    const present = await describeTable(tx, schema, stream.name);
    const expected = [...newestById(question.rows).values()];
    if (!present) return expected.map(({ id, at }) => ({ kind: 'missing', id, at, columns: [] }));
    const rows = createSanitizer(stream, POSTGRES_TEXT).all(expected);
    const staged = await sendSeen(tx, stream, rows);
    return tx.query<Difference>(selectDifferences(schema, question, staged, present));
  });
}

function selectDifferences(
  schema: string,
  { stream, source, window, isWhole }: Comparison,
  staged: Staged,
  present: Present,
): Sql {
  const table = nameIn(schema, stream.name);
  const seen = staged('s');
  // Compares only columns that the table has; other values are still in `_extra` on both sides.
  const tests = differencesOf(stream).filter(([name]) => name in present.columns);
  const differing = tests.map(([name, test]) => `case when ${test} then ${quoteLiteral(name)} end`).join(', ');
  return sql`
    select 'missing' as kind, s.event_id as id, ${instantOf('s."timestamp"')} as at, array[]::text[] as columns from ${seen}
    where not exists (select from ${table} t where t._source = ${source} and t.event_id = s.event_id)
    union all
    select 'extra', t.event_id, ${instantOf('t."timestamp"')}, array[]::text[] from ${table} t
    where ${isWhole} and t._source = ${source} and t."timestamp" >= ${toIso(window.start)} and t."timestamp" < ${toIso(window.end)}
      and t._missing_since is null and not exists (select from ${seen} where s.event_id = t.event_id)
    union all
    select 'different', t.event_id, ${instantOf('t."timestamp"')}, array_remove(array[${raw(differing)}], null) from ${table} t
    join ${seen} on s.event_id = t.event_id
    where t._source = ${source} and ${anyOf(tests)}`;
}

const ROWS_AT_A_TIME = 5000;

/** Reads rows as they were before they were stored, in time order, without those that vanished from the service. */
export async function* readRows(db: Database, { schema, stream, source }: Of, window: Window): AsyncGenerator<Row[]> {
  const present = await describeTable(db, schema, stream.name);
  if (!present) return;
  // As JSON, which keeps all digits, by column name. A column that the table does not have yet is null.
  const list = [...stream.columns, EXTRA].map(({ name, kind }) => {
    const column = quoteIdent(name);
    return `${name in present.columns ? (kind === 'timestamp' ? instantOf(column) : column) : 'null'} as ${column}`;
  });
  let after = raw('');
  for (;;) {
    const found = await db.query<StoredRow>(sql`
      select event_id as id, ${instantOf('"timestamp"')} as at, "timestamp"::text as time,
        (select to_json(r)::text from (select ${raw(list.join(', '))}) r) as content
      from ${nameIn(schema, stream.name)}
      where _source = ${source} and "timestamp" >= ${toIso(window.start)} and "timestamp" < ${toIso(window.end)}
        and _missing_since is null ${after}
      order by "timestamp", event_id limit ${raw(ROWS_AT_A_TIME)}`);
    if (found.length > 0) yield found.map((row) => toRow(stream, row));
    const last = found.at(-1);
    if (!last || found.length < ROWS_AT_A_TIME) return;
    after = sql`and ("timestamp", event_id) > (${last.time}::timestamptz, ${last.id})`;
  }
}

interface StoredRow {
  id: string;
  at: Instant;
  /** The time as Postgres prints it, to continue after it without rounding. */
  time: string;
  content: string;
}

function toRow({ columns }: Stream, { id, at, content }: StoredRow): Row {
  const stored = parseJson(content) as Record<string, Value>;
  const extra = stored._extra as JsonObject | null;
  const values = columns.map(({ name }) => stored[name] ?? null);
  return { id, at, values, extra, contradictions: [], typeMismatches: [] };
}
