import { createHash } from 'node:crypto';
import { quoteIdent, quoteLiteral, type Sql } from '../../cursor/sql.ts';
import { BOOKKEEPING, type Stream } from '../../model/streams.ts';
import { POSTGRES_TYPES } from './types.ts';

/** A table's DDL, derived from the stream's columns: what `prepare` runs and `schema --format sql` prints. */
export interface TableColumn {
  name: string;
  type: string;
  nullable: boolean;
  comment: string;
}

export function tableColumns(stream: Stream): TableColumn[] {
  const [source, ...bookkeeping] = BOOKKEEPING;
  if (!source) throw new Error('every table starts with its source');
  return [source, ...stream.columns, ...bookkeeping].map((column) => ({
    name: column.name,
    type: POSTGRES_TYPES[column.kind],
    nullable: column.nullable,
    comment: 'deprecated' in column ? `Deprecated, use ${column.deprecated}. ${column.doc}` : column.doc,
  }));
}

export const tableName = (schema: string, stream: Stream): string => `${quoteIdent(schema)}.${quoteIdent(stream.name)}`;

/** The table's comment carries a digest of its shape, so that a table that is up to date is left alone. */
export function tableComment(stream: Stream): string {
  const shape = JSON.stringify(tableColumns(stream));
  return `${stream.doc} Shape ${createHash('sha256').update(shape).digest('hex').slice(0, 12)}.`;
}

export function createTable(schema: string, stream: Stream): string {
  const columns = tableColumns(stream).map((column) => `  ${columnDefinition(column)}`);
  return [
    `create table if not exists ${tableName(schema, stream)} (`,
    `${columns.join(',\n')},`,
    '  primary key (_source, event_id)',
    ');',
  ].join('\n');
}

/** Columns that a table of an older version, or one that somebody changed, does not have. */
export const missingColumns = (stream: Stream, present: readonly string[]): TableColumn[] =>
  tableColumns(stream).filter((column) => !present.includes(column.name));

/** Only these: adding one that is there would still lock every reader out for a moment. Rows that are there have no value. */
export function addColumns(schema: string, stream: Stream, missing: readonly TableColumn[]): string {
  if (missing.length === 0) return '';
  const clauses = missing.map((column) => `  add column ${columnDefinition({ ...column, nullable: true })}`);
  return `alter table ${tableName(schema, stream)}\n${clauses.join(',\n')};`;
}

/** One index besides the key: people ask for ranges of time. */
export function createIndexes(schema: string, stream: Stream): string {
  const name = quoteIdent(`${stream.name}_timestamp`);
  return `create index if not exists ${name} on ${tableName(schema, stream)} ("timestamp");`;
}

export function comments(schema: string, stream: Stream): string {
  const table = tableName(schema, stream);
  return [
    `comment on table ${table} is ${quoteLiteral(tableComment(stream))};`,
    ...tableColumns(stream).map(
      (column) => `comment on column ${table}.${quoteIdent(column.name)} is ${quoteLiteral(column.comment)};`,
    ),
  ].join('\n');
}

/** The whole definition of a stream's table, for a person to read or a DBA to run. */
export function tableDefinition(schema: string, stream: Stream): string {
  return [createTable(schema, stream), createIndexes(schema, stream), comments(schema, stream)].join('\n');
}

export const selectTable = (schema: string, stream: Stream): Sql => ({
  text: `
    select obj_description(c.oid, 'pg_class') as comment, array_agg(a.attname::text) as columns
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where n.nspname = $1 and c.relname = $2 group by c.oid`,
  values: [schema, stream.name],
});

function columnDefinition({ name, type, nullable }: TableColumn): string {
  return `${quoteIdent(name)} ${type}${nullable ? '' : ' not null'}`;
}
