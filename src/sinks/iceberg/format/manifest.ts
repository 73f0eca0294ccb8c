import { decodeAvro, encodeAvro, field, type Long, optional } from './avro.ts';
import type { Manifest } from './manifest-list.ts';
import type { PartitionSpec } from './metadata.ts';
import type { Schema } from './schema.ts';

/** A data file, as a manifest describes it. Column metrics are by field id, with bounds in Iceberg's binary form. */
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

export interface Entry {
  status: 'existing' | 'added' | 'deleted';
  snapshotId: Long;
  /** Undefined for files being added: they inherit the sequence number of the commit. */
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

/** The column metrics of a file: our name (`of`), Iceberg's name, its field id and that of the map's keys. */
const METRICS = [
  { of: 'bytes', id: 108, name: 'column_sizes', key: 117, type: 'long' },
  { of: 'values', id: 109, name: 'value_counts', key: 119, type: 'long' },
  { of: 'nulls', id: 110, name: 'null_value_counts', key: 121, type: 'long' },
  { of: 'lower', id: 125, name: 'lower_bounds', key: 126, type: 'bytes' },
  { of: 'upper', id: 128, name: 'upper_bounds', key: 129, type: 'bytes' },
] as const;

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
        ...METRICS.map(({ id, name, key, type }) => field(id, name, mapOf(key, key + 1, type))),
        field(132, 'split_offsets', optional({ type: 'array', items: 'long', 'element-id': 133 })),
        field(140, 'sort_order_id', optional('int')),
      ],
    }),
  ],
});

type Pairs = Array<{ key: number; value: ColumnMetrics[keyof ColumnMetrics] }> | null;

interface EntryRecord {
  status: number;
  snapshot_id: Long | null;
  sequence_number: Long | null;
  file_sequence_number?: Long | null;
  data_file: Record<(typeof METRICS)[number]['name'], Pairs> & {
    content?: number;
    file_path: string;
    file_format: string;
    partition: Record<string, number | null>;
    record_count: number;
    file_size_in_bytes: number;
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
  const pairs = METRICS.map(({ of, name }) => {
    const found = columns.flatMap(([key, { [of]: value }]) => (value === undefined ? [] : [{ key, value }]));
    return [name, found.length === 0 ? null : found] as const;
  });
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
      ...(Object.fromEntries(pairs) as Record<(typeof METRICS)[number]['name'], Pairs>),
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
  const none = { bytes: 0, nulls: 0, lower: undefined, upper: undefined };
  const columns = new Map(file.value_counts?.map(({ key, value }) => [key, { ...none, values: Number(value) }]));
  for (const { of, name } of METRICS)
    for (const { key, value } of file[name] ?? []) Object.assign(columns.get(key) ?? {}, { [of]: value });
  return columns;
}
