import type { Database, Queryable } from '../../cursor/database/index.ts';
import { quoteIdent } from '../../cursor/database/sql.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import { keysPlace, monthsOf, monthTable } from './months.ts';
import { lockSchema, type Partition } from './table.ts';

interface Of {
  schema: string;
  stream: Stream;
  source: string;
}

/** Rows that one statement deletes: some ten milliseconds. */
const STEP = 5000;

/** Deletes rows before a moment, a step at a time; a month of one source alone is dropped with its partition. */
export async function prune(db: Database, of: Of, partition: Partition, before: Instant): Promise<boolean> {
  const { schema, stream, source } = of;
  const tables = await tablesBefore(db, of, partition, before);
  for (const { name, to } of tables) {
    const place = `${quoteIdent(schema)}.${quoteIdent(name)}`;
    if (to !== undefined && to <= before && (await dropIfAlone(db, of, place))) continue;
    if ((await deleteStep(db, place, source, before)) === STEP) return true;
  }
  return partition !== 'none' && (await deleteStep(db, keysPlace(schema, stream), source, before)) === STEP;
}

async function deleteStep(db: Queryable, place: string, source: string, before: Instant): Promise<number> {
  const [done] = await db.query<{ rows: number }>({
    text: `
      with deleted as (
        delete from ${place} where ctid = any(array(
          select ctid from ${place} where _source || '' = $1 and "timestamp" < $2 limit ${STEP})) returning 1)
      select count(*)::int as rows from deleted`,
    values: [source, toIso(before)],
  });
  return done?.rows ?? 0;
}

/** The table, or those of its partitions that hold what is too old. */
async function tablesBefore(
  db: Queryable,
  { schema, stream }: Of,
  partition: Partition,
  before: Instant,
): Promise<Array<{ name: string; to: Instant | undefined }>> {
  const names = await db.query<{ name: string }>({
    text: `
      select c.relname::text as name from pg_class t
      join pg_class c on c.oid = t.oid or c.oid in (select inhrelid from pg_inherits where inhparent = t.oid)
      where t.oid = to_regclass($1) and c.relkind = 'r' order by 1`,
    values: [`${quoteIdent(schema)}.${quoteIdent(stream.name)}`],
  });
  if (partition === 'none') return names.map(({ name }) => ({ name, to: undefined }));
  return names.flatMap(({ name }) => {
    const [, year, month] = /_(\d{4})_(\d\d)$/.exec(name) ?? [];
    // Before the first month that has a partition of its own.
    const from = year === undefined ? 0 : Date.UTC(Number(year), Number(month) - 1);
    const [own] = monthsOf([from]);
    if (!own || monthTable(stream.name, own) !== name || from >= before) return [];
    return [{ name, to: own.to === undefined ? undefined : Date.parse(own.to) }];
  });
}

async function dropIfAlone(db: Database, { schema, source }: Of, place: string): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.query(lockSchema(schema));
    const others = await tx.query({ text: `select from ${place} where _source <> $1 limit 1`, values: [source] });
    if (others.length > 0) return false;
    await tx.query({ text: `drop table ${place}` });
    return true;
  });
}
