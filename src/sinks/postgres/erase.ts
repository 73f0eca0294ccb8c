import type { Database, Queryable } from '../../cursor/database/index.ts';
import { instantOf, quoteIdent } from '../../cursor/database/sql.ts';
import { isEmptied } from '../../model/forgotten.ts';
import { fitId } from '../../model/identity.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { ENTITIES, STREAM_NAMES, type Stream } from '../../model/streams.ts';
import type { Erasure } from '../sink.ts';
import { KEPT } from '../table-columns.ts';
import { HISTORY } from './links/history.ts';
import { keysName, keysPlace, monthsOf, monthTable } from './months.ts';
import { describeTable, lockSchema, type Partition } from './table.ts';

/** How many rows of which table were touched. */
type Touched = Record<string, number>;

/**
 * One transaction. Tables that do not exist are skipped: not every stream may have been synced. Also returns the times of deleted
 * clicks, for the ledger.
 */
export async function erase(
  db: Database,
  schema: string,
  erasure: Erasure,
): Promise<{ touched: Touched; clicks: Instant[] }> {
  return db.transaction(async (tx) => {
    const touched: Touched = {};
    const clicks: Instant[] = [];
    for (const change of changesFor(erasure)) {
      const present = await columnsOf(tx, schema, change.table);
      if (!present) continue;
      const place = `${quoteIdent(schema)}.${quoteIdent(change.table)}`;
      const done = await tx.query<{ at?: Instant }>({
        text: textOf(change, place, present),
        values: change.where.map(([, value]) => value),
      });
      touched[`${schema}.${change.table}`] = done.length;
      if (change.table === 'clicks') clicks.push(...done.flatMap(({ at }) => at ?? []));
    }
    return { touched, clicks };
  });
}

/** How many rows of which table `erase` would touch. */
export async function countErased(db: Queryable, schema: string, erasure: Erasure): Promise<Touched> {
  const touched: Touched = {};
  for (const { table, where } of changesFor(erasure)) {
    if (!(await columnsOf(db, schema, table))) continue;
    const [found] = await db.query<{ rows: number }>({
      text: `select count(*)::int as rows from ${quoteIdent(schema)}.${quoteIdent(table)} where ${conditionOf(where)}`,
      values: where.map(([, value]) => value),
    });
    touched[`${schema}.${table}`] = found?.rows ?? 0;
  }
  return touched;
}

interface Change {
  table: string;
  where: ReadonlyArray<readonly [column: string, value: string]>;
  /** Which columns are emptied; without it the row is deleted. */
  empties?: (column: string) => boolean;
}

const EVENTS_OF_CUSTOMERS = ['leads', 'sales'] as const;

function changesFor(erasure: Erasure): Change[] {
  const { source, kind } = erasure;
  if (kind === 'source') {
    return [
      ...[...STREAM_NAMES, ...STREAM_NAMES.map(keysName), ...ENTITIES.map(({ name }) => name), HISTORY].map(
        (table) => ({
          table,
          where: [['_source', source]] as const,
        }),
      ),
      ...['_receipts', '_cursors', '_days'].map((table) => ({ table, where: [['source', source]] as const })),
    ];
  }
  const { id } = erasure;
  const of = (column: string, value = id): Change['where'] => [
    ['_source', source],
    [column, value],
  ];
  return [
    ...(kind === 'customer'
      ? [{ table: 'customers', where: of('customer_id') }]
      : ['clicks', keysName('clicks')].map((table) => ({ table, where: of('event_id', fitId(id)) }))),
    ...EVENTS_OF_CUSTOMERS.map((table) => ({ table, where: of(`${kind}_id`), empties: isEmptied(kind, table) })),
  ];
}

const conditionOf = (where: Change['where']): string =>
  where.map(([column], i) => `${quoteIdent(column)} = $${i + 1}`).join(' and ');

function textOf({ where, empties }: Change, place: string, columns: readonly string[]): string {
  const condition = conditionOf(where);
  if (!empties) {
    const time = columns.includes('timestamp') ? `${instantOf('"timestamp"')} as at` : '1';
    return `delete from ${place} where ${condition} returning ${time}`;
  }
  // From the table as it is: evolved columns may hold personal data as well as declared ones.
  const sets = columns
    .filter((column) => !KEPT.has(column) && empties(column))
    .map((column) => `${quoteIdent(column)} = null`);
  return `update ${place} set ${[...sets, '_synced_at = now()'].join(', ')} where ${condition} returning 1`;
}

async function columnsOf(tx: Queryable, schema: string, table: string): Promise<string[] | undefined> {
  const present = await describeTable(tx, schema, table);
  return present && Object.keys(present.columns);
}

/** A source in the table of a stream. */
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
