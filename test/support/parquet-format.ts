import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { parquetReadObjects } from 'hyparquet';
import { deserializeTCompactProtocol } from 'hyparquet/src/thrift.js';
import { afterAll } from 'vitest';
import type { Value } from '../../src/model/columns.ts';
import { unpackers } from '../../src/sinks/parquet/format/compression.ts';
import {
  type ByteSource,
  type Compression,
  encodeFooter,
  encodeGroup,
  type FileColumn,
  MAGIC,
  type StoredGroup,
} from '../../src/sinks/parquet/format/index.ts';

/** Files of the codec in memory, and two readers that share no code with it. */

export type Rows = ReadonlyArray<readonly Value[]>;

export async function encodeFile(
  columns: readonly FileColumn[],
  groups: readonly Rows[],
  { compression = 'zstd', metadata = {} }: { compression?: Compression; metadata?: Record<string, string> } = {},
): Promise<Buffer> {
  const encoded = await Promise.all(groups.map((rows) => encodeGroup(columns, rows, compression)));
  return Buffer.concat([MAGIC, ...encoded.map(({ bytes }) => bytes), encodeFooter(columns, encoded, metadata)]);
}

export const sourceOf = (bytes: Uint8Array): ByteSource => ({
  name: 'test.parquet',
  size: bytes.length,
  read: async (start, end) => bytes.subarray(start, end),
});

/** A source that notes how many bytes each read asked for. */
export function countingSource(bytes: Uint8Array): ByteSource & { asked: number[] } {
  const asked: number[] = [];
  const source = sourceOf(bytes);
  return {
    ...source,
    asked,
    read(start, end) {
      asked.push(end - start);
      return source.read(start, end);
    },
  };
}

/** One DuckDB for a test file. */
export async function openDuck() {
  const dir = mkdtempSync(join(tmpdir(), 'tributary-parquet-'));
  const connection: DuckDBConnection = await (await DuckDBInstance.create()).connect();
  afterAll(() => {
    connection.closeSync();
    rmSync(dir, { recursive: true, force: true });
  });
  let files = 0;
  return {
    dir,
    /** Writes the bytes where DuckDB can read them; `$file` in the query stands for the newest of them. */
    async query(bytes: Uint8Array, sql: string) {
      // A new name each time: DuckDB remembers the footers of files it has seen.
      const file = join(dir, `${files++}.parquet`);
      writeFileSync(file, bytes);
      const result = await connection.runAndReadAll(sql.replaceAll('$file', `'${file}'`));
      return result.getRowObjects() as Record<string, unknown>[];
    },
    async run(sql: string) {
      await connection.run(sql);
    },
  };
}

/** What hyparquet makes of a file by itself, except that instants and JSON come as they stand there. */
export async function readWithHyparquet(bytes: Uint8Array): Promise<Record<string, unknown>[]> {
  const toText = (raw: Uint8Array | undefined) => (raw === undefined ? raw : Buffer.from(raw).toString('utf8'));
  return parquetReadObjects({
    file: bufferOf(bytes),
    compressors: await unpackers(),
    parsers: { timestampFromMicroseconds: (micros) => micros, jsonFromBytes: toText, stringFromBytes: toText },
  });
}

/** How many pages the only column of the only group has: their headers are walked from one to the next. */
export function countPages(bytes: Uint8Array, { start, end }: StoredGroup): number {
  const reader = { view: new DataView(Uint8Array.from(bytes).buffer), offset: start };
  let pages = 0;
  for (; reader.offset < end; pages++) {
    const { field_3: length } = deserializeTCompactProtocol(reader);
    reader.offset += length as number;
  }
  return pages;
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array) => ({
  byteLength,
  slice: (start: number, end = byteLength) => buffer.slice(byteOffset + start, byteOffset + end) as ArrayBuffer,
});
