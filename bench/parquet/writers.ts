import { open, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import {
  BIGINT,
  BOOLEAN,
  DOUBLE,
  type DuckDBConnection,
  DuckDBDataChunk,
  DuckDBInstance,
  DuckDBTimestampTZValue,
  type DuckDBType,
  type DuckDBValue,
  TIMESTAMPTZ,
  VARCHAR,
} from '@duckdb/node-api';
import { type ColumnSource, parquetWriteBuffer } from 'hyparquet-writer';
import type { Kind, Value } from '../../src/model/columns.ts';
import { packer } from '../../src/sinks/parquet/format/compression.ts';
import {
  type Compression,
  type EncodedGroup,
  encodeFooter,
  encodeGroup,
  type FileColumn,
  MAGIC,
} from '../../src/sinks/parquet/format/index.ts';
import type { Table } from './rows.ts';

/** Writes the same flattened rows into a file, with groups of the same size. */
export type Write = (table: Table, path: string) => Promise<void>;

export const GROUP_ROWS = 20_000;

const ours =
  (compression: Compression): Write =>
  async ({ columns, rows }, path) => {
    const file = await open(path, 'w');
    const groups: EncodedGroup[] = [];
    await file.write(MAGIC);
    for (let at = 0; at < rows.length; at += GROUP_ROWS) {
      const { bytes, ...group } = await encodeGroup(columns, rows.slice(at, at + GROUP_ROWS), compression);
      groups.push(group);
      await file.write(bytes);
    }
    await file.write(encodeFooter(columns, groups, {}));
    await file.close();
  };

const micros = (value: Value): bigint => BigInt(Math.round((value as number) * 1000));

const DUCK_TYPES: Readonly<Record<Kind, DuckDBType>> = {
  text: VARCHAR,
  integer: BIGINT,
  number: DOUBLE,
  boolean: BOOLEAN,
  timestamp: TIMESTAMPTZ,
  json: VARCHAR,
};

function duckValue(kind: Kind, value: Value): DuckDBValue {
  if (value === null) return null;
  if (kind === 'timestamp') return new DuckDBTimestampTZValue(micros(value));
  if (kind === 'integer') return BigInt(value as number | bigint);
  return value as DuckDBValue;
}

let duck: Promise<DuckDBConnection> | undefined;

/** Fills a table in memory, then copies it to a file, as a program with DuckDB would. */
const duckDB =
  (fill: (connection: DuckDBConnection, table: Table) => Promise<void>): Write =>
  async (table, path) => {
    duck ??= DuckDBInstance.create().then((instance) => instance.connect());
    const connection = await duck;
    const types = table.columns.map(({ name, kind }) => `"${name}" ${DUCK_TYPES[kind]}`);
    await connection.run(`create or replace table t (${types.join(', ')})`);
    await fill(connection, table);
    await connection.run(`copy t to '${path}' (format parquet, compression zstd, row_group_size ${GROUP_ROWS})`);
    await connection.run('drop table t');
  };

const byAppender = duckDB(async (connection, { columns, rows }) => {
  const appender = await connection.createAppender('t');
  for (const row of rows) {
    columns.forEach(({ kind }, i) => {
      const value = row[i] ?? null;
      if (value === null) appender.appendNull();
      else if (kind === 'timestamp') appender.appendTimestampTZ(new DuckDBTimestampTZValue(micros(value)));
      else if (kind === 'integer') appender.appendBigInt(BigInt(value as number | bigint));
      else if (kind === 'boolean') appender.appendBoolean(value as boolean);
      else if (kind === 'number') appender.appendDouble(Number(value));
      else appender.appendVarchar(value as string);
    });
    appender.endRow();
  }
  appender.closeSync();
});

const CHUNK_ROWS = 2048;

const byChunks = duckDB(async (connection, { columns, rows }) => {
  const appender = await connection.createAppender('t');
  const types = columns.map(({ kind }) => DUCK_TYPES[kind]);
  for (let at = 0; at < rows.length; at += CHUNK_ROWS) {
    const part = rows.slice(at, at + CHUNK_ROWS);
    const chunk = DuckDBDataChunk.create(types, part.length);
    chunk.setColumns(columns.map(({ kind }, i) => part.map((row) => duckValue(kind, row[i] ?? null))));
    appender.appendDataChunk(chunk);
  }
  appender.closeSync();
});

const hyparquetWriter: Write = async ({ columns, rows }, path) => {
  const pack = await packer('zstd');
  const columnData = columns.map(({ name, kind, nullable }, i): ColumnSource => {
    const data = rows.map((row) => {
      const value = row[i] ?? null;
      if (value === null) return null;
      if (kind === 'timestamp') return micros(value);
      return kind === 'integer' ? BigInt(value as number | bigint) : value;
    });
    return { name, data, type: HYPARQUET_TYPES[kind], nullable };
  });
  const bytes = parquetWriteBuffer({
    columnData,
    codec: 'ZSTD',
    compressors: { ZSTD: pack },
    rowGroupSize: GROUP_ROWS,
  });
  await writeFile(path, new Uint8Array(bytes));
};

const HYPARQUET_TYPES = {
  text: 'STRING',
  integer: 'INT64',
  number: 'DOUBLE',
  boolean: 'BOOLEAN',
  timestamp: 'INT64',
  json: 'STRING',
} as const satisfies Readonly<Record<Kind, string>>;

/** The package has no types. */
interface ParquetJs {
  ParquetSchema: new (fields: Record<string, object>) => object;
  ParquetWriter: { openFile(schema: object, path: string, options: object): Promise<ParquetJsWriter> };
}

interface ParquetJsWriter {
  appendRow(row: Record<string, unknown>): Promise<void>;
  close(): Promise<void>;
}

const PARQUETJS_TYPES: Readonly<Record<Kind, string>> = {
  text: 'UTF8',
  integer: 'INT64',
  number: 'DOUBLE',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP_MICROS',
  // Its own JSON type turns an empty list into null.
  json: 'UTF8',
};

const parquetJs: Write = async ({ columns, rows }, path) => {
  const { ParquetSchema, ParquetWriter } = createRequire(import.meta.url)('parquetjs-lite') as ParquetJs;
  const field = ({ kind, nullable }: FileColumn) => ({
    type: PARQUETJS_TYPES[kind],
    optional: nullable,
    compression: 'SNAPPY',
  });
  const schema = new ParquetSchema(Object.fromEntries(columns.map((column) => [column.name, field(column)])));
  const writer = await ParquetWriter.openFile(schema, path, { rowGroupSize: GROUP_ROWS });
  for (const row of rows) {
    const record: Record<string, unknown> = {};
    columns.forEach(({ name, kind }, i) => {
      const value = row[i] ?? null;
      if (value !== null) record[name] = parquetJsValue(kind, value);
    });
    await writer.appendRow(record);
  }
  await writer.close();
};

/** It expects microseconds for instants, and converts integers itself. */
const parquetJsValue = (kind: Kind, value: Value): Value => (kind === 'timestamp' ? Number(micros(value)) : value);

export const WRITERS: Readonly<Record<string, Write>> = {
  'ours, zstd': ours('zstd'),
  'ours, snappy': ours('snappy'),
  'ours, gzip': ours('gzip'),
  'DuckDB appender → COPY, zstd': byAppender,
  'DuckDB data chunks → COPY, zstd': byChunks,
  'hyparquet-writer, zstd': hyparquetWriter,
  'parquetjs-lite, snappy': parquetJs,
};
