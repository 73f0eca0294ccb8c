import { decodeAvro, encodeAvro, field, type Long, optional } from './avro.ts';
import type { Manifest } from './manifest-list.ts';
import type { PartitionSpec, Schema } from './metadata.ts';

/** A data file, as a manifest describes it. Bounds are in Iceberg's binary form, by field id. */
export interface DataFile {
  path: string;
  /** Days from 1970; undefined in a table without partitions. */
  day: number | undefined;
  rows: number;
  bytes: number;
  columns: ReadonlyMap<number, ColumnMetrics>;
  splitOffsets: readonly number[];
  sortOrderId: number | undefined;
}

export interface ColumnMetrics {
  bytes: number;
  values: number;
  nulls: number;
  lower: Buffer | undefined;
  upper: Buffer | undefined;
}

/** A file of the table, with the snapshot that added it. */
export interface Entry {
  status: 'existing' | 'added' | 'deleted';
  snapshotId: Long;
  /** Undefined for files that are being added: they inherit the number when the catalog commits. */
  sequence: Long | undefined;
  fileSequence: Long | undefined;
  file: DataFile;
}

const mapOf = (key: number, value: number, type: string) =>
  optional({
    type: 'array',
    logicalType: 'map',
    items: {
      type: 'record',
      name: `k${key}_v${value}`,
      fields: [field(key, 'key', 'int'), field(value, 'value', type)],
    },
  });

const entrySchema = ({ fields }: PartitionSpec) => ({
  type: 'record',
  name: 'manifest_entry',
  fields: [
    field(0, 'status', 'int'),
    field(1, 'snapshot_id', optional('long')),
    field(3, 'sequence_number', optional('long')),
    field(4, 'file_sequence_number', optional('long')),
    field(2, 'data_file', {
      type: 'record',
      name: 'r2',
      fields: [
        field(134, 'content', 'int'),
        field(100, 'file_path', 'string'),
        field(101, 'file_format', 'string'),
        field(102, 'partition', {
          type: 'record',
          name: 'r102',
          fields: fields.map((part) =>
            field(part['field-id'], part.name, optional({ type: 'int', logicalType: 'date' })),
          ),
        }),
        field(103, 'record_count', 'long'),
        field(104, 'file_size_in_bytes', 'long'),
        field(108, 'column_sizes', mapOf(117, 118, 'long')),
        field(109, 'value_counts', mapOf(119, 120, 'long')),
        field(110, 'null_value_counts', mapOf(121, 122, 'long')),
        field(125, 'lower_bounds', mapOf(126, 127, 'bytes')),
        field(128, 'upper_bounds', mapOf(129, 130, 'bytes')),
        field(132, 'split_offsets', optional({ type: 'array', items: 'long', 'element-id': 133 })),
        field(140, 'sort_order_id', optional('int')),
      ],
    }),
  ],
});

type Pairs<T> = Array<{ key: number; value: T }> | null;

interface EntryRecord {
  status: number;
  snapshot_id: Long | null;
  sequence_number: Long | null;
  file_sequence_number?: Long | null;
  data_file: {
    content?: number;
    file_path: string;
    file_format: string;
    partition: Record<string, number | null>;
    record_count: number;
    file_size_in_bytes: number;
    column_sizes: Pairs<number>;
    value_counts: Pairs<number>;
    null_value_counts: Pairs<number>;
    lower_bounds: Pairs<Buffer>;
    upper_bounds: Pairs<Buffer>;
    split_offsets: number[] | null;
    sort_order_id: number | null;
  };
}

const STATUS = ['existing', 'added', 'deleted'] as const;

export function encodeManifest(schema: Schema, spec: PartitionSpec, entries: readonly Entry[]): Buffer {
  const metadata = {
    schema: JSON.stringify(schema),
    'schema-id': String(schema['schema-id']),
    'partition-spec': JSON.stringify(spec.fields),
    'partition-spec-id': String(spec['spec-id']),
    'format-version': '2',
    content: 'data',
  };
  return encodeAvro(
    entrySchema(spec),
    metadata,
    entries.map((entry) => entryRecord(spec, entry)),
  );
}

function entryRecord(spec: PartitionSpec, { status, file, ...entry }: Entry): EntryRecord {
  const columns = [...file.columns].sort(([a], [b]) => a - b);
  const pairs = <T>(pick: (metrics: ColumnMetrics) => T | undefined): Pairs<T> => {
    const found = columns.flatMap(([key, metrics]) => {
      const value = pick(metrics);
      return value === undefined ? [] : [{ key, value }];
    });
    return found.length === 0 ? null : found;
  };
  return {
    status: STATUS.indexOf(status),
    snapshot_id: entry.snapshotId,
    sequence_number: entry.sequence ?? null,
    file_sequence_number: entry.fileSequence ?? null,
    data_file: {
      content: 0,
      file_path: file.path,
      file_format: 'PARQUET',
      partition: Object.fromEntries(spec.fields.map(({ name }) => [name, file.day ?? null])),
      record_count: file.rows,
      file_size_in_bytes: file.bytes,
      column_sizes: pairs(({ bytes }) => bytes),
      value_counts: pairs(({ values }) => values),
      null_value_counts: pairs(({ nulls }) => nulls),
      lower_bounds: pairs(({ lower }) => lower),
      upper_bounds: pairs(({ upper }) => upper),
      split_offsets: file.splitOffsets.length === 0 ? null : [...file.splitOffsets],
      sort_order_id: file.sortOrderId ?? null,
    },
  };
}

/** The files of a manifest, with the values they inherit from it. */
export function decodeManifest(bytes: Buffer, spec: PartitionSpec, from: Manifest): Entry[] {
  return decodeAvro<EntryRecord>(bytes).records.map((record) => {
    const { data_file: file } = record;
    return {
      status: STATUS[record.status] ?? 'deleted',
      snapshotId: record.snapshot_id ?? from.snapshotId,
      sequence: record.sequence_number ?? from.sequence,
      fileSequence: record.file_sequence_number ?? from.sequence,
      file: {
        path: file.file_path,
        day: file.partition[spec.fields[0]?.name ?? ''] ?? undefined,
        rows: file.record_count,
        bytes: file.file_size_in_bytes,
        columns: columnsOf(file),
        splitOffsets: file.split_offsets ?? [],
        sortOrderId: file.sort_order_id ?? undefined,
      },
    };
  });
}

function columnsOf(file: EntryRecord['data_file']): Map<number, ColumnMetrics> {
  const of = <T>(pairs: Pairs<T>): Map<number, T> => new Map(pairs?.map(({ key, value }) => [key, value]));
  const [sizes, nulls] = [of(file.column_sizes), of(file.null_value_counts)];
  const [lower, upper] = [of(file.lower_bounds), of(file.upper_bounds)];
  return new Map(
    [...of(file.value_counts)].map(([id, values]) => [
      id,
      { bytes: sizes.get(id) ?? 0, values, nulls: nulls.get(id) ?? 0, lower: lower.get(id), upper: upper.get(id) },
    ]),
  );
}
