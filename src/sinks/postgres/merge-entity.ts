import { quoteIdent, type Sql } from '../../cursor/sql.ts';
import { isNone } from '../../model/coerce.ts';
import type { Entity } from '../../model/entities.ts';
import type { Row } from '../../model/flatten.ts';
import { LONGEST_ID } from '../../model/identity.ts';
import type { Stream } from '../../model/streams.ts';
import { isKnown } from './customers.ts';
import { tableName } from './table.ts';
import { POSTGRES_TYPES } from './types.ts';

const stageOf = ({ name }: Entity): string => `stage_${name}`;

export const createEntityStage = (entity: Entity): Sql => ({
  text: `create temp table ${stageOf(entity)} (${entity.columns
    .map(({ name, kind }) => `${quoteIdent(name)} ${POSTGRES_TYPES[kind]}`)
    .join(', ')}) on commit drop`,
});

export const copyIntoEntityStage = (entity: Entity): string => `copy ${stageOf(entity)} from stdin (format binary)`;

/**
 * The last row of each link or customer in a batch: pages come in the order they were read, whatever the time of their events.
 * A row that knows something is better than a later one that does not. An id that no index can hold stays with its events.
 */
export function newestOf(entity: Entity, stream: Stream, rows: readonly Row[]): Row[] {
  const place = (name: string): number => stream.columns.findIndex((column) => column.name === name);
  const key = place(entity.key);
  const knowledge = entity.knowledge.map(place);
  const knows = (row: Row): boolean => knowledge.some((i) => !isNone(row.values[i] ?? null));
  const newest = new Map<unknown, Row>();
  for (const row of rows) {
    const id = row.values[key];
    if (typeof id !== 'string' || id === '' || id.length > LONGEST_ID) continue;
    const before = newest.get(id);
    if (!before || knows(row) || !knows(before)) newest.set(id, row);
  }
  return [...newest.values()];
}

/** The newest reading wins. A row that did not change is left alone, and what knows nothing never overwrites what does. */
export function mergeEntity(schema: string, entity: Entity, source: string): Sql {
  const names = entity.columns.map(({ name }) => quoteIdent(name));
  const list = names.join(', ');
  const of = (row: string): string => names.map((name) => `${row}.${name}`).join(', ');
  const key = quoteIdent(entity.key);
  const isWorthMore = `(${isKnown('excluded', entity.knowledge)} or not (${isKnown('t', entity.knowledge)}))`;
  return {
    text: `
      insert into ${tableName(schema, entity)} as t (_source, ${list}, _observed_at)
      select $1, ${list}, now() from ${stageOf(entity)} order by ${key}
      on conflict (_source, ${key}) do update
        set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}, _observed_at = now()
        where (${of('t')}) is distinct from (${of('excluded')}) and ${isWorthMore}`,
    values: [source],
  };
}
