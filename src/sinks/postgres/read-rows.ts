import type { Database } from '../../cursor/database/index.ts';
import { instantOf, quoteIdent, type Sql } from '../../cursor/database/sql.ts';
import type { Kind, Value } from '../../model/columns.ts';
import type { Row } from '../../model/flatten.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { type JsonObject, parseJson } from '../../model/json.ts';
import type { Stream } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { describeTable, tableName } from './table.ts';

const ROWS_AT_A_TIME = 5000;

/** Rows as they were before they were stored, in order of time. Those that have vanished from the service are left out. */
export async function* readRows(
  db: Database,
  schema: string,
  stream: Stream,
  { source, window }: { source: string; window: Window },
): AsyncGenerator<Row[]> {
  const present = await describeTable(db, schema, stream.name);
  if (!present) return;
  // What the table does not have yet is nothing in all of its rows.
  const columns = [...stream.columns, { name: '_extra', kind: 'json' as const }];
  const list = columns.map(({ name, kind }) => (name in present.columns ? READ[kind](quoteIdent(name)) : 'null'));
  let after: { at: string; id: string } | undefined;
  for (;;) {
    const found = await db.query<StoredRow>(selectPage(tableName(schema, stream), list, { source, window, after }));
    if (found.length > 0) yield found.map((row) => toRow(row, columns));
    const last = found.at(-1);
    if (!last || found.length < ROWS_AT_A_TIME) return;
    after = { at: last.time, id: last.id };
  }
}

interface StoredRow extends Record<string, string | number | boolean | null> {
  id: string;
  at: Instant;
  /** As Postgres writes it: to go on from, without rounding. */
  time: string;
}

/** As text wherever JavaScript would round: what comes back is turned into what the flattener makes. */
const READ: Readonly<Record<Kind, (column: string) => string>> = {
  text: (column) => column,
  integer: (column) => `${column}::text`,
  number: (column) => `${column}::text`,
  boolean: (column) => column,
  timestamp: instantOf,
  json: (column) => `${column}::text`,
};

interface Page {
  source: string;
  window: Window;
  after: { at: string; id: string } | undefined;
}

const selectPage = (table: string, list: readonly string[], { source, window, after }: Page): Sql => ({
  text: `
    select event_id as id, ${instantOf('"timestamp"')} as at, "timestamp"::text as time,
      ${list.map((read, i) => `${read} as c${i}`).join(', ')}
    from ${table}
    where _source = $1 and "timestamp" >= $2 and "timestamp" < $3 and _missing_since is null
      and ($4::timestamptz is null or ("timestamp", event_id) > ($4::timestamptz, $5))
    order by "timestamp", event_id limit ${ROWS_AT_A_TIME}`,
  values: [source, toIso(window.start), toIso(window.end), after?.at ?? null, after?.id ?? ''],
});

function toRow(stored: StoredRow, columns: ReadonlyArray<{ kind: Kind }>): Row {
  const values = columns.map(({ kind }, i) => toValue(kind, stored[`c${i}`] ?? null));
  const extra = values.pop() as JsonObject | null;
  return { id: stored.id, at: stored.at, values, extra, contradictions: [], misfits: [] };
}

function toValue(kind: Kind, value: string | number | boolean | null): Value {
  if (typeof value !== 'string' || kind === 'text') return value;
  return kind === 'json' ? (parseJson(value) as Value) : exact(value);
}

/** A number where that says it all, else the digits of an integer. */
function exact(text: string): Value {
  const number = Number(text);
  return text.includes('.') || Number.isSafeInteger(number) ? number : BigInt(text);
}
