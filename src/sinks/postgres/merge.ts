import { quoteIdent, quoteLiteral, type Sql } from '../../cursor/sql.ts';
import type { Stream } from '../../model/streams.ts';
import { keepKnownCustomer } from './customers.ts';
import { MENDED } from './storable-row.ts';
import { tableName } from './table.ts';
import { POSTGRES_TYPES } from './types.ts';

/** The stage: a temp table for rows that the target knows already. It is gone with the transaction. */
const STAGE = 'stage';

/** What of a row comes from the service, in the order of `createStorable`. */
export const rowColumns = (stream: Stream): string[] => [...stream.columns.map(({ name }) => name), '_extra'];

export const createStage = (stream: Stream): Sql => ({
  text: `create temp table ${STAGE} (${stream.columns
    .map(({ name, kind }) => `${quoteIdent(name)} ${POSTGRES_TYPES[kind]}`)
    .join(', ')}, _extra jsonb) on commit drop`,
});

export const copyIntoStage = (): string => `copy ${STAGE} from stdin (format binary)`;

/** New rows go straight into the table: they need no comparing, and the lease keeps any other writer of their keys away. */
export const copyIntoTable = (schema: string, stream: Stream): string =>
  `copy ${tableName(schema, stream)} (${['_source', '_run_id', ...rowColumns(stream)].map(quoteIdent).join(', ')})
    from stdin (format binary)`;

/** Which of these events the table has. */
export const selectKnown = (schema: string, stream: Stream, source: string, ids: readonly string[]): Sql => ({
  text: `select event_id from ${tableName(schema, stream)} where _source = $1 and event_id = any($2)`,
  values: [source, ids],
});

/**
 * A known event is changed only where a field of the event itself differs and the reading is not older than what is stored.
 * Links and customers are joined by the service at the time of reading: if their counters or names counted as a change, every
 * sync would rewrite every row. A row that was missed and is back is no longer missing.
 */
export function mergeStage(schema: string, stream: Stream, source: string, runId: string): Sql {
  const names = rowColumns(stream);
  const own = stream.columns.filter((column) => !column.volatile && !column.deprecated).map((c) => quoteIdent(c.name));
  const joined = joinedKeys(stream);
  const ownOf = (row: string): string => [...own.map((name) => `${row}.${name}`), ownExtra(row, joined)].join(', ');
  const isCustomers = names.includes('customer_id');
  const newValue = (name: string): string =>
    isCustomers && name.startsWith('customer_') ? keepKnownCustomer('t', 's', name) : `s.${quoteIdent(name)}`;
  return {
    text: `
update ${tableName(schema, stream)} as t
set ${names.map((name) => `${quoteIdent(name)} = ${newValue(name)}`).join(', ')},
  _synced_at = now(), _run_id = $2, _missing_since = null
from ${STAGE} s
where t._source = $1 and t.event_id = s.event_id and s."timestamp" >= t."timestamp"
  and (t._missing_since is not null or (${ownOf('t')}) is distinct from (${ownOf('s')}))
returning 1`,
    values: [source, runId],
  };
}

/** The keys of a record that hold what is joined: `link`, `customer`, and aliases such as `domain`. */
export const joinedKeys = (stream: Stream): string[] => [
  ...new Set(
    stream.columns.filter((c) => c.volatile).flatMap((c) => c.from.map(({ path }) => path.split('.')[0] ?? '')),
  ),
];

/**
 * What is unknown there is joined too, and moves on its own; so does the note that one of its columns was mended. Where nothing
 * else was unknown, `{}` is as good as none.
 */
export const ownExtra = (row: string, joined: readonly string[]): string =>
  `nullif(${row}._extra - array[${[...joined, MENDED].map(quoteLiteral).join(', ')}]::text[], '{}')`;

/** Events of a window that was just read whole and did not show them: kept, and marked. */
export const markMissing = (
  schema: string,
  stream: Stream,
  source: string,
  window: { start: string; end: string },
  shown: readonly string[],
): Sql => ({
  text: `
    update ${tableName(schema, stream)} as t set _missing_since = now()
    where _source = $1 and "timestamp" >= $2 and "timestamp" < $3 and _missing_since is null
      and not exists (select from unnest($4::text[]) as shown (id) where shown.id = t.event_id)`,
  values: [source, window.start, window.end, shown],
});
