import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { parquetReadObjects } from 'hyparquet';
import type { Kind, Value } from '../../src/model/columns.ts';
import { parseJson } from '../../src/model/json.ts';
import { BOOKKEEPING, type Stream, type StreamName } from '../../src/model/streams.ts';
import { unpackers } from '../../src/sinks/parquet/format/compression.ts';
import { exactName } from '../../src/sinks/parquet/format/types.ts';
import type { StoredRow } from './sink-harness.ts';

/** A lake as read by two independent readers, with a simple glob. */

let duckdb: Promise<DuckDBInstance> | undefined;

export async function queryDuckdb(sql: string): Promise<Array<Record<string, unknown>>> {
  duckdb ??= DuckDBInstance.create(':memory:', { threads: '1' });
  const connection = await (await duckdb).connect();
  try {
    return (await connection.runAndReadAll(sql)).getRowObjects();
  } finally {
    connection.closeSync();
  }
}

export const globOf = (folder: string, stream: StreamName): string =>
  `read_parquet('${folder}/${stream}/**/*.parquet', union_by_name = true, hive_partitioning = true)`;

/** Relative paths of all files below a folder. */
export async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

const columnsOf = (stream: Stream) => [...stream.columns, ...BOOKKEEPING];

/** The Parquet files of a stream. */
const parquetIn = async (folder: string, stream: Stream): Promise<string[]> =>
  (await filesIn(folder)).filter((file) => file.startsWith(`${stream.name}/`) && file.endsWith('.parquet'));

export async function readWithDuckdb(folder: string, stream: Stream): Promise<StoredRow[]> {
  return (await parquetIn(folder, stream)).length === 0 ? [] : readRelation(globOf(folder, stream.name), stream);
}

/** Reads a DuckDB relation with the columns of the stream. */
export async function readRelation(from: string, stream: Stream): Promise<StoredRow[]> {
  const there = new Set((await queryDuckdb(`describe select * from ${from}`)).map((row) => row.column_name));
  const list = columnsOf(stream).map(({ name, kind }) => {
    const quoted = `"${name}"`;
    const digits = there.has(exactName(name)) ? `"${exactName(name)}"` : 'null';
    return `${there.has(name) ? FROM_DUCKDB[kind](quoted, digits) : 'null'} as ${quoted}`;
  });
  const rows = await queryDuckdb(`select ${list.join(', ')} from ${from}`);
  const text = columnsOf(stream).filter(({ kind }) => kind === 'text');
  for (const row of rows) for (const { name } of text) row[name] = (row[name] as string | null)?.slice(1);
  return rows.map((row) => restored(stream, row));
}

const FROM_DUCKDB: Readonly<Record<Kind, (column: string, digits: string) => string>> = {
  // DuckDB's JavaScript client drops a byte order mark at the start of a text, but not after a letter.
  text: (column) => `'=' || ${column}`,
  integer: (column) => column,
  number: (column, digits) => `coalesce(${digits}, ${column}::varchar)`,
  boolean: (column) => column,
  timestamp: (column) => `epoch_us(${column})`,
  json: (column) => `${column}::varchar`,
};

/** A file as hyparquet reads it, but with raw instants and JSON. */
export async function readWithHyparquet(bytes: Uint8Array): Promise<Record<string, unknown>[]> {
  const text = (raw: Uint8Array | undefined) => raw && Buffer.from(raw).toString('utf8');
  const { buffer, byteOffset, byteLength } = bytes;
  return parquetReadObjects({
    file: {
      byteLength,
      slice: (start, end = byteLength) => buffer.slice(byteOffset + start, byteOffset + end) as ArrayBuffer,
    },
    compressors: await unpackers(),
    parsers: { timestampFromMicroseconds: (micros) => micros, jsonFromBytes: text, stringFromBytes: text },
  });
}

export async function readLakeWithHyparquet(folder: string, stream: Stream): Promise<StoredRow[]> {
  const files = await Promise.all((await parquetIn(folder, stream)).map((name) => readFile(join(folder, name))));
  const rows = await Promise.all(files.map(readWithHyparquet));
  return rows.flat().map((row) => restored(stream, row));
}

/** The form in which rows are compared. */
function restored(stream: Stream, row: Record<string, unknown>): StoredRow {
  return Object.fromEntries(
    columnsOf(stream).map(({ name, kind }) => {
      const value = row[exactName(name)] ?? row[name];
      return [name, value === null || value === undefined ? null : RESTORE[kind](value)];
    }),
  );
}

const RESTORE: Readonly<Record<Kind, (value: unknown) => Value>> = {
  text: (value) => value as string,
  integer: (value) => exact(BigInt(value as bigint)),
  number: (value) => (/^-?\d+$/.test(String(value)) ? exact(BigInt(value as string)) : Number(value)),
  boolean: (value) => value as boolean,
  timestamp: (value) => instant(BigInt(value as bigint)),
  json: (value) => parseJson(String(value)) as Value,
};

const exact = (value: bigint): Value => (Number.isSafeInteger(Number(value)) ? Number(value) : value);

/** Microseconds as an instant; milliseconds where a double is too small. */
const instant = (micros: bigint): number => {
  const ms = micros / 1000n - (micros % 1000n < 0n ? 1n : 0n);
  const rest = micros - ms * 1000n;
  return rest === 0n ? Number(ms) : Number(micros) / 1000;
};
