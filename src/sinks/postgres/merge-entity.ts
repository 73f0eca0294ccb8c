import { quoteIdent, type Sql } from '../../cursor/sql.ts';
import type { Entity } from '../../model/entities.ts';
import { customerIsKnown } from './customers.ts';
import { STAGE } from './merge.ts';
import { tableName } from './table.ts';

/**
 * Links and customers as the service joined them to the events just read. The newest reading wins whatever the time of its
 * event: a backfill of last year shows today's link. A row that did not change is left alone.
 */
export function mergeEntity(schema: string, entity: Entity, source: string): Sql {
  const names = entity.columns.map(({ name }) => quoteIdent(name));
  const list = names.join(', ');
  const of = (row: string): string => names.map((name) => `${row}.${name}`).join(', ');
  const key = quoteIdent(entity.key);
  const isWorthMore =
    entity.name === 'customers' ? `and (${customerIsKnown('excluded')} or not (${customerIsKnown('t')}))` : '';
  // Of one batch a placeholder counts only where nothing better came with it.
  const best = entity.name === 'customers' ? `(${customerIsKnown('s')}) desc, ` : '';
  return {
    text: `
      insert into ${tableName(schema, entity)} as t (_source, ${list}, _observed_at)
      select $1, ${list}, now() from (
        select distinct on (${key}) * from ${STAGE} s where ${key} is not null order by ${key}, ${best}_position desc
      ) newest order by ${key}
      on conflict (_source, ${key}) do update
        set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}, _observed_at = now()
        where (${of('t')}) is distinct from (${of('excluded')}) ${isWorthMore}`,
    values: [source],
  };
}
