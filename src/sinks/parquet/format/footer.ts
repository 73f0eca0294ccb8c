import { Bytes, writeThrift } from './bytes.ts';
import type { Compression } from './compression.ts';
import { ENCODING } from './group.ts';
import { type Chunk, type EncodedGroup, type FileColumn, type Leaf, type LeafType, leavesOf, MAGIC } from './types.ts';

/** The writer of the file. Readers use it to work around known bugs; we use it to recognize foreign files, which we do not replace. */
export const CREATED_BY = 'tributary version 1';

const CODEC: Readonly<Record<Compression, number>> = { snappy: 1, gzip: 2, zstd: 6 };

const VERSION = 1;
/** Bounds follow the order of the column's type; without this, readers do not trust the bounds of text. */
const TYPE_ORDER = { field_1: {} };

/** The metadata entry that repeats the offsets of row groups and footer, to detect a truncated or altered file. */
export const POSITIONS = 'tributary.places';

export const positionsText = (groups: ReadonlyArray<{ start: number; end: number }>, footerAt: number): string =>
  [...groups.map(({ start, end }) => `${start}-${end}`), footerAt].join();

interface Positions {
  /** The groups, none of them empty. */
  starts: readonly number[];
  footerAt: number;
}

/** Encodes the footer, its length and MAGIC. Without `positions` the row groups follow one another. */
export function encodeFooter(
  columns: readonly FileColumn[],
  groups: readonly EncodedGroup[],
  metadata: Readonly<Record<string, string>>,
  positions?: Positions,
): Uint8Array {
  const leaves = leavesOf(columns);
  const filled = groups.filter(({ rows }) => rows > 0);
  const { starts, footerAt } = positions ?? oneAfterAnother(filled);
  const placed = filled.map((group, i) => groupEntry(leaves, group, starts[i] as number));
  const ranges = filled.map(({ length }, i) => ({ start: starts[i] as number, end: (starts[i] as number) + length }));
  const entries = Object.entries({ ...metadata, [POSITIONS]: positionsText(ranges, footerAt) });
  const out = new Bytes();
  writeThrift(out, {
    field_1: VERSION,
    field_2: [{ field_4: 'root', field_5: leaves.length }, ...leaves.map(schemaEntry)],
    field_3: BigInt(groups.reduce((sum, { rows }) => sum + rows, 0)),
    field_4: placed,
    field_5: entries.map(([key, value]) => ({ field_1: key, field_2: value })),
    field_6: CREATED_BY,
    field_7: leaves.map(() => TYPE_ORDER),
  });
  out.appendInt32(out.offset);
  out.appendBytes(MAGIC);
  return out.getBytes();
}

function oneAfterAnother(groups: readonly EncodedGroup[]): Positions {
  let footerAt = MAGIC.length;
  const starts = groups.map(({ length }) => {
    footerAt += length;
    return footerAt - length;
  });
  return { starts, footerAt };
}

function groupEntry(leaves: readonly Leaf[], { chunks, rows, length }: EncodedGroup, start: number) {
  if (chunks.length !== leaves.length)
    throw new Error(`a row group of ${chunks.length} columns does not fit a file of ${leaves.length}`);
  return {
    field_1: leaves.map((leaf, i) => chunkEntry(leaf, chunks[i] as Chunk, start)),
    field_2: BigInt(chunks.reduce((sum, { unpacked }) => sum + unpacked, 0)),
    field_3: BigInt(rows),
    field_5: BigInt(start),
    field_6: BigInt(length),
  };
}

function chunkEntry({ name, type }: Leaf, chunk: Chunk, start: number) {
  const { dictionaryAt, min, max } = chunk;
  const { plain, runs, dictionary } = ENCODING;
  const meta = {
    field_1: PHYSICAL[type],
    field_2: [plain, runs, ...(dictionaryAt === undefined ? [] : [dictionary])],
    field_3: [name],
    field_4: CODEC[chunk.compression],
    field_5: BigInt(chunk.values),
    field_6: BigInt(chunk.unpacked),
    field_7: BigInt(chunk.length),
    field_9: BigInt(start + chunk.dataAt),
    field_11: dictionaryAt === undefined ? undefined : BigInt(start + dictionaryAt),
    field_12: {
      field_3: BigInt(chunk.nulls),
      field_5: max?.bytes,
      field_6: min?.bytes,
      field_7: max?.isExact,
      field_8: min?.isExact,
    },
  };
  return { field_2: BigInt(start + chunk.at), field_3: meta };
}

const [BOOLEAN, INT64, DOUBLE, BYTE_ARRAY] = [0, 2, 5, 6] as const;

const PHYSICAL: Readonly<Record<LeafType, number>> = {
  text: BYTE_ARRAY,
  json: BYTE_ARRAY,
  integer: INT64,
  timestamp: INT64,
  double: DOUBLE,
  boolean: BOOLEAN,
};

const [REQUIRED, OPTIONAL] = [0, 1] as const;

/** The logical type, written in both forms: many readers only know the older one. Integers, doubles and booleans need none. */
const MEANING: Partial<Record<LeafType, { converted: number; logical: object }>> = {
  text: { converted: 0, logical: { field_1: {} } },
  json: { converted: 19, logical: { field_12: {} } },
  // In UTC, and in microseconds.
  timestamp: { converted: 10, logical: { field_8: { field_1: true, field_2: { field_2: {} } } } },
};

function schemaEntry({ name, type, nullable, fieldId }: Leaf) {
  // Iceberg has no type for JSON.
  const meaning = MEANING[type === 'json' && fieldId !== undefined ? 'text' : type];
  return {
    field_1: PHYSICAL[type],
    field_3: nullable ? OPTIONAL : REQUIRED,
    field_4: name,
    field_6: meaning?.converted,
    field_9: fieldId,
    field_10: meaning?.logical,
  };
}

/** Whether the file's row groups can be copied into a file with these columns: names, kinds and order have to be the same. */
export function fitsSchema(file: { columns: readonly FileColumn[] }, columns: readonly FileColumn[]): boolean {
  const there = leavesOf(file.columns);
  const wanted = leavesOf(columns);
  return (
    there.length === wanted.length &&
    there.every(({ name, type, nullable }, i) => {
      const leaf = wanted[i];
      return name === leaf?.name && type === leaf.type && nullable === leaf.nullable;
    })
  );
}
