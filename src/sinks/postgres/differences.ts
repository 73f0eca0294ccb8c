import type { Database } from '../../cursor/database.ts';
import { instantOf, quoteIdent, quoteLiteral, type Sql } from '../../cursor/sql.ts';
import { toIso } from '../../model/instant.ts';
import { joinedKeys } from '../merge-rule.ts';
import { newestById } from '../newest-by-id.ts';
import { createSanitizer, POSTGRES_TEXT } from '../sanitize-rows.ts';
import type { Comparison, Difference } from '../sink.ts';
import { comparedColumns, ownExtra, SEEN, sendSeen } from './compare.ts';
import { lookAt } from './present.ts';
import { type Present, tableName } from './table.ts';

/**
 * The rows that ought to be there travel to the server and are compared there, by its own idea of equality: a range that is as it
 * should be costs no row on the way back.
 */
export function findDifferences(db: Database, schema: string, question: Comparison): Promise<Difference[]> {
  const { stream, rows } = question;
  return db.transaction(async (tx) => {
    const present = await lookAt(tx, schema, stream.name);
    const expected = [...newestById(rows).values()];
    if (!present) return expected.map(({ id, at }) => ({ kind: 'missing', id, at, columns: [] }));
    await sendSeen(tx, stream, createSanitizer(stream, POSTGRES_TEXT).all(expected));
    return tx.query<Difference & Record<string, unknown>>(selectDifferences(schema, question, present));
  });
}

function selectDifferences(schema: string, { stream, source, window, isWhole }: Comparison, present: Present): Sql {
  const table = tableName(schema, stream);
  // A table that has not seen a column yet is compared by those it has; the rest is still in `_extra` of both.
  const own = comparedColumns(stream).filter(({ name }) => name !== '_extra' && name in present.columns);
  const joined = joinedKeys(stream);
  const tests = [
    ...own.map(({ name }) => [name, `t.${quoteIdent(name)} is distinct from s.${quoteIdent(name)}`] as const),
    ['_extra', `${ownExtra('t', joined)} is distinct from ${ownExtra('s', joined)}`] as const,
    // It is shown, so it has not vanished.
    ['_missing_since', 't._missing_since is not null'] as const,
  ];
  const differing = `array_remove(array[${tests
    .map(([name, test]) => `case when ${test} then ${quoteLiteral(name)} end`)
    .join(', ')}], null)`;
  return {
    text: `
select 'missing' as kind, s.event_id as id, ${instantOf('s."timestamp"')} as at, array[]::text[] as columns from ${SEEN} s
where not exists (select from ${table} t where t._source = $1 and t.event_id = s.event_id)
union all
select 'extra', t.event_id, ${instantOf('t."timestamp"')}, array[]::text[] from ${table} t
where $4 and t._source = $1 and t."timestamp" >= $2 and t."timestamp" < $3 and t._missing_since is null
  and not exists (select from ${SEEN} s where s.event_id = t.event_id)
union all
select 'different', t.event_id, ${instantOf('t."timestamp"')}, ${differing} from ${table} t
join ${SEEN} s on s.event_id = t.event_id
where t._source = $1 and (${tests.map(([, test]) => test).join(' or ')})`,
    values: [source, toIso(window.start), toIso(window.end), isWhole],
  };
}
