import { quoteIdent } from '../../cursor/sql.ts';
import type { Kind } from '../../model/columns.ts';
import type { Stream, StreamName } from '../../model/streams.ts';
import type { Table } from './table.ts';
import { POSTGRES_TYPES } from './types.ts';

/**
 * A partitioned table can keep a key unique only together with the column it is partitioned by: one event with two times would be
 * two rows. So the keys of all partitions stand in a table of their own, with the time that leads to the row, and every row
 * goes through it.
 */
export const keysName = (stream: StreamName): string => `_${stream}_keys`;

const COLUMNS = [
  { name: '_source', kind: 'text', doc: 'Source, as named in the config.' },
  { name: 'event_id', kind: 'text', doc: 'Id of the event.' },
  { name: 'timestamp', kind: 'timestamp', doc: 'Its time, which says in which partition it is.' },
] as const satisfies ReadonlyArray<{ name: string; kind: Kind; doc: string }>;

export const KEY_KINDS: readonly Kind[] = COLUMNS.map(({ kind }) => kind);

export const keysTable = ({ name }: Stream): Table => ({
  name: keysName(name),
  doc: `The keys of ${name} over all its partitions.`,
  key: ['_source', 'event_id'],
  columns: COLUMNS.map(({ name, kind, doc }) => ({ name, type: POSTGRES_TYPES[kind], nullable: false, comment: doc })),
  indexes: [],
});

export const keysPlace = (schema: string, stream: Stream): string =>
  `${quoteIdent(schema)}.${quoteIdent(keysName(stream.name))}`;

export const copyIntoKeys = (schema: string, stream: Stream): string =>
  `copy ${keysPlace(schema, stream)} (${COLUMNS.map(({ name }) => quoteIdent(name)).join(', ')}) from stdin (format binary)`;
