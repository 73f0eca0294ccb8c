import { instantOf, quoteIdent, type Sql } from '../../cursor/sql.ts';
import type { Instant } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import { keepKnownCustomer } from './customers.ts';
import { followMoved, keysPlace } from './keys.ts';
import { isWithin, monthsOf, type Partition } from './months.ts';
import { tableName } from './table.ts';
import { POSTGRES_TYPES } from './types.ts';

/** Where rows go: the table of a stream, in one piece or in partitions. */
export interface Target {
  schema: string;
  stream: Stream;
  partition: Partition;
}

/** What of a row comes from the service, in the order of `createStorable`. */
export const rowColumns = (stream: Stream): string[] => [...stream.columns.map(({ name }) => name), '_extra'];

/** New rows go straight into the table: they need no comparing, and the lease keeps any other writer of their keys away. */
export const copyIntoTable = (schema: string, stream: Stream): string =>
  `copy ${tableName(schema, stream)} (${['_source', '_run_id', ...rowColumns(stream)].map(quoteIdent).join(', ')})
    from stdin (format binary)`;

export interface Known {
  event_id: string;
  /** When, where there are partitions: to look only into those that have one of the events. */
  at?: Instant;
}

/** Which of these events there are. */
export const selectKnown = ({ schema, stream, partition }: Target, source: string, ids: readonly string[]): Sql => ({
  text: `
    select event_id${partition === 'month' ? `, ${instantOf('"timestamp"')} as at` : ''}
    from ${partition === 'month' ? keysPlace(schema, stream) : tableName(schema, stream)}
    where _source = $1 and event_id = any($2)`,
  values: [source, ids],
});

/**
 * How the rows of a stage (`s`) find theirs in the table (`t`). The ids are given once more ($2), though the stage has them: of a source
 * that is new in an old table the statistics know nothing, and a planner that takes it for empty would read all of it, batch
 * after batch.
 */
export function matchKnown(
  { schema, stream, partition }: Target,
  known: readonly Known[],
): { keys: string; is: string } {
  const isOne = (row: string): string =>
    `${row}._source = $1 and ${row}.event_id = s.event_id and ${row}.event_id = any($2)`;
  if (partition === 'none') return { keys: '', is: isOne('t') };
  const months = monthsOf(known.flatMap(({ at }) => at ?? []));
  return {
    keys: `join ${keysPlace(schema, stream)} k on ${isOne('k')}`,
    is: `${isOne('t')} and t."timestamp" = k."timestamp" and (${isWithin('t."timestamp"', months)})`,
  };
}

/** A temp table for rows that changed. It is gone with the transaction. */
const STAGE = 'stage';

export const createStage = (stream: Stream): Sql => ({
  text: `create temp table ${STAGE} (${stream.columns
    .map(({ name, kind }) => `${quoteIdent(name)} ${POSTGRES_TYPES[kind]}`)
    .join(', ')}, _extra jsonb) on commit drop`,
});

export const copyIntoStage = (): string => `copy ${STAGE} from stdin (format binary)`;

/** The rows of the stage take the place of those in the table. A row that was missed and is back is no longer missing. */
export function mergeStage(target: Target, known: readonly Known[], source: string, runId: string): Sql {
  const { schema, stream, partition } = target;
  const { keys, is } = matchKnown(target, known);
  const names = rowColumns(stream);
  const isCustomers = names.includes('customer_id');
  const newValue = (name: string): string =>
    isCustomers && name.startsWith('customer_') ? keepKnownCustomer('t', 's', name) : `s.${quoteIdent(name)}`;
  const update = `
update ${tableName(schema, stream)} as t
set ${names.map((name) => `${quoteIdent(name)} = ${newValue(name)}`).join(', ')},
  _synced_at = now(), _run_id = $3, _missing_since = null
from ${STAGE} s ${keys} where ${is}`;
  const text =
    partition === 'none'
      ? update
      : `with changed as (${update} returning t.event_id, t."timestamp") ${followMoved(schema, stream, 'changed')}`;
  return { text, values: [source, known.map(({ event_id }) => event_id), runId] };
}

/**
 * Events of a window that was just read whole and did not show them: kept, and marked. They are looked up by time: `|| ''` keeps the
 * planner from taking the key of a source that it believes to be empty, and from reading all of it.
 */
export const markMissing = (
  schema: string,
  stream: Stream,
  source: string,
  window: { start: string; end: string },
  shown: readonly string[],
): Sql => ({
  text: `
    update ${tableName(schema, stream)} as t set _missing_since = now()
    where _source || '' = $1 and "timestamp" >= $2 and "timestamp" < $3 and _missing_since is null
      and not exists (select from unnest($4::text[]) as shown (id) where shown.id = t.event_id)`,
  values: [source, window.start, window.end, shown],
});
