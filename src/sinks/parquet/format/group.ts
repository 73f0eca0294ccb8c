import type { Value } from '../../../model/coerce.ts';
import { createBreath } from './breath.ts';
import { Bytes } from './bytes.ts';
import { writeChunk } from './chunk.ts';
import { packer } from './compression.ts';
import { leavesOf } from './leaves.ts';
import type { Chunk, Compression, EncodedGroup, FileColumn } from './types.ts';

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
  const breathe = createBreath();
  for (const leaf of leavesOf(columns)) {
    chunks.push(writeChunk(out, leaf, rows, { compression, pack }));
    await breathe();
  }
  return { rows: rows.length, length: out.length, chunks, bytes: out.view() };
}
