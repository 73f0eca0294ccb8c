import { Bytes } from './bytes.ts';
import { ENCODING } from './chunk.ts';
import { encodeSchema, TYPE } from './schema.ts';
import { PHYSICAL } from './stored.ts';
import { binary, bool, encodeThrift, i32, i64, list, struct, type Thrift, text } from './thrift.ts';
import { type Chunk, type Compression, type FileColumn, MAGIC, type PlacedGroup } from './types.ts';

/** Who wrote the file. Readers look here for bugs of known writers; we look here for files that are not ours to replace. */
export const CREATED_BY = 'tributary version 1';

/** Columns of numbers are text to everybody else; this entry of the metadata names them. */
export const NUMBERS = 'tributary.numbers';

/** Parquet's numbers for the compressions. */
export const CODEC: Readonly<Record<Compression, number>> = { snappy: 1, gzip: 2, zstd: 6 };

const VERSION = 1;
/** The bounds follow the order of the column's type; without this, readers do not trust those of text. */
const TYPE_ORDER = struct({ 1: struct({}) });

/** The end of a file: all that is known of the groups, in the order in which they stand behind MAGIC, its length, and MAGIC again. */
export function encodeFooter(
  columns: readonly FileColumn[],
  groups: readonly PlacedGroup[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const numbers = columns.filter(({ kind }) => kind === 'number').map(({ name }) => name);
  const entries = Object.entries({ ...metadata, ...(numbers.length > 0 && { [NUMBERS]: JSON.stringify(numbers) }) });
  let start = MAGIC.length;
  const placed = groups
    .filter(({ rows }) => rows > 0)
    .map((group) => {
      const encoded = encodeGroupEntry(columns, group, start);
      start += group.length;
      return encoded;
    });
  const footer = encodeThrift(
    struct({
      1: i32(VERSION),
      2: encodeSchema(columns),
      3: i64(groups.reduce((sum, { rows }) => sum + rows, 0)),
      4: list(placed),
      5: entries.length > 0 ? list(entries.map(([key, value]) => struct({ 1: text(key), 2: text(value) }))) : undefined,
      6: text(CREATED_BY),
      7: list(columns.map(() => TYPE_ORDER)),
    }),
  );
  const out = new Bytes();
  out.append(footer);
  out.int32(footer.length);
  out.append(MAGIC);
  return out.view();
}

function encodeGroupEntry(columns: readonly FileColumn[], group: PlacedGroup, start: number): Thrift {
  if (group.chunks.length !== columns.length) {
    throw new Error(`a group of ${group.chunks.length} columns cannot stand in a file of ${columns.length}`);
  }
  return struct({
    1: list(columns.map((column, i) => encodeChunkEntry(column, group.chunks[i] as Chunk, start))),
    2: i64(group.chunks.reduce((sum, { unpacked }) => sum + unpacked, 0)),
    3: i64(group.rows),
    5: i64(start),
    6: i64(group.length),
  });
}

function encodeChunkEntry({ name, kind }: FileColumn, chunk: Chunk, start: number): Thrift {
  const { dictionaryAt, min, max } = chunk;
  const encodings = [ENCODING.plain, ENCODING.runs, ...(dictionaryAt === undefined ? [] : [ENCODING.dictionary])];
  const meta = struct({
    1: i32(TYPE[PHYSICAL[kind]]),
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
