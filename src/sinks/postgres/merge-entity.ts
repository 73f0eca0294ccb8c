import { quoteIdent, type Sql } from '../../cursor/sql.ts';
import type { Entity } from '../../model/entities.ts';
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
