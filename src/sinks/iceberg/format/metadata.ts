import { randomUUID } from 'node:crypto';
import { parseJson, stringifyJson } from '../../../model/json.ts';
import type { Design } from '../../table-columns.ts';
import type { Long } from './avro.ts';
import { type Evolved, evolveSchema, type Present, type Schema } from './schema.ts';

/** The metadata of a table, format version 2, with the fields of the specification that we use. */
export interface Metadata {
  'format-version': number;
  'table-uuid': string;
  location: string;
  'last-sequence-number': number;
  'last-updated-ms': number;
  'last-column-id': number;
  'current-schema-id': number;
  schemas: readonly Schema[];
  'default-spec-id': number;
  'partition-specs': readonly PartitionSpec[];
  'last-partition-id': number;
  'default-sort-order-id': number;
  'sort-orders': readonly SortOrder[];
  properties: Readonly<Record<string, string>>;
  'current-snapshot-id'?: Long;
  refs: Readonly<Record<string, { 'snapshot-id': Long; type: string }>>;
  snapshots: readonly Snapshot[];
  'snapshot-log': ReadonlyArray<{ 'snapshot-id': Long; 'timestamp-ms': number }>;
  'metadata-log': ReadonlyArray<{ 'metadata-file': string; 'timestamp-ms': number }>;
}

export interface PartitionSpec {
  'spec-id': number;
  fields: ReadonlyArray<{ 'source-id': number; 'field-id': number; name: string; transform: string }>;
}

interface SortOrder {
  'order-id': number;
  fields: ReadonlyArray<{ transform: string; 'source-id': number; direction: string; 'null-order': string }>;
}

export interface Snapshot {
  'snapshot-id': Long;
  'parent-snapshot-id'?: Long;
  'sequence-number': number;
  'timestamp-ms': number;
  'manifest-list': string;
  summary: Readonly<Record<string, string>>;
  'schema-id': number;
}

/** The table property that lists the columns with JSON: Iceberg has no type for it. */
const JSON_COLUMNS = 'tributary.json-columns';

/** How many earlier versions of the metadata each version lists. Their files are kept longer, and only `maintain` removes them. */
const VERSIONS_NAMED = 20;

const FIRST_PARTITION_ID = 1000;
const SORTED = 1;

export const parseMetadata = (text: string): Metadata => parseJson(text) as Metadata;
export const metadataText = (metadata: Metadata): string => stringifyJson(metadata);

export function newMetadata(design: Design, location: string, now: number): Metadata {
  const { schema, lastColumnId, json } = evolveSchema(design, undefined);
  const { isByDay, sortedBy } = design;
  const source = { 'source-id': schema.fields.find(({ name }) => name === sortedBy)?.id ?? 0 };
  const byDay = { ...source, 'field-id': FIRST_PARTITION_ID, name: `${sortedBy}_day`, transform: 'day' };
  const byColumn = { ...source, transform: 'identity', direction: 'asc', 'null-order': 'nulls-first' };
  return {
    'format-version': 2,
    'table-uuid': randomUUID(),
    location,
    'last-sequence-number': 0,
    'last-updated-ms': now,
    'last-column-id': lastColumnId,
    'current-schema-id': 0,
    schemas: [schema],
    'default-spec-id': 0,
    'partition-specs': [{ 'spec-id': 0, fields: isByDay ? [byDay] : [] }],
    'last-partition-id': isByDay ? FIRST_PARTITION_ID : FIRST_PARTITION_ID - 1,
    'default-sort-order-id': SORTED,
    'sort-orders': [{ 'order-id': SORTED, fields: [byColumn] }],
    properties: {
      comment: design.doc,
      'write.format.default': 'parquet',
      'write.metadata.delete-after-commit.enabled': 'false',
      'write.metadata.previous-versions-max': String(VERSIONS_NAMED),
      [JSON_COLUMNS]: [...json].join(),
    },
    refs: {},
    snapshots: [],
    'snapshot-log': [],
    'metadata-log': [],
  };
}

export function presentColumns(metadata: Metadata): Present {
  const schema = metadata.schemas.find((one) => one['schema-id'] === metadata['current-schema-id']);
  if (!schema) throw new RangeError(`it has no schema ${metadata['current-schema-id']}`);
  const json = metadata.properties[JSON_COLUMNS] ?? '';
  return {
    schema,
    lastColumnId: metadata['last-column-id'],
    json: new Set(json === '' ? [] : json.split(',')),
    former: new Map(metadata.schemas.flatMap(({ fields }) => fields.map((field) => [field.name, field]))),
  };
}

/** Adds a schema and makes it current. Earlier schemas stay, because older snapshots are read with them. */
export function withColumns(metadata: Metadata, { schema, lastColumnId, json }: Evolved): Metadata {
  const id = Math.max(...metadata.schemas.map((one) => one['schema-id'])) + 1;
  return {
    ...metadata,
    'last-column-id': lastColumnId,
    'current-schema-id': id,
    schemas: [...metadata.schemas, { ...schema, 'schema-id': id }],
    properties: { ...metadata.properties, [JSON_COLUMNS]: [...json].join() },
  };
}

export function withSnapshot(metadata: Metadata, snapshot: Snapshot): Metadata {
  const { 'snapshot-id': id, 'timestamp-ms': at } = snapshot;
  return {
    ...metadata,
    'last-sequence-number': snapshot['sequence-number'],
    'current-snapshot-id': id,
    refs: { ...metadata.refs, main: { 'snapshot-id': id, type: 'branch' } },
    snapshots: [...metadata.snapshots, snapshot],
    'snapshot-log': [...metadata['snapshot-log'], { 'snapshot-id': id, 'timestamp-ms': at }],
  };
}

/** Removes expired snapshots, except those that any branch or tag refers to. */
export function withoutSnapshots(metadata: Metadata, isExpired: (snapshot: Snapshot) => boolean): Metadata {
  const named = new Set(Object.values(metadata.refs).map((ref) => String(ref['snapshot-id'])));
  const snapshots = metadata.snapshots.filter(
    (snapshot) => named.has(String(snapshot['snapshot-id'])) || !isExpired(snapshot),
  );
  const kept = new Set(snapshots.map((snapshot) => String(snapshot['snapshot-id'])));
  // The log starts after the last removed snapshot: an entry before a gap would name a time that readers cannot travel to.
  const gap = metadata['snapshot-log'].findLastIndex((entry) => !kept.has(String(entry['snapshot-id'])));
  return { ...metadata, snapshots, 'snapshot-log': metadata['snapshot-log'].slice(gap + 1) };
}

export function nextVersion(metadata: Metadata, before: string): Metadata {
  const log = [
    ...metadata['metadata-log'],
    { 'metadata-file': before, 'timestamp-ms': metadata['last-updated-ms'] },
  ].slice(-VERSIONS_NAMED);
  return {
    ...metadata,
    'last-updated-ms': Math.max(Date.now(), metadata['last-updated-ms'] + 1),
    'metadata-log': log,
  };
}

export const currentSnapshot = (metadata: Metadata): Snapshot | undefined =>
  metadata.snapshots.find(({ 'snapshot-id': id }) => String(id) === String(metadata['current-snapshot-id']));

/** Positive, and exact where JSON numbers are read as doubles. */
export const newSnapshotId = (): number => Number(BigInt(`0x${randomUUID().replaceAll('-', '').slice(0, 13)}`)) + 1;
