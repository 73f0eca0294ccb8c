import type { Column, Kind } from '../model/columns.ts';
import {
  BOOKKEEPING,
  type Bookkeeping,
  type Entity,
  entityBookkeeping,
  SOURCE,
  type Stream,
} from '../model/streams.ts';

type Types = Readonly<Record<Kind, string>>;

/** The type of each kind. A number in Parquet has a second column of text: see `Leaf` of the Parquet codec. */
const TYPES: Readonly<Record<Kind, Readonly<Record<'postgres' | 'duckdb' | 'iceberg', string>>>> = {
  text: { postgres: 'text', duckdb: 'text', iceberg: 'string' },
  integer: { postgres: 'bigint', duckdb: 'bigint', iceberg: 'long' },
  number: { postgres: 'numeric', duckdb: 'numeric', iceberg: 'double' },
  boolean: { postgres: 'boolean', duckdb: 'boolean', iceberg: 'boolean' },
  timestamp: { postgres: 'timestamptz', duckdb: 'timestamptz', iceberg: 'timestamptz' },
  // Iceberg has no JSON type; a table property lists the columns with JSON.
  json: { postgres: 'jsonb', duckdb: 'json', iceberg: 'string' },
};

const typesOf = (format: keyof (typeof TYPES)[Kind]): Types =>
  Object.fromEntries(Object.entries(TYPES).map(([kind, types]) => [kind, types[format]])) as Types;

export const POSTGRES_TYPES = typesOf('postgres');
export const DUCKDB_TYPES = typesOf('duckdb');
export const ICEBERG_TYPES = typesOf('iceberg');

/** The columns of a stream's table, in every sink and in this order: the source, what the service sends, what Tributary adds. */
export const streamColumns = ({ columns }: Pick<Stream, 'columns'>): Bookkeeping[] =>
  [SOURCE, ...columns, ...BOOKKEEPING.filter((column) => column !== SOURCE)].map(described);

export interface Design {
  name: string;
  doc: string;
  key: readonly [source: string, id: string];
  columns: readonly Bookkeeping[];
  /** The sort column of files. A table of events is also partitioned by its day. */
  sortedBy: string;
  isByDay: boolean;
}

export function streamDesign(stream: Stream): Design {
  const { name, doc } = stream;
  const columns = streamColumns(stream);
  return { name, doc, key: ['_source', 'event_id'], columns, sortedBy: 'timestamp', isByDay: true };
}

export function entityDesign(entity: Entity): Design {
  const { name, doc, key } = entity;
  const own = entity.columns.map((column) => ({ ...column, nullable: column.name !== key }));
  const columns = [SOURCE, ...own, ...entityBookkeeping(entity)].map(described);
  return { name, doc, key: ['_source', key], columns, sortedBy: key, isByDay: false };
}

export function described(column: Column | Bookkeeping): Bookkeeping {
  const { name, kind, nullable, doc } = column;
  return { name, kind, nullable, doc: 'deprecated' in column ? `Deprecated, use ${column.deprecated}. ${doc}` : doc };
}

/** Columns that erasure does not clear: our own, except `_extra`, which holds values of the service. */
export const KEPT: ReadonlySet<string> = new Set(
  BOOKKEEPING.map(({ name }) => name).filter((name) => name !== '_extra'),
);
