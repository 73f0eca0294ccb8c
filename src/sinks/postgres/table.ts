import { createHash } from 'node:crypto';
import type { Queryable } from '../../cursor/database/index.ts';
import { nameIn, quoteIdent, quoteLiteral, raw, type Sql, sql } from '../../cursor/database/sql.ts';
import type { Column, Kind } from '../../model/columns.ts';
import { ConfigError } from '../../model/errors.ts';
import { bare } from '../../model/json.ts';
import { type Bookkeeping, type Entity, STREAMS, type Stream } from '../../model/streams.ts';
import { ShapeChanged } from '../sink.ts';
import { type Design, described, entityDesign, POSTGRES_TYPES, streamDesign } from '../table-columns.ts';
import { type Index, type IndexName, indexOn, optionalIndexes, utcDate } from '../views/postgres-indexes.ts';

/** How the tables of streams are partitioned: not at all, or by UTC month. */
export const PARTITIONS = ['none', 'month'] as const;
export type Partition = (typeof PARTITIONS)[number];

/** A table, derived from columns: what `prepare` creates and `schema --format sql` prints. */
export interface Table {
  name: string;
  doc: string;
  key: readonly string[];
  columns: readonly TableColumn[];
  indexes: readonly Index[];
  /** The partition column, if the table is partitioned. */
  partitionedBy?: string;
}

export interface TableColumn {
  name: string;
  type: string;
  nullable: boolean;
  comment: string;
}

/** One row per event. The indexes serve queries by range of time and by day, as in the views. */
export function streamTable(stream: Stream, partition: Partition = 'none', indexes: readonly IndexName[] = []): Table {
  const { key, ...table } = tableOf(streamDesign(stream));
  return {
    ...table,
    // The key of a partitioned table must include the partition column; the table of keys (`months.ts`) keeps each event unique.
    ...(partition === 'none' ? { key } : { key: [...key, 'timestamp'], partitionedBy: 'timestamp' }),
    indexes: [
      { name: 'timestamp', on: '"timestamp"' },
      { name: 'date', on: `(${utcDate()})` },
      ...optionalIndexes(indexes, stream.columns),
    ],
  };
}

export const entityTable = (entity: Entity): Table => tableOf(entityDesign(entity));

const tableOf = ({ name, doc, key, columns }: Design): Table => ({
  ...{ name, doc, key, columns: columns.map(toTableColumn), indexes: [] },
});

/** The table's comment has a digest of its shape, so that a table that is up to date is not altered. */
function tableComment({ doc, ...shape }: Table): string {
  return `${doc} Shape ${createHash('sha256').update(JSON.stringify(shape)).digest('hex').slice(0, 12)}.`;
}

function createTable(schema: string, table: Table): string {
  return [
    `create table if not exists ${nameIn(schema, table.name)} (`,
    ...table.columns.map((column) => `  ${columnDefinition(column)},`),
    `  primary key (${table.key.map(quoteIdent).join(', ')})`,
    table.partitionedBy ? `) partition by range (${quoteIdent(table.partitionedBy)});` : ');',
  ].join('\n');
}

/** Serializes processes that change the same tables: they would collide in Postgres' catalog, even with `if not exists`. */
export const lockSchema = (schema: string): Sql =>
  sql`select pg_advisory_xact_lock(hashtext(${`tributary schema ${schema}`}))`;

export const isThere = async (db: Queryable, schema: string, table: string): Promise<boolean> =>
  (await db.query(sql`select where to_regclass(${nameIn(schema, table).text}) is not null`)).length > 0;

/** An existing table or view: columns with their types. */
export interface Present {
  comment: string | null;
  partitioned: boolean;
  is_table: boolean;
  columns: Record<string, string>;
}

/** Adds columns and widens types. Only differences are named, because even a change without effect would lock out every reader. */
export function alterTable(schema: string, table: Table, present: Present): string {
  const clauses = table.columns.flatMap((column) => {
    const type = present.columns[column.name];
    // Existing rows have no value for a new column.
    if (type === undefined) return [`add column ${columnDefinition({ ...column, nullable: true })}`];
    const wider = widening(column.name, type, column.type);
    return wider === undefined ? [] : [`alter column ${quoteIdent(column.name)} type ${column.type} using ${wider}`];
  });
  return clauses.length === 0 ? '' : `alter table ${nameIn(schema, table.name)}\n  ${clauses.join(',\n  ')};`;
}

