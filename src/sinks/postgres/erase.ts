import type { Database, Queryable } from '../../cursor/database/index.ts';
import { instantOf, nameIn, quoteIdent, raw, type Sql, sql } from '../../cursor/database/sql.ts';
import { isEmptied } from '../../model/forgotten.ts';
import { fitId } from '../../model/identity.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { ENTITIES, STREAM_NAMES } from '../../model/streams.ts';
import type { Erasure } from '../sink.ts';
import { KEPT } from '../table-columns.ts';
import type { Of } from './holdings.ts';
import { HISTORY } from './links.ts';
import { keysName, monthsOf, monthTable, qualifiedKeys } from './months.ts';
import { describeTable, lockSchema, type Partition } from './table.ts';

type Touched = Record<string, number>;

/** Erases in one transaction. Also returns the times of deleted clicks, for the ledger. */
export async function erase(db: Database, schema: string, erasure: Erasure) {
  const clicks: Instant[] = [];
  const touched = await db.transaction((tx) =>
    eachTable(tx, schema, erasure, async (change, relation, columns) => {
      const done = await tx.query<{ at?: Instant }>(sqlOf(change, relation, columns));
      if (change.table === 'clicks') clicks.push(...done.flatMap(({ at }) => at ?? []));
      return done.length;
    }),
  );
  return { touched, clicks };
}

export const countErased = (db: Queryable, schema: string, erasure: Erasure): Promise<Touched> =>
  eachTable(db, schema, erasure, async ({ where }, relation) => {
    const [found] = await db.query<{ rows: number }>(sql`select count(*)::int as rows from ${relation} where ${where}`);
    return found?.rows ?? 0;
  });

/** Skips tables that do not exist, because a stream may not have been synced yet. */
async function eachTable(
  db: Queryable,
  schema: string,
  erasure: Erasure,
  work: (change: Change, relation: Sql, columns: readonly string[]) => Promise<number>,
): Promise<Touched> {
  const touched: Touched = {};
  for (const change of changesFor(erasure)) {
    const present = await describeTable(db, schema, change.table);
    if (!present) continue;
    const rows = await work(change, nameIn(schema, change.table), Object.keys(present.columns));
    touched[`${schema}.${change.table}`] = rows;
  }
  return touched;
}

interface Change {
  table: string;
  where: Sql;
  /** The columns to clear; without it the row is deleted. */
  empties?: (column: string) => boolean;
}

function changesFor(erasure: Erasure): Change[] {
  const { source, kind } = erasure;
  if (kind === 'source') {
    const tables = [...STREAM_NAMES, ...STREAM_NAMES.map(keysName), ...ENTITIES.map(({ name }) => name), HISTORY];
    return [
      ...tables.map((table) => ({ table, where: sql`_source = ${source}` })),
      ...['_receipts', '_cursors', '_days'].map((table) => ({ table, where: sql`source = ${source}` })),
    ];
  }
  const { id } = erasure;
  const of = (column: string, value = id): Sql => sql`_source = ${source} and ${raw(quoteIdent(column))} = ${value}`;
  return [
    ...(kind === 'customer'
      ? [{ table: 'customers', where: of('customer_id') }]
      : ['clicks', keysName('clicks')].map((table) => ({ table, where: of('event_id', fitId(id)) }))),
    ...(['leads', 'sales'] as const).map((table) => ({
      table,
      where: of(`${kind}_id`),
      empties: isEmptied(kind, table),
    })),
  ];
}

function sqlOf({ where, empties }: Change, relation: Sql, columns: readonly string[]): Sql {
  if (!empties) {
    const time = columns.includes('timestamp') ? sql`${instantOf('"timestamp"')} as at` : raw('1');
    return sql`delete from ${relation} where ${where} returning ${time}`;
  }
  // By the columns of the actual table: evolved columns may hold personal data, too.
  const sets = columns
    .filter((column) => !KEPT.has(column) && empties(column))
    .map((column) => `${quoteIdent(column)} = null`);
  return sql`update ${relation} set ${raw([...sets, '_synced_at = now()'].join(', '))} where ${where} returning 1`;
}

/** Rows that one statement deletes, in about ten milliseconds. */
const STEP = 5000;

/** Deletes rows before an instant in steps. A partition that has only rows of this source is dropped. */
export async function prune(db: Database, of: Of, partition: Partition, before: Instant): Promise<boolean> {
  const { schema, stream, source } = of;
  const tables = await tablesBefore(db, of, partition, before);
  for (const { name, to } of tables) {
    const relation = nameIn(schema, name);
    if (to !== undefined && to <= before && (await dropIfAlone(db, of, relation))) continue;
    if ((await deleteStep(db, relation, source, before)) === STEP) return true;
  }
  return partition !== 'none' && (await deleteStep(db, qualifiedKeys(schema, stream), source, before)) === STEP;
}

async function deleteStep(db: Queryable, relation: Sql, source: string, before: Instant): Promise<number> {
  const [done] = await db.query<{ rows: number }>(sql`
    with deleted as (
      delete from ${relation} where ctid = any(array(
        select ctid from ${relation} where _source || '' = ${source} and "timestamp" < ${toIso(before)} limit ${raw(STEP)})) returning 1)
    select count(*)::int as rows from deleted`);
  return done?.rows ?? 0;
}

/** The table, or its partitions with rows before an instant. */
async function tablesBefore(db: Queryable, { schema, stream }: Of, partition: Partition, before: Instant) {
  const names = await db.query<{ name: string }>(sql`
    select c.relname::text as name from pg_class t
    join pg_class c on c.oid = t.oid or c.oid in (select inhrelid from pg_inherits where inhparent = t.oid)
    where t.oid = to_regclass(${nameIn(schema, stream.name).text}) and c.relkind = 'r' order by 1`);
  if (partition === 'none') return names.map(({ name }) => ({ name, to: undefined }));
  return names.flatMap(({ name }) => {
    const [, year, month] = /_(\d{4})_(\d\d)$/.exec(name) ?? [];
    // The partition before the first month has no date in its name.
    const from = year === undefined ? 0 : Date.UTC(Number(year), Number(month) - 1);
    const [own] = monthsOf([from]);
    if (!own || monthTable(stream.name, own) !== name || from >= before) return [];
    return [{ name, to: own.to === undefined ? undefined : Date.parse(own.to) }];
  });
}

async function dropIfAlone(db: Database, { schema, source }: Of, relation: Sql): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.query(lockSchema(schema));
    const others = await tx.query(sql`select from ${relation} where _source <> ${source} limit 1`);
    if (others.length > 0) return false;
    await tx.query(sql`drop table ${relation}`);
    return true;
  });
}
