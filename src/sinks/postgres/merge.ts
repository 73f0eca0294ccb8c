import { quoteIdent, quoteLiteral, type Sql } from '../../cursor/sql.ts';
import type { Kind } from '../../model/columns.ts';
import type { Stream } from '../../model/streams.ts';
import { keepKnownCustomer } from './customers.ts';
import { tableName } from './table.ts';
import { POSTGRES_TYPES } from './types.ts';

/** The stage: a temp table that COPY fills and the merge reads. It is gone with the transaction. */
export interface StageColumn {
  name: string;
  kind: Kind;
}

export const STAGE = 'stage';

export const stageColumns = (stream: Stream): StageColumn[] => [
  ...stream.columns.map(({ name, kind }) => ({ name, kind })),
  { name: '_extra', kind: 'json' },
  // The order in which rows came: of two with one key and one timestamp, the later wins.
  { name: '_position', kind: 'integer' },
];

export const createStage = (stream: Stream): Sql => ({
  text: `create temp table ${STAGE} (${stageColumns(stream)
    .map(({ name, kind }) => `${quoteIdent(name)} ${POSTGRES_TYPES[kind]}`)
    .join(', ')}) on commit drop`,
});

export const copyIntoStage = (): string => `copy ${STAGE} from stdin (format binary)`;

/**
 * New events are inserted; known ones are changed only where a field of the event itself differs and the reading is not
 * older than what is stored. Links and customers are joined by the service at the time of reading: if their counters or names
 * counted as a change, every sync would rewrite every row. A row that was missed and is back is no longer missing.
 */
export function mergeStage(schema: string, stream: Stream, source: string, runId: string): Sql {
  const names = [...stream.columns.map((column) => column.name), '_extra'];
  const quoted = names.map(quoteIdent).join(', ');
  const own = stream.columns.filter((column) => !column.volatile && !column.deprecated).map((c) => quoteIdent(c.name));
  const joined = joinedKeys(stream);
  const ownOf = (row: string): string => [...own.map((name) => `${row}.${name}`), ownExtra(row, joined)].join(', ');
  const isCustomers = names.includes('customer_id');
  const newValue = (name: string): string =>
    isCustomers && name.startsWith('customer_')
      ? keepKnownCustomer('t', 'excluded', name)
      : `excluded.${quoteIdent(name)}`;
  return {
    text: `
with incoming as (
  select distinct on (event_id) * from ${STAGE} order by event_id, "timestamp" desc, _position desc
), merged as (
  insert into ${tableName(schema, stream)} as t (_source, ${quoted}, _first_synced_at, _synced_at, _run_id)
  select $1, ${quoted}, now(), now(), $2 from incoming order by event_id
  on conflict (_source, event_id) do update
    set ${names.map((name) => `${quoteIdent(name)} = ${newValue(name)}`).join(', ')},
      _synced_at = now(), _run_id = $2, _missing_since = null
    where excluded."timestamp" >= t."timestamp"
      and (t._missing_since is not null or (${ownOf('t')}) is distinct from (${ownOf('excluded')}))
  returning t.xmax = 0 as is_new
)
select (select count(*) from incoming) as total,
       count(*) filter (where is_new) as new,
       count(*) filter (where not is_new) as changed
from merged`,
    values: [source, runId],
  };
}

/** The keys of a record that hold what is joined: `link`, `customer`, and aliases such as `domain`. */
const joinedKeys = (stream: Stream): string[] => [
  ...new Set(
    stream.columns.filter((c) => c.volatile).flatMap((c) => c.from.map(({ path }) => path.split('.')[0] ?? '')),
  ),
];

/** What is unknown there is joined too, and moves on its own. Where nothing else was unknown, `{}` is as good as none. */
const ownExtra = (row: string, joined: readonly string[]): string =>
  `nullif(${row}._extra - array[${joined.map(quoteLiteral).join(', ')}]::text[], '{}')`;

/** Events of a window that was just read whole and did not show them: kept, and marked. */
export const markMissing = (schema: string, stream: Stream, source: string, start: string, end: string): Sql => ({
  text: `
    update ${tableName(schema, stream)} as t set _missing_since = now()
    where _source = $1 and "timestamp" >= $2 and "timestamp" < $3 and _missing_since is null
      and not exists (select from ${STAGE} s where s.event_id = t.event_id)`,
  values: [source, start, end],
});
