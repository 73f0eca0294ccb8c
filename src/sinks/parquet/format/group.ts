import { setImmediate as pause } from 'node:timers/promises';
import type { Value } from '../../../model/coerce.ts';
import { Bytes } from './bytes.ts';
import { writeChunk } from './chunk.ts';
import { packer } from './compression.ts';
import type { Chunk, Compression, EncodedGroup, FileColumn } from './types.ts';

/** Leases are renewed and requests are answered between columns. */
const LONGEST_BREATH_MS = 25;

/** Rows, each with a value for every column, as a row group. No rows are no group: its bytes are none, and the footer leaves it out. */
export async function encodeGroup(
  columns: readonly FileColumn[],
  rows: ReadonlyArray<readonly Value[]>,
  compression: Compression,
): Promise<EncodedGroup> {
  if (rows.length === 0) return { rows: 0, length: 0, chunks: [], bytes: new Uint8Array() };
  const pack = await packer(compression);
  const out = new Bytes();
  const chunks: Chunk[] = [];
  let began = performance.now();
  for (const [at, column] of columns.entries()) {
    chunks.push(writeChunk(out, column, at, rows, { compression, pack }));
    if (performance.now() - began < LONGEST_BREATH_MS) continue;
    await pause();
    began = performance.now();
  }
  return { rows: rows.length, length: out.length, chunks, bytes: out.view() };
}
