import { decodeAvro, encodeAvro, field, type Long, optional } from './avro.ts';

export interface Manifest {
  path: string;
  bytes: number;
  content: 'data' | 'deletes';
  specId: number;
  sequence: Long;
  minSequence: Long;
  snapshotId: Long;
  added: Counted;
  existing: Counted;
  deleted: Counted;
  /** The first and the last day of its files; undefined in a table without partitions. */
  days: { first: number; last: number } | undefined;
}

export interface Counted {
  files: number;
  rows: number;
}

export const liveFiles = (...manifests: readonly Manifest[]): number =>
  manifests.reduce((sum, { added, existing }) => sum + added.files + existing.files, 0);

const SCALARS = [
  ['path', field(500, 'manifest_path', 'string')],
  ['bytes', field(501, 'manifest_length', 'long')],
  ['specId', field(502, 'partition_spec_id', 'int')],
  ['sequence', field(515, 'sequence_number', 'long')],
  ['minSequence', field(516, 'min_sequence_number', 'long')],
  ['snapshotId', field(503, 'added_snapshot_id', 'long')],
] as const;

const COUNTS = ['added', 'existing', 'deleted'] as const;
const CONTENTS = ['data', 'deletes'] as const;

const SUMMARY = {
  type: 'record',
  name: 'r508',
  fields: [
    field(509, 'contains_null', 'boolean'),
    field(518, 'contains_nan', optional('boolean')),
    field(510, 'lower_bound', optional('bytes')),
    field(511, 'upper_bound', optional('bytes')),
  ],
};

const LIST_SCHEMA = {
  type: 'record',
  name: 'manifest_file',
  fields: [
    ...SCALARS.map(([, one]) => one),
    field(517, 'content', 'int'),
    ...COUNTS.map((status, i) => field(504 + i, `${status}_files_count`, 'int')),
    ...COUNTS.map((status, i) => field(512 + i, `${status}_rows_count`, 'long')),
    field(507, 'partitions', optional({ type: 'array', 'element-id': 508, items: SUMMARY })),
  ],
};

/** By the names of the specification. */
type ListRecord = Record<string, unknown> & {
  content: number;
  partitions: Array<{ lower_bound: Buffer | null; upper_bound: Buffer | null }> | null;
};

export function encodeManifestList(
  { snapshotId, parentId, sequence }: { snapshotId: Long; parentId: Long | undefined; sequence: Long },
  manifests: readonly Manifest[],
): Buffer {
  const metadata = {
    'snapshot-id': String(snapshotId),
    'parent-snapshot-id': String(parentId ?? 'null'),
    'sequence-number': String(sequence),
    'format-version': '2',
  };
  return encodeAvro(LIST_SCHEMA, metadata, manifests.map(listRecord));
}

function listRecord(manifest: Manifest): object {
  const bound = (day: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32LE(day);
    return bytes;
  };
  const { days } = manifest;
  return {
    ...Object.fromEntries(SCALARS.map(([key, { name }]) => [name, manifest[key]])),
    ...Object.fromEntries(COUNTS.map((status) => [`${status}_files_count`, manifest[status].files])),
    ...Object.fromEntries(COUNTS.map((status) => [`${status}_rows_count`, manifest[status].rows])),
    content: CONTENTS.indexOf(manifest.content),
    partitions: days
      ? [{ contains_null: false, contains_nan: false, lower_bound: bound(days.first), upper_bound: bound(days.last) }]
      : [],
  };
}

export const decodeManifestList = (bytes: Buffer): Manifest[] =>
  decodeAvro<ListRecord>(bytes).records.map((record) => {
    const { lower_bound: lower, upper_bound: upper } = record.partitions?.[0] ?? {};
    const isDays = lower?.length === 4 && upper?.length === 4;
    const countOf = (status: string): Counted => ({
      files: Number(record[`${status}_files_count`]),
      rows: Number(record[`${status}_rows_count`]),
    });
    return {
      ...Object.fromEntries(SCALARS.map(([key, { name }]) => [key, record[name]])),
      ...Object.fromEntries(COUNTS.map((status) => [status, countOf(status)])),
      content: CONTENTS[record.content] ?? 'deletes',
      days: isDays ? { first: lower.readInt32LE(), last: upper.readInt32LE() } : undefined,
    } as Manifest;
  });
