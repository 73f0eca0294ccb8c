import { decodeAvro, encodeAvro, field, type Long, optional } from './avro.ts';

/** A manifest, as the manifest list of a snapshot describes it. */
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

const LIST_SCHEMA = {
  type: 'record',
  name: 'manifest_file',
  fields: [
    field(500, 'manifest_path', 'string'),
    field(501, 'manifest_length', 'long'),
    field(502, 'partition_spec_id', 'int'),
    field(517, 'content', 'int'),
    field(515, 'sequence_number', 'long'),
    field(516, 'min_sequence_number', 'long'),
    field(503, 'added_snapshot_id', 'long'),
    field(504, 'added_files_count', 'int'),
    field(505, 'existing_files_count', 'int'),
    field(506, 'deleted_files_count', 'int'),
    field(512, 'added_rows_count', 'long'),
    field(513, 'existing_rows_count', 'long'),
    field(514, 'deleted_rows_count', 'long'),
    field(
      507,
      'partitions',
      optional({
        type: 'array',
        'element-id': 508,
        items: {
          type: 'record',
          name: 'r508',
          fields: [
            field(509, 'contains_null', 'boolean'),
            field(518, 'contains_nan', optional('boolean')),
            field(510, 'lower_bound', optional('bytes')),
            field(511, 'upper_bound', optional('bytes')),
          ],
        },
      }),
    ),
  ],
};

interface ListRecord {
  manifest_path: string;
  manifest_length: number;
  partition_spec_id: number;
  content: number;
  sequence_number: Long;
  min_sequence_number: Long;
  added_snapshot_id: Long;
  added_files_count: number;
  existing_files_count: number;
  deleted_files_count: number;
  added_rows_count: number;
  existing_rows_count: number;
  deleted_rows_count: number;
  partitions: Array<{ lower_bound: Buffer | null; upper_bound: Buffer | null }> | null;
}

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

function listRecord({ days, ...manifest }: Manifest): object {
  const bound = (day: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32LE(day);
    return bytes;
  };
  return {
    manifest_path: manifest.path,
    manifest_length: manifest.bytes,
    partition_spec_id: manifest.specId,
    content: manifest.content === 'data' ? 0 : 1,
    sequence_number: manifest.sequence,
    min_sequence_number: manifest.minSequence,
    added_snapshot_id: manifest.snapshotId,
    added_files_count: manifest.added.files,
    existing_files_count: manifest.existing.files,
    deleted_files_count: manifest.deleted.files,
    added_rows_count: manifest.added.rows,
    existing_rows_count: manifest.existing.rows,
    deleted_rows_count: manifest.deleted.rows,
    partitions: days
      ? [{ contains_null: false, contains_nan: false, lower_bound: bound(days.first), upper_bound: bound(days.last) }]
      : [],
  };
}

export const decodeManifestList = (bytes: Buffer): Manifest[] =>
  decodeAvro<ListRecord>(bytes).records.map((record) => {
    const [days] = record.partitions ?? [];
    return {
      path: record.manifest_path,
      bytes: record.manifest_length,
      content: record.content === 0 ? 'data' : 'deletes',
      specId: record.partition_spec_id,
      sequence: record.sequence_number,
      minSequence: record.min_sequence_number,
      snapshotId: record.added_snapshot_id,
      added: { files: record.added_files_count, rows: Number(record.added_rows_count) },
      existing: { files: record.existing_files_count, rows: Number(record.existing_rows_count) },
      deleted: { files: record.deleted_files_count, rows: Number(record.deleted_rows_count) },
      days:
        days?.lower_bound?.length === 4 && days.upper_bound?.length === 4
          ? { first: days.lower_bound.readInt32LE(), last: days.upper_bound.readInt32LE() }
          : undefined,
    };
  });
