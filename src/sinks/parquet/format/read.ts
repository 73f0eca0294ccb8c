import type { Kind, Value } from '../../../model/columns.ts';
import { Fault, RetryLater } from '../../../model/errors.ts';
import type { Compression } from './compression.ts';
import { parseMetadata, readValues } from './decode.ts';
import { PUT, plainBytes } from './encodings.ts';
import { CREATED_BY, POSITIONS, positionsText } from './footer.ts';
import {
  type Bound,
  type ByteSource,
  type Chunk,
  exactName,
  type FileColumn,
  type Leaf,
  type LeafType,
  leavesOf,
  MAGIC,
  type ParquetFile,
  type Range,
  restoreInstant,
  restoreInteger,
  type StoredGroup,
} from './types.ts';

type Metadata = ReturnType<typeof parseMetadata>;
type Element = Metadata['schema'][number];

export interface ReadableFile extends ParquetFile {
  /** As parsed by hyparquet, with the row groups in the same order. */
  footer: Metadata;
}

/** Large enough for the footer of most files, so that one request suffices. */
const TAIL_BYTES = 128 * 1024;
/** The footer's length, four bytes, and MAGIC. */
const ENDING = 8;

/** Reads a file's footer. Throws if the file is damaged or foreign: neither may be merged or replaced. */
export async function readFooter(source: ByteSource): Promise<ReadableFile> {
  const footer = await readEnding(source);
  try {
    return readMetadata(source, parseMetadata(footer), source.size - footer.length);
  } catch (error) {
    if (error instanceof Fault) throw error;
    // Recovery: the error tells how to get the file's rows back.
    throw torn(source, 'its footer cannot be read', error);
  }
}

function readMetadata(source: ByteSource, metadata: Metadata, footerAt: number): ReadableFile {
  if (!metadata.created_by?.startsWith(WRITER)) throw foreign(source, `it says ${metadata.created_by ?? 'nothing'}`);
  const columns = readColumns(source, metadata);
  const groups = metadata.row_groups.map((group) => readStoredGroup(source, columns, metadata, group));
  const pairs = metadata.key_value_metadata?.map(({ key, value }) => [key, value ?? '']) ?? [];
  const { [POSITIONS]: positions, ...entries }: Record<string, string> = Object.fromEntries(pairs);
  if (positions !== positionsText(groups, footerAt)) throw torn(source, 'bytes are missing in it, or too many');
  checkPositions(source, groups, footerAt);
  const rows = groups.reduce((sum, group) => sum + group.rows, 0);
  if (rows !== Number(metadata.num_rows)) throw torn(source, 'its groups do not add up to its rows');
  return { footerAt, columns, rows, metadata: entries, groups, footer: metadata };
}

export type AnyFile = Awaited<ReturnType<typeof readAny>>;

/** Opens a Parquet file of any writer, without our checks of its footer. */
export async function readAny(source: ByteSource) {
  const footer = parseMetadata(await readEnding(source));
  return {
    writer: footer.created_by ?? 'a writer without a name',
    names: new Set(footer.schema.slice(1).map(({ name }) => name)),
    groups: footer.row_groups.map((group) => Number(group.num_rows)),
    /** Values of these columns, converted to their kinds; a column that the file lacks is null. */
    read: (group: number, columns: readonly FileColumn[]) =>
      readValues(footer, group, columns, (start, end) => source.read(start, end)),
  };
}

const WRITER = CREATED_BY.replace(/\d+$/, '');

async function readEnding(source: ByteSource): Promise<Uint8Array> {
  const { size } = source;
  if (size < MAGIC.length + ENDING) throw torn(source, `it has ${size} bytes`);
  const [head, tail] = await Promise.all([
    source.read(0, MAGIC.length),
    source.read(Math.max(0, size - TAIL_BYTES), size),
  ]);
  if (!isMagic(head) || !isMagic(tail.subarray(-MAGIC.length)))
    throw torn(source, 'it lacks the magic bytes at its start or end');
  const length = new DataView(tail.buffer, tail.byteOffset + tail.length - ENDING).getUint32(0, true) + ENDING;
  if (length > size - MAGIC.length) throw torn(source, 'its footer would be longer than the file');
  return length <= tail.length ? tail.subarray(-length) : source.read(size - length, size);
}

const isMagic = (bytes: Uint8Array): boolean => Buffer.compare(bytes, MAGIC) === 0;

/** Row groups lie between MAGIC and the footer, in any order and with gaps, but must not overlap. */
function checkPositions(source: ByteSource, groups: readonly StoredGroup[], footerAt: number): void {
  let at = MAGIC.length;
  for (const { start, end } of [...groups].sort((a, b) => a.start - b.start)) {
    if (start < at) throw torn(source, 'its groups overlap');
    at = end;
  }
  if (at > footerAt) throw torn(source, 'its groups reach into its footer');
}

/** The footer's columns in our own types: the inverse of `footer.ts`. */
function readColumns(source: ByteSource, metadata: Metadata): FileColumn[] {
  const columns = metadata.schema
    .slice(1)
    .filter((element, i, all) => !isExactPart(element, all[i - 1]))
    .map((element): FileColumn => {
      const { name } = element;
      const kind = kindOf(element);
      if (kind === undefined) throw foreign(source, `column ${name} is of a type that no column here has`);
      return { name, kind, nullable: element.repetition_type === 'OPTIONAL' };
    });
  if (leavesOf(columns).length !== metadata.schema.length - 1)
    throw foreign(source, 'its columns do not belong together');
  return columns;
}

const isExactPart = ({ name }: Element, before: Element | undefined): boolean =>
  before?.type === 'DOUBLE' && name === exactName(before.name);

