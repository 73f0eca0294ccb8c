import { createHash } from 'node:crypto';
import { quoteIdent, quoteLiteral, type Sql } from '../../cursor/sql.ts';
import type { Column } from '../../model/columns.ts';
import type { Entity } from '../../model/entities.ts';
import { BOOKKEEPING, type Bookkeeping, SOURCE, type Stream } from '../../model/streams.ts';
import type { Partition } from './months.ts';
import { POSTGRES_TYPES, widening } from './types.ts';

/** A table, derived from columns: what `prepare` makes and `schema --format sql` prints. */
export interface Table {
  name: string;
  doc: string;
  key: readonly string[];
  columns: readonly TableColumn[];
  indexes: readonly string[];
  /** The column whose ranges the partitions are, where the table has any. */
  partitionedBy?: string;
}

export interface TableColumn {
  name: string;
  type: string;
  nullable: boolean;
  comment: string;
}

/** One row per event. One index besides the key: people ask for ranges of time. */
export function streamTable({ name, doc, columns }: Stream, partition: Partition = 'none'): Table {
  return {
    name,
    doc,
    // In partitions the key must hold what they are made by; that an event is there only once, `keys.ts` sees to.
    ...(partition === 'none'
      ? { key: ['_source', 'event_id'] }
      : { key: ['_source', 'event_id', 'timestamp'], partitionedBy: 'timestamp' }),
    columns: [SOURCE, ...columns, ...BOOKKEEPING.filter((column) => column !== SOURCE)].map(toTableColumn),
    indexes: ['timestamp'],
  };
}

/** One row per link or customer. */
export function entityTable({ name, doc, key, columns }: Entity): Table {
  return {
    name,
    doc,
    key: ['_source', key],
    columns: [
      toTableColumn(SOURCE),
      ...columns.map((column) => ({ ...toTableColumn(column), nullable: column.name !== key })),
      toTableColumn({
        name: '_observed_at',
        kind: 'timestamp',
        nullable: false,
        doc: 'When it was last seen to have changed.',
      }),
    ],
    indexes: [],
  };
}

export const tableName = (schema: string, { name }: { name: string }): string =>
  `${quoteIdent(schema)}.${quoteIdent(name)}`;

/** The table's comment carries a digest of its shape, so that a table that is up to date is left alone. */
export function tableComment({ doc, ...shape }: Table): string {
  return `${doc} Shape ${createHash('sha256').update(JSON.stringify(shape)).digest('hex').slice(0, 12)}.`;
}

export function createTable(schema: string, table: Table): string {
  return [
    `create table if not exists ${tableName(schema, table)} (`,
    ...table.columns.map((column) => `  ${columnDefinition(column)},`),
    `  primary key (${table.key.map(quoteIdent).join(', ')})`,
    table.partitionedBy ? `) partition by range (${quoteIdent(table.partitionedBy)});` : ');',
  ].join('\n');
}

/** Two processes that change the same tables at once collide in the catalogue, even with `if not exists`; this makes them take turns. */
export const lockSchema = (schema: string): Sql => ({
  text: 'select pg_advisory_xact_lock(hashtext($1))',
  values: [`tributary schema ${schema}`],
});

/** What is there already: columns with their types. */
export interface Present {
  comment: string | null;
  partitioned: boolean;
  columns: Record<string, string>;
}

/**
 * What an existing table lacks: columns, and room in those that must hold more than before. Only what differs is named: a change
 * that changes nothing would still lock every reader out for a moment.
 */
export function alterTable(schema: string, table: Table, present: Present): string {
  const clauses = table.columns.flatMap((column) => {
    const type = present.columns[column.name];
    // Rows that are there have no value for a new column.
    if (type === undefined) return [`add column ${columnDefinition({ ...column, nullable: true })}`];
    const wider = widening(column.name, type, column.type);
    return wider === undefined ? [] : [`alter column ${quoteIdent(column.name)} type ${column.type} using ${wider}`];
  });
  return clauses.length === 0 ? '' : `alter table ${tableName(schema, table)}\n  ${clauses.join(',\n  ')};`;
}

export function createIndexes(schema: string, table: Table): string {
  return table.indexes
    .map((column) => {
      const name = quoteIdent(`${table.name}_${column}`);
      return `create index if not exists ${name} on ${tableName(schema, table)} (${quoteIdent(column)});`;
    })
    .join('\n');
}

export function comments(schema: string, table: Table): string {
  const name = tableName(schema, table);
  return [
    `comment on table ${name} is ${quoteLiteral(tableComment(table))};`,
    ...table.columns.map(
      (column) => `comment on column ${name}.${quoteIdent(column.name)} is ${quoteLiteral(column.comment)};`,
    ),
  ].join('\n');
}

/** The whole definition, for a person to read or a DBA to run. */
export const tableDefinition = (schema: string, table: Table): string =>
  [createTable(schema, table), createIndexes(schema, table), comments(schema, table)].filter(Boolean).join('\n');

export const selectTable = (schema: string, name: string): Sql => ({
  text: `
    select obj_description(c.oid, 'pg_class') as comment, c.relkind = 'p' as partitioned,
      jsonb_object_agg(a.attname, format_type(a.atttypid, a.atttypmod)) as columns
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where n.nspname = $1 and c.relname = $2 group by c.oid`,
  values: [schema, name],
});

function toTableColumn(column: Column | Bookkeeping): TableColumn {
  const { name, kind, nullable, doc } = column;
  const comment = 'deprecated' in column ? `Deprecated, use ${column.deprecated}. ${doc}` : doc;
  return { name, type: POSTGRES_TYPES[kind], nullable, comment };
}

function columnDefinition({ name, type, nullable }: TableColumn): string {
  // Rows that come by COPY leave the times of writing to the server.
  const isWritten = ['_first_synced_at', '_synced_at'].includes(name);
  return `${quoteIdent(name)} ${type}${nullable ? '' : ' not null'}${isWritten ? ' default now()' : ''}`;
}
