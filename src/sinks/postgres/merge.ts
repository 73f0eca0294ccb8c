import { instantOf, nameIn, quoteIdent, raw, type Sql, sql } from '../../cursor/database/sql.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { CUSTOMER_KNOWLEDGE, type Entity, LINK_COUNTERS, type Stream } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { isOurs, type Of } from './holdings.ts';
import { isWithin, type Month, monthsOf, qualifiedKeys } from './months.ts';
import type { Stage, Staged } from './staged.ts';
import type { Partition } from './table.ts';

export interface Target extends Of {
  partition: Partition;
  runId: string;
}

/** The columns with values of the service, in the order of `createSanitizer`. */
const rowColumns = (stream: Stream): string[] => [...stream.columns.map(({ name }) => name), '_extra'];

/** New rows go straight into the table: they need no comparison, and the lease excludes other writers of their keys. */
export const copyIntoTable = (schema: string, stream: Stream): string =>
  `copy ${nameIn(schema, stream.name)} (${['_source', '_run_id', ...rowColumns(stream)].map(quoteIdent).join(', ')})
    from stdin (format binary)`;

export interface Known {
  event_id: string;
  /** With partitions, only those with one of these times are searched. */
  at: Instant;
}

export const selectKnown = ({ schema, stream, partition, source }: Target, ids: readonly string[]): Sql => sql`
  select event_id, ${instantOf('"timestamp"')} as at
  from ${partition === 'month' ? qualifiedKeys(schema, stream) : nameIn(schema, stream.name)}
  where _source = ${source} and event_id = any(${ids})`;

/**
 * Joins each row of a staging table (`s`) with its row in the table (`t`, with these columns), one by one, by key: `limit 1` is a fence
 * for the planner. The statistics do not know a source that is new in an old table; the planner would estimate it as empty, and a plain
 * join would read all of it with every batch, or compare every pair of rows.
 */
export function joinKnown(target: Target, known: readonly Known[], columns: string): Sql {
  const { schema, stream, partition, source } = target;
  const row = (table: Sql, select: string, where = ''): Sql => sql`
    cross join lateral (
      select ${raw(select)} from ${table} r where r._source = ${source} and r.event_id = s.event_id${raw(where)} limit 1)`;
  const table = nameIn(schema, stream.name);
  if (partition === 'none') return sql`${row(table, columns)} t`;
  const isThere = ` and r."timestamp" = k."timestamp" and (${isWithin('r."timestamp"', monthsOfKnown(known))})`;
  return sql`${row(qualifiedKeys(schema, stream), '"timestamp"')} k ${row(table, columns, isThere)} t`;
}

const monthsOfKnown = (known: readonly Known[]): Month[] => monthsOf(known.map(({ at }) => at));

export const changedStage = ({ columns }: Stream): Stage => ({
  name: 'stage',
  columns: [...columns, { name: '_extra', kind: 'json' }],
});

/** Updates rows of the table from the staging table. A row that was marked as missing and is back is unmarked. */
export function mergeStage(target: Target, staged: Staged, known: readonly Known[]): Sql {
  const { schema, stream, partition, runId } = target;
  const names = rowColumns(stream);
  const isCustomers = names.includes('customer_id');
  const newValue = (name: string): string =>
    isCustomers && name.startsWith('customer_') ? keepKnownCustomer(quoteIdent(name)) : `s.${quoteIdent(name)}`;
  const isNear = partition === 'none' ? '' : ` and (${isWithin('t."timestamp"', monthsOfKnown(known))})`;
  return sql`
    update ${nameIn(schema, stream.name)} as t
    set ${raw(names.map((name) => `${quoteIdent(name)} = ${newValue(name)}`).join(', '))},
      _synced_at = now(), _run_id = ${runId}, _missing_since = null
    from (
      select s.*, t._part, t._row from ${staged('s')} ${joinKnown(target, known, 'tableoid as _part, ctid as _row')}
    ) s
    where t.ctid = s._row and t.tableoid = s._part${raw(isNear)}`;
}

/** After the merge, updates the keys of events whose time changed. */
export const followStage = ({ schema, stream, source }: Of, staged: Staged): Sql => sql`
  insert into ${qualifiedKeys(schema, stream)} as k (_source, event_id, "timestamp")
  select ${source}, s.event_id, s."timestamp" from ${staged('s')}
  on conflict (_source, event_id) do update set "timestamp" = excluded."timestamp" where k."timestamp" <> excluded."timestamp"`;

/**
 * Marks events that a completely read window did not show; their rows stay. They are looked up by time: `|| ''` keeps the planner from
 * using the key for a source that it estimates to be empty, and then reading all of it. `not in` is a hash lookup; `not exists` is a
 * join, for which a planner without statistics would scan all ids for every row of a large table.
 */
export const markMissing = ({ schema, stream, source }: Of, { start, end }: Window, shown: readonly string[]) => sql`
  update ${nameIn(schema, stream.name)} as t set _missing_since = now()
  where _source || '' = ${source} and "timestamp" >= ${toIso(start)} and "timestamp" < ${toIso(end)}
    and _missing_since is null and ${isOurs('t', stream)} and event_id not in (select unnest(${shown}::text[]))`;

export const entityStage = ({ name, columns }: Entity): Stage => ({ name: `stage_${name}`, columns });

/**
 * The value of a link's or customer's column after another read. The newest read wins, except that a link has its own `updatedAt`: only
 * counters are taken from a read with an older one. `iceberg/merge/entities.ts` and `files/merge-link.ts` implement the same rule.
 */
export function mergedValue(entity: Entity, name: string): string {
  const column = quoteIdent(name);
  if (entity.name !== 'links' || LINK_COUNTERS.has(name)) return `excluded.${column}`;
  return `case when excluded.link_updated_at < t.link_updated_at then t.${column} else excluded.${column} end`;
}

/** Does not write unchanged rows; an empty value never overwrites a known one. */
export function mergeEntity({ schema, source }: Of, entity: Entity, staged: Staged): Sql {
  const names = entity.columns.map(({ name }) => quoteIdent(name));
  const merged = entity.columns.map(({ name }) => mergedValue(entity, name));
  const [list, key] = [raw(names.join(', ')), raw(quoteIdent(entity.key))];
  const isWorthMore = `(${isKnown('excluded', entity.knowledge)} or not (${isKnown('t', entity.knowledge)}))`;
  return sql`
    insert into ${nameIn(schema, entity.name)} as t (_source, ${list}, _observed_at)
    select ${source}, ${list}, now() from ${staged('s')} order by ${key}
    on conflict (_source, ${key}) do update
      set ${raw(names.map((name, i) => `${name} = ${merged[i]}`).join(', '))}, _observed_at = now()
      where ${raw(`(${names.map((name) => `t.${name}`).join(', ')}) is distinct from (${merged.join(', ')}) and ${isWorthMore}`)}`;
}

/** Whether a row has a value in any of these text columns. Some services write "" for none. */
export const isKnown = (row: string, knowledge: readonly string[]): string =>
  `num_nonnulls(${knowledge.map((name) => `nullif(${row}.${quoteIdent(name)}, '')`).join(', ')}) > 0`;

/** The new value of a customer's column, unless a placeholder would overwrite a known value of the same customer. */
const keepKnownCustomer = (column: string): string =>
  `case when ${isKnown('s', CUSTOMER_KNOWLEDGE)} or not (${isKnown('t', CUSTOMER_KNOWLEDGE)})` +
  ` or t.customer_id is distinct from s.customer_id then s.${column} else t.${column} end`;
