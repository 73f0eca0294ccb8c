import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deserializeTCompactProtocol } from 'hyparquet/src/thrift.js';
import { afterAll } from 'vitest';
import type { Value } from '../../src/model/columns.ts';
import {
  type ByteSource,
  type Compression,
  encodeFooter,
  encodeGroup,
  type FileColumn,
  MAGIC,
  type StoredGroup,
} from '../../src/sinks/parquet/format/index.ts';
import { queryDuckdb } from '../support/lake-readers.ts';

/** Files of the codec in memory, and an independent reader. */

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

/** A source that records the size of each read. */
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

/** A folder of the test file, and DuckDB queries of its files. */
export function openDuck() {
  const dir = mkdtempSync(join(tmpdir(), 'tributary-parquet-'));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  let files = 0;
  return {
    dir,
    /** Writes the bytes to a file; `$file` in the query is its path. */
    query(bytes: Uint8Array, sql: string) {
      // A new name each time: DuckDB caches footers by name.
      const file = join(dir, `${files++}.parquet`);
      writeFileSync(file, bytes);
      return queryDuckdb(sql.replaceAll('$file', `'${file}'`));
    },
  };
}

/** The number of pages in the only column of the only group, by walking their headers. */
export function countPages(bytes: Uint8Array, { start, end }: StoredGroup): number {
  const reader = { view: new DataView(Uint8Array.from(bytes).buffer), offset: start };
  let pages = 0;
  for (; reader.offset < end; pages++) {
    const { field_3: length } = deserializeTCompactProtocol(reader);
    reader.offset += length as number;
  }
  return pages;
}