function kindOf({ type, converted_type: meaning }: Element): Kind | undefined {
  if (type === 'BOOLEAN') return 'boolean';
  if (type === 'DOUBLE') return 'number';
  if (type === 'INT64') return meaning === 'TIMESTAMP_MICROS' ? 'timestamp' : 'integer';
  if (type !== 'BYTE_ARRAY') return undefined;
  return meaning === 'UTF8' ? 'text' : meaning === 'JSON' ? 'json' : undefined;
}

type GroupEntry = Metadata['row_groups'][number];
type ChunkEntry = NonNullable<GroupEntry['columns'][number]['meta_data']>;

function readStoredGroup(source: ByteSource, columns: readonly FileColumn[], { schema }: Metadata, group: GroupEntry) {
  const start = Number(group.file_offset);
  const rows = Number(group.num_rows);
  const leaves = leavesOf(columns);
  const entries = group.columns.map(({ meta_data: entry }) => entry as ChunkEntry);
  const isWhole =
    entries.length === leaves.length &&
    leaves.every(({ name }, i) => {
      const { path_in_schema: path, num_values: values, type } = entries[i] as ChunkEntry;
      return path[0] === name && Number(values) === rows && type === schema[i + 1]?.type;
    });
  if (!isWhole) throw torn(source, 'a group has other columns or rows than it should');
  const chunks = entries.map((entry) => readChunk(entry, start));
  let length = 0;
  for (const chunk of chunks) {
    if (chunk.at !== length) throw torn(source, 'the columns of a group do not follow one another');
    length += chunk.length;
  }
  return { rows, length, chunks, start, end: start + length, ranges: rangesOf(leaves, entries) };
}

function readChunk(entry: ChunkEntry, start: number): Chunk {
  const dataAt = Number(entry.data_page_offset) - start;
  const dictionaryAt =
    entry.dictionary_page_offset === undefined ? undefined : Number(entry.dictionary_page_offset) - start;
  const { statistics } = entry;
  return {
    at: dictionaryAt ?? dataAt,
    length: Number(entry.total_compressed_size),
    unpacked: Number(entry.total_uncompressed_size),
    dictionaryAt,
    dataAt,
    compression: entry.codec.toLowerCase() as Compression,
    values: Number(entry.num_values),
    nulls: Number(statistics?.null_count ?? 0),
    min: boundOf(statistics?.min_value, statistics?.is_min_value_exact),
    max: boundOf(statistics?.max_value, statistics?.is_max_value_exact),
  };
}

function boundOf(value: unknown, isExact = true): Bound | undefined {
  if (value instanceof Uint8Array) return { bytes: value, isExact };
  if (typeof value === 'number') return { bytes: plainBytes(PUT.double, value), isExact };
  return typeof value === 'bigint' ? { bytes: plainBytes(PUT.integer, value), isExact } : undefined;
}

function rangesOf(leaves: readonly Leaf[], entries: readonly ChunkEntry[]): Map<string, Range> {
  const ranges = new Map<string, Range>();
  leaves.forEach(({ name, type }, i) => {
    const { min_value: min, max_value: max } = entries[i]?.statistics ?? {};
    // The bounds of doubles are not exact bounds of the numbers: see `storeLeaf`.
    if (min === undefined || max === undefined || type === 'double') return;
    ranges.set(name, { min: restoreEnd(type, min), max: restoreEnd(type, max) });
  });
  return ranges;
}

function restoreEnd(type: LeafType, value: unknown): Value {
  if (typeof value === 'bigint') return type === 'timestamp' ? restoreInstant(value) : restoreInteger(value);
  return Buffer.from(value as Uint8Array).toString('utf8');
}

/** A damaged or foreign file, which we do not replace, because that could lose its rows. Once it is gone, the next run succeeds. */
export class UnreadableFile extends RetryLater {}

function torn({ name }: ByteSource, why: string, cause?: unknown): UnreadableFile {
  return new UnreadableFile(`${name} is not a complete Parquet file: ${why}`, {
    kept: 'the file as it is',
    next: 'move it away and run again, or run verify --repair: what it held is read again',
    ...(cause !== undefined && { cause }),
  });
}

function foreign({ name }: ByteSource, why: string): UnreadableFile {
  return new UnreadableFile(`${name} was not written by Tributary: ${why}`, {
    kept: 'the file as it is',
    next: 'move it out of the lake and run again, or run verify --repair, which removes it',
  });
}

/** From this many columns on, the row group is read in one request: in a bucket every column would be a request of its own. */
const MANY = 4;

/** Reads the rows of a row group, with all columns of the file or the named ones in that order. */
export async function readGroup(source: ByteSource, file: ReadableFile, group: StoredGroup, names?: readonly string[]) {
  const kinds = new Map(file.columns.map(({ name, kind }) => [name, kind]));
  const wanted = (names ?? [...kinds.keys()]).map((name) => {
    const kind = kinds.get(name);
    if (kind === undefined) throw new Error(`${source.name} has no column ${name}`);
    return { name, kind };
  });
  const isWhole = !names || names.length >= MANY;
  const whole = isWhole ? await source.read(group.start, group.end) : undefined;
  let failure: unknown;
  const read = async (start: number, end: number): Promise<Uint8Array> => {
    if (whole) return whole.subarray(start - group.start, end - group.start);
    try {
      return await source.read(start, end);
    } catch (error) {
      // Recovery: the caller's. A read error must not be reported as a damaged file.
      failure = error;
      throw error;
    }
  };
  try {
    return await readValues(file.footer, file.groups.indexOf(group), wanted, read);
  } catch (error) {
    if (error === failure) throw error;
    // Recovery: the error tells how to get the file's rows back.
    throw torn(source, `a group of ${group.rows} rows at byte ${group.start} cannot be read`, error);
  }
}