function createIndexes(schema: string, table: Table): string {
  return table.indexes
    .map((index) => {
      const name = quoteIdent(`${table.name}_${index.name}`);
      return `create index if not exists ${name} on ${nameIn(schema, table.name)} ${indexOn(index)};`;
    })
    .join('\n');
}

function comments(schema: string, table: Table): string {
  const name = nameIn(schema, table.name);
  return [
    `comment on table ${name} is ${quoteLiteral(tableComment(table))};`,
    ...table.columns.map(
      (column) => `comment on column ${name}.${quoteIdent(column.name)} is ${quoteLiteral(column.comment)};`,
    ),
  ].join('\n');
}

export const tableDefinition = (schema: string, table: Table): string =>
  [createTable(schema, table), createIndexes(schema, table), comments(schema, table)].filter(Boolean).join('\n');

export function toTableColumn(column: Column | Bookkeeping): TableColumn {
  const { name, kind, nullable, doc: comment } = described(column);
  return { name, type: POSTGRES_TYPES[kind], nullable, comment };
}

function columnDefinition({ name, type, nullable }: TableColumn): string {
  // Rows from COPY leave the times of writing to the server.
  const isWritten = ['_first_synced_at', '_synced_at'].includes(name);
  return `${quoteIdent(name)} ${type}${nullable ? '' : ' not null'}${isWritten ? ' default now()' : ''}`;
}

/** `timestamptz`, as `format_type` spells it. */
const TIMESTAMPTZ = 'timestamp with time zone';

export const formatOf = (type: string): string => (type === POSTGRES_TYPES.timestamp ? TIMESTAMPTZ : type);

/** An expression that widens the column without loss; undefined if none is needed, or if somebody gave the column a type of their own. */
function widening(column: string, from: string, to: string): string | undefined {
  const name = quoteIdent(column);
  const asText =
    from === TIMESTAMPTZ ? `to_char(${name} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')` : `${name}::text`;
  const isOurs = ['bigint', 'numeric', 'boolean', TIMESTAMPTZ, 'text'].includes(from);
  if (!isOurs || from === to) return undefined;
  if (to === 'numeric' && from === 'bigint') return `${name}::numeric`;
  if (to === 'text' && from !== 'text') return asText;
  if (to === 'jsonb') return from === TIMESTAMPTZ ? `to_jsonb(${asText})` : `to_jsonb(${name})`;
  return undefined;
}

/** Columns without a prototype: a service may send a field called `constructor`, which every object has. */
export async function describeTable(tx: Queryable, schema: string, name: string): Promise<Present | undefined> {
  const [present] = await tx.query<Present>(sql`
    select obj_description(c.oid, 'pg_class') as comment, c.relkind = 'p' as partitioned, c.relkind in ('r', 'p') as is_table,
      jsonb_object_agg(a.attname, format_type(a.atttypid, a.atttypmod)) as columns
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where n.nspname = ${schema} and c.relname = ${name} group by c.oid`);
  return present && { ...present, columns: Object.assign(bare() as Record<string, string>, present.columns) };
}

/** A text that changes with any column, type or kind of these relations, and when a view is replaced by one with the same columns. */
export async function readShape(tx: Queryable, schema: string, names: readonly string[]): Promise<string> {
  const [found] = await tx.query<{ shape: string | null }>(sql`
    select string_agg(concat_ws(' ', c.relname, c.relkind, a.columns, (select max(r.xmin::text) from pg_rewrite r where r.ev_class = c.oid)),
      ', ' order by c.relname collate "C") as shape
    from pg_class c join pg_namespace n on n.oid = c.relnamespace,
    lateral (
      select md5(string_agg(attname::text || ' ' || atttypid || ' ' || atttypmod, ',' order by attnum)) as columns
      from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped) a
    where n.nspname = ${schema} and c.relname = any(${names})`);
  return found?.shape ?? '';
}

/**
 * Before a table is altered: throws if somebody else gave a column a type that neither fits nor can be widened. Binary COPY carries no
 * types: an integer copied into a `numeric` column would silently be stored as another number.
 */
