import { setImmediate as pause } from 'node:timers/promises';
import type { Value } from '../../../model/columns.ts';
import { Bytes, writePlain, writeRuns, writeThrift } from './bytes.ts';
import { type Compression, type Pack, packer } from './compression.ts';
import { bitsFor, boundsOf, type Dictionary, findDictionary, PUT } from './encodings.ts';
import {
  type Chunk,
  type EncodedGroup,
  type FileColumn,
  type Leaf,
  leavesOf,
  type Stored,
  type StoredLeaf,
  storeLeaf,
} from './types.ts';

/** Encodes rows, each with a value for every column, as a row group. A row group without rows is empty and omitted from the footer. */
export async function encodeGroup(
  columns: readonly FileColumn[],
  rows: ReadonlyArray<readonly Value[]>,
  compression: Compression,
): Promise<EncodedGroup & { bytes: Uint8Array }> {
  if (rows.length === 0) return { rows: 0, length: 0, chunks: [], bytes: new Uint8Array() };
  const pack = await packer(compression);
  const out = new Bytes();
  const chunks: Chunk[] = [];
  const yieldNow = createYield();
  for (const leaf of leavesOf(columns)) {
    chunks.push(writeChunk(out, leaf, rows, { compression, pack }));
    await yieldNow();
  }
  return { rows: rows.length, length: out.offset, chunks, bytes: out.getBytes() };
}

export const ENCODING = { plain: 0, runs: 3, dictionary: 8 } as const;

const DATA_PAGE = 0;
const DICTIONARY_PAGE = 2;

/** Readers decompress whole pages: long values are split into several pages to keep the readers' memory small. */
const PAGE_BYTES = 1024 * 1024;

/** Appends the column chunk of a leaf to `out` and returns its description. */
function writeChunk(
  out: Bytes,
  leaf: Leaf,
  rows: ReadonlyArray<readonly Value[]>,
  { compression, pack }: { compression: Compression; pack: Pack },
): Chunk {
  const stored = storeLeaf(leaf, rows);
  const start = out.offset;
  let unpacked = 0;
  const page = (body: Uint8Array, type: number, fields: object): void => {
    const packed = pack(body);
    const at = out.offset;
    writeThrift(out, { field_1: type, field_2: body.length, field_3: packed.length, ...fields });
    unpacked += out.offset - at + body.length;
    out.appendBytes(packed);
  };
  const { plain, runs } = ENCODING;
  const dataPage = (body: Uint8Array, values: number, encoding: number): void =>
    page(body, DATA_PAGE, { field_5: { field_1: values, field_2: encoding, field_3: runs, field_4: runs } });

  const dictionary = leaf.type === 'boolean' ? undefined : findDictionary(stored.values);
  let dataAt = start;
  if (dictionary) {
    const { entries } = dictionary;
    page(encodeEntries(leaf, dictionary), DICTIONARY_PAGE, { field_7: { field_1: entries.length, field_2: plain } });
    dataAt = out.offset;
    dataPage(encodeIndexes(leaf, stored, dictionary), rows.length, ENCODING.dictionary);
  } else {
    for (const { body, values } of plainPages(leaf, stored)) dataPage(body, values, plain);
  }
  const bounds = boundsOf(leaf.type, dictionary?.entries ?? stored.values);
  return {
    at: start,
    length: out.offset - start,
    unpacked,
    dictionaryAt: dictionary ? start : undefined,
    dataAt,
    compression,
    values: rows.length,
    nulls: rows.length - stored.values.length,
    min: bounds?.min,
    max: bounds?.max,
  };
}

function encodeEntries({ type }: Leaf, { entries }: Dictionary): Uint8Array {
  const out = new Bytes();
  if (type !== 'boolean') for (const entry of entries) PUT[type](out, entry);
  return out.getBytes();
}

function encodeIndexes(leaf: Leaf, { levels }: StoredLeaf, { entries, indexes }: Dictionary): Uint8Array {
  const out = new Bytes();
  const width = bitsFor(entries.length);
  putLevels(out, leaf, levels);
  out.appendUint8(width);
  writeRuns(out, indexes, width);
  return out.getBytes();
}

function* plainPages(leaf: Leaf, { levels, values }: StoredLeaf): Generator<{ body: Uint8Array; values: number }> {
  let row = 0;
  let next = 0;
  while (row < levels.length) {
    const first = row;
    const plain = new Bytes();
    if (leaf.type === 'boolean') {
      writePlain(plain, values, 'BOOLEAN', undefined);
      row = levels.length;
    } else {
      for (; row < levels.length && plain.offset < PAGE_BYTES; row++) {
        if (levels[row] === 1) PUT[leaf.type](plain, values[next++] as Stored);
      }
    }
    const out = new Bytes();
    putLevels(out, leaf, levels.subarray(first, row));
    out.appendBytes(plain.getBytes());
    yield { body: out.getBytes(), values: row - first };
  }
}

/** Writes the definition levels, which a column without nulls does not have. */
function putLevels(out: Bytes, { nullable }: Leaf, levels: Uint8Array): void {
  if (!nullable) return;
  const runs = new Bytes();
  out.appendInt32(writeRuns(runs, levels, 1));
  out.appendBytes(runs.getBytes());
}

const LONGEST_MS = 25;

/** Call it between columns: it yields to other work, such as renewing leases, if the last time was a while ago. */
export function createYield(): () => Promise<void> {
  let began = performance.now();
  return async () => {
    if (performance.now() - began < LONGEST_MS) return;
    await pause();
    began = performance.now();
  };
}
