import type { Column } from '../model/columns.ts';
import {
  BOOKKEEPING,
  type Bookkeeping,
  type Entity,
  entityBookkeeping,
  SOURCE,
  type Stream,
} from '../model/streams.ts';

/** The columns of a table, in every sink and in this order: the source of the row, what the service sends, what Tributary adds. */
export const streamColumns = ({ columns }: Pick<Stream, 'columns'>): Bookkeeping[] =>
  [SOURCE, ...columns, ...BOOKKEEPING.filter((column) => column !== SOURCE)].map(described);

export const entityColumns = (entity: Entity): Bookkeeping[] =>
  [
    SOURCE,
    ...entity.columns.map((column) => ({ ...column, nullable: column.name !== entity.key })),
    ...entityBookkeeping(entity),
  ].map(described);

/** What every table says of a column. */
export function described(column: Column | Bookkeeping): Bookkeeping {
  const { name, kind, nullable, doc } = column;
  return { name, kind, nullable, doc: 'deprecated' in column ? `Deprecated, use ${column.deprecated}. ${doc}` : doc };
}

/** Columns that stay when an event is emptied: our own, except `_extra`, which holds values of the service. */
export const KEPT: ReadonlySet<string> = new Set(
  BOOKKEEPING.map(({ name }) => name).filter((name) => name !== '_extra'),
);
