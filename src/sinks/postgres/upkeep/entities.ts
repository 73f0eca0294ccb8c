import type { Database, Queryable } from '../../../cursor/database/index.ts';
import { nameIn, quoteIdent, raw, type Sql, sql } from '../../../cursor/database/sql.ts';
import { LONGEST_ID } from '../../../model/identity.ts';
import { ENTITIES, type Entity, entitiesOf, STREAM_NAMES, STREAMS, type Stream } from '../../../model/streams.ts';
import type { Refilled } from '../../sink.ts';
import { POSTGRES_TYPES } from '../../table-columns.ts';
import { isOurs } from '../holdings.ts';
import { isKnown } from '../merge.ts';
import { bringUpToDate, describeTable, entityTable, formatOf, lockSchema, type Present } from '../table.ts';

/**
 * Restores links and customers from the events that name them, without a request: each is as its newest event shows it, so counters may be
 * older. Thorough: restores every one that is gone; else only if the source has none at all, which the index tells.
 */
export function refillEntities(db: Database, schema: string, source: string, isThorough: boolean): Promise<Refilled[]> {
  return db.transaction(async (tx) => {
    // The streams of a source detect the loss at the same time.
    await tx.query(lockSchema(schema));
    const events = await eventTables(tx, schema);
    const refilled: Refilled[] = [];
    for (const entity of ENTITIES) {
      const from = events.filter(({ stream }) => entitiesOf(stream).includes(entity));
      if (from.length === 0) continue;
      await bringUpToDate(tx, schema, entityTable(entity));
      const [done] = await tx.query<{ rows: number }>(insertMissing({ schema, source, isThorough }, entity, from));
      if (done && done.rows > 0) refilled.push({ table: `${schema}.${entity.name}`, rows: done.rows });
    }
    return refilled;
  });
}

const NEEDED = ['_source', '_run_id', '_synced_at', 'event'];

async function eventTables(tx: Queryable, schema: string) {
  const found: Array<{ stream: Stream; present: Present }> = [];
  for (const name of STREAM_NAMES) {
    const present = await describeTable(tx, schema, name);
    // `prepare` refuses a foreign table in the place of ours.
    if (present?.is_table && NEEDED.every((column) => column in present.columns))
      found.push({ stream: STREAMS[name], present });
  }
  return found;
}

function insertMissing(
  { schema, source, isThorough }: Record<'schema' | 'source', string> & { isThorough: boolean },
  entity: Entity,
  from: Awaited<ReturnType<typeof eventTables>>,
): Sql {
  const [table, key] = [nameIn(schema, entity.name), raw(quoteIdent(entity.key))];
  const list = raw(entity.columns.map(({ name }) => quoteIdent(name)).join(', '));
  const rowsOf = ({ stream, present }: (typeof from)[number]): string => {
    // A table that is not up to date yet may lack the newest columns or have narrower types.
    const columns = entity.columns.map(({ name, kind }) => {
      const type = POSTGRES_TYPES[kind];
      return present.columns[name] === formatOf(type) ? `t.${quoteIdent(name)}` : `null::${type}`;
    });
    return `select ${columns.join(', ')}, t._synced_at, t._source from ${nameIn(schema, stream.name)} t where ${isOurs('t', stream)}`;
  };
  return sql`
    with filled as (
      insert into ${table} (${list}, _observed_at, _source)
      select distinct on (e.${key}) e.*
      from (${raw(from.map(rowsOf).join(' union all '))}) e (${list}, _observed_at, _source)
      where e._source = ${source} and e.${key} <> '' and length(e.${key}) <= ${LONGEST_ID}
        and (${isThorough} or not exists (select from ${table} where _source = ${source}))
        and not exists (select from ${table} k where k._source = ${source} and k.${key} = e.${key})
      order by e.${key}, ${raw(isKnown('e', entity.knowledge))} desc, e._observed_at desc
      on conflict do nothing returning 1)
    select count(*)::int as rows from filled`;
}
