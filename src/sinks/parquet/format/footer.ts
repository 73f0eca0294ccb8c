import { Bytes } from './bytes.ts';
import { ENCODING } from './chunk.ts';
import { type Leaf, leavesOf } from './leaves.ts';
import { encodeSchema, PHYSICAL } from './schema.ts';
import { binary, bool, encodeThrift, i32, i64, list, struct, type Thrift, text } from './thrift.ts';
import { type Chunk, type Compression, type FileColumn, MAGIC, type PlacedGroup } from './types.ts';

/** Who wrote the file. Readers look here for bugs of known writers; we look here for files that are not ours to replace. */
export const CREATED_BY = 'tributary version 1';

/** Parquet's numbers for the compressions. */
const CODEC: Readonly<Record<Compression, number>> = { snappy: 1, gzip: 2, zstd: 6 };

const VERSION = 1;
/** The bounds follow the order of the column's type; without this, readers do not trust those of text. */
const TYPE_ORDER = struct({ 1: struct({}) });

/** The entry of the metadata that says a second time where groups and footer are: what was moved or cut is noticed. */
export const PLACES = 'tributary.places';

export const placesText = (groups: ReadonlyArray<{ start: number; end: number }>, footerAt: number): string =>
  [...groups.map(({ start, end }) => `${start}-${end}`), footerAt].join();

export interface Places {
  /** Of each group; none of them is empty. */
  starts: readonly number[];
  footerAt: number;
}

/**
 * The end of a file: all that is known of the groups, its length, and MAGIC again. They stand one after the
 * other behind MAGIC, unless `places` says where each of them is.
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
