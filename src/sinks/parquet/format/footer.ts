import type { Compression } from './compression.ts';
import { ENCODING } from './group.ts';
import { Bytes, binary, bool, encodeThrift, i32, i64, list, struct, type Thrift, text } from './thrift.ts';
import { type Chunk, type FileColumn, type Leaf, type LeafType, leavesOf, MAGIC, type PlacedGroup } from './types.ts';

/** The writer of the file. Readers use it for known bugs; we use it to recognize files that are not ours to replace. */
export const CREATED_BY = 'tributary version 1';

/** Parquet's codes for the compressions. */
const CODEC: Readonly<Record<Compression, number>> = { snappy: 1, gzip: 2, zstd: 6 };

const VERSION = 1;
/** Bounds follow the order of the column's type; without this, readers do not trust the bounds of text. */
const TYPE_ORDER = struct({ 1: struct({}) });

/** The metadata entry that repeats the positions of groups and footer, so that a truncated or altered file is detected. */
export const PLACES = 'tributary.places';

export const placesText = (groups: ReadonlyArray<{ start: number; end: number }>, footerAt: number): string =>
  [...groups.map(({ start, end }) => `${start}-${end}`), footerAt].join();

interface Places {
  /** The groups, none of them empty. */
  starts: readonly number[];
  footerAt: number;
}

/**
 * The end of a file: the description of the groups, its length, and MAGIC again. Groups are stored one after the
 * other after MAGIC, unless `places` gives their positions.
 */
export function encodeFooter(
  columns: readonly FileColumn[],
  groups: readonly PlacedGroup[],
  metadata: Readonly<Record<string, string>>,
  places?: Places,
): Uint8Array {
  const leaves = leavesOf(columns);
  const filled = groups.filter(({ rows }) => rows > 0);
  const { starts, footerAt } = places ?? oneAfterAnother(filled);
  const placed = filled.map((group, i) => encodeGroupEntry(leaves, group, starts[i] as number));
  const ranges = filled.map(({ length }, i) => ({ start: starts[i] as number, end: (starts[i] as number) + length }));
  const entries = Object.entries({ ...metadata, [PLACES]: placesText(ranges, footerAt) });
  const footer = encodeThrift(
    struct({
      1: i32(VERSION),
      2: encodeSchema(columns),
      3: i64(groups.reduce((sum, { rows }) => sum + rows, 0)),
      4: list(placed),
      5: list(entries.map(([key, value]) => struct({ 1: text(key), 2: text(value) }))),
      6: text(CREATED_BY),
      7: list(leaves.map(() => TYPE_ORDER)),
    }),
  );
  const out = new Bytes();
  out.append(footer);
  out.int32(footer.length);
  out.append(MAGIC);
  return out.view();
}

function oneAfterAnother(groups: readonly PlacedGroup[]): Places {
  let footerAt = MAGIC.length;
  const starts = groups.map(({ length }) => {
    footerAt += length;
    return footerAt - length;
  });
  return { starts, footerAt };
}

function encodeGroupEntry(leaves: readonly Leaf[], group: PlacedGroup, start: number): Thrift {
  if (group.chunks.length !== leaves.length) {
    throw new Error(`a group of ${group.chunks.length} columns cannot stand in a file of ${leaves.length}`);
  }
  return struct({
    1: list(leaves.map((leaf, i) => encodeChunkEntry(leaf, group.chunks[i] as Chunk, start))),
    2: i64(group.chunks.reduce((sum, { unpacked }) => sum + unpacked, 0)),
    3: i64(group.rows),
    5: i64(start),
    6: i64(group.length),
  });
}

function encodeChunkEntry({ name, type }: Leaf, chunk: Chunk, start: number): Thrift {
  const { dictionaryAt, min, max } = chunk;
  const encodings = [ENCODING.plain, ENCODING.runs, ...(dictionaryAt === undefined ? [] : [ENCODING.dictionary])];
  const meta = struct({
    1: i32(PHYSICAL[type]),
    2: list(encodings.map(i32)),
    3: list([text(name)]),
    4: i32(CODEC[chunk.compression]),
    5: i64(chunk.values),
    6: i64(chunk.unpacked),
    7: i64(chunk.length),
    9: i64(start + chunk.dataAt),
    11: dictionaryAt === undefined ? undefined : i64(start + dictionaryAt),
    12: struct({
      3: i64(chunk.nulls),
      5: max && binary(max.bytes),
      6: min && binary(min.bytes),
      7: max && bool(max.isExact),
      8: min && bool(min.isExact),
    }),
  });
  return struct({ 2: i64(start + chunk.at), 3: meta });
}

const BOOLEAN = 0;
const INT64 = 2;
const DOUBLE = 5;
const BYTE_ARRAY = 6;

/** Parquet's codes for its physical types. */
const PHYSICAL: Readonly<Record<LeafType, number>> = {
  text: BYTE_ARRAY,
  json: BYTE_ARRAY,
  integer: INT64,
  timestamp: INT64,
  double: DOUBLE,
  boolean: BOOLEAN,
};

const REQUIRED = 0;
const OPTIONAL = 1;

const NOTHING = struct({});

/** The logical type, written twice: many readers only know the older form. Integers, doubles and booleans need none. */
const MEANING: Partial<Record<LeafType, { converted: number; logical: Thrift }>> = {
  text: { converted: 0, logical: struct({ 1: NOTHING }) },
  json: { converted: 19, logical: struct({ 12: NOTHING }) },
  // In UTC, and in microseconds.
  timestamp: { converted: 10, logical: struct({ 8: struct({ 1: bool(true), 2: struct({ 2: NOTHING }) }) }) },
};

/** The leaves as Parquet's schema, below a root. */
function encodeSchema(columns: readonly FileColumn[]): Thrift {
  const leaves = leavesOf(columns);
  return list([struct({ 4: text('root'), 5: i32(leaves.length) }), ...leaves.map(encodeLeaf)]);
}

function encodeLeaf({ name, type, nullable, fieldId }: Leaf): Thrift {
  // Iceberg has no type for JSON.
  const meaning = MEANING[type === 'json' && fieldId !== undefined ? 'text' : type];
  return struct({
    1: i32(PHYSICAL[type]),
    3: i32(nullable ? OPTIONAL : REQUIRED),
    4: text(name),
    6: meaning && i32(meaning.converted),
    9: fieldId === undefined ? undefined : i32(fieldId),
    10: meaning?.logical,
  });
}

/**
 * Whether groups of one file can be copied into a file with these columns. With another column, another kind, or even another order
 * they cannot: then their rows must be read and rewritten.
 */
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