function checkWidenable(table: Table, present: Present, evolved: ReadonlySet<string> = new Set()): void {
  const wider: Record<string, Kind> = {};
  const foreign: string[] = [];
  for (const { name, type } of table.columns) {
    const found = present.columns[name];
    if (found === undefined || fits(found, type) || widening(name, found, type) !== undefined) continue;
    const kind = (Object.keys(POSTGRES_TYPES) as Kind[]).find((one) => formatOf(POSTGRES_TYPES[one]) === found);
    if (evolved.has(name) && kind !== undefined && widening(name, formatOf(type), found) !== undefined)
      wider[name] = kind;
    else foreign.push(`${name} is ${found} and must be ${formatOf(type)}`);
  }
  if (foreign.length > 0) {
    throw new ConfigError(`table ${table.name} has columns of another type: ${foreign.join('; ')}`, {
      next: 'give them their types back (alter table … alter column … type …), or rename them; then run again',
    });
  }
  if (Object.keys(wider).length > 0) throw new ShapeChanged(table.name, wider);
}

/** Postgres cannot partition an existing table, or the reverse; its rows have to be copied. */
function checkLayout(schema: string, { name, partitionedBy }: Table, { partitioned, is_table }: Present): void {
  if (!is_table)
    throw new ConfigError(`${schema}.${name} is not a table: somebody put a view or something else in its place`, {
      kept: 'nothing was changed',
      next: `rename it or drop it, and give the table its name back; a table that is gone is made again, with every row`,
    });
  const isWanted = partitionedBy !== undefined;
  if (isWanted === partitioned) return;
  const [is, says] = isWanted ? ['in one piece', 'month'] : ['in monthly partitions', 'none'];
  throw new ConfigError(`table ${schema}.${name} is ${is}, and the config says partition: ${says}`, {
    kept: 'nothing was changed',
    next:
      `set partition: ${isWanted ? 'none' : 'month'} to go on as before; to change over, give the sink another name and another ` +
      `schema, sync, and drop ${schema} when the new tables are complete (docs/warehouse.md, Partitions)`,
  });
}

/** Called under a lock that prevents changes of types: any difference came after the table was prepared. */
export function checkShape(stream: Stream, present: Present): void {
  const table = streamTable(stream);
  if (table.columns.every(({ name, type }) => fits(present.columns[name] ?? '', type))) return;
  checkWidenable(table, present, evolvedNames(stream));
  throw new ShapeChanged(table.name, {});
}

export function evolvedNames(stream: Stream): Set<string> {
  const declared = new Set(STREAMS[stream.name].columns.map(({ name }) => name));
  return new Set(stream.columns.map(({ name }) => name).filter((name) => !declared.has(name)));
}

/** `varchar` and `text` have the same binary format. */
const fits = (found: string, type: string): boolean =>
  found === formatOf(type) || (type === 'text' && found.startsWith('character varying'));

export async function bringUpToDate(tx: Queryable, schema: string, table: Table, evolved?: ReadonlySet<string>) {
  const present = await describeTable(tx, schema, table.name);
  if (present) {
    checkLayout(schema, table, present);
    checkWidenable(table, present, evolved);
  }
  const change = present ? alterTable(schema, table, present) : createTable(schema, table);
  if (change === '' && present?.comment === tableComment(table)) return;
  try {
    await tx.query(raw([change, createIndexes(schema, table), comments(schema, table)].join('\n')));
  } catch (error) {
    throw /^ *alter column .* type /m.test(change) ? columnInUse(error, schema, table) : error;
  }
}

/** Explains the error if a view uses the column. Recognized by code, because the text is in the server's language. */
function columnInUse(error: unknown, schema: string, { name }: Table): unknown {
  const { code, message, detail } = error as { code?: string; message?: string; detail?: string };
  if (code !== '0A000') return error;
  const [, user, column] = /^(?:rule \S+ on )?(.*) depends on column "(.*)"$/.exec(detail ?? '') ?? [];
  const who = user ?? 'what uses it';
  return new ConfigError(
    `column ${column ?? ''} of ${schema}.${name} must hold more than its type allows, and ${user ?? 'something'} uses it: ${user ? message : detail}`,
    {
      next: `drop ${who}, run again, and create it again; or set unknownFields of the stream to extra, which leaves the columns as they are`,
      cause: error,
    },
  );
}
