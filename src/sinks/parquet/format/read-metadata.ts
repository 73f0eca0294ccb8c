import type { Value } from '../../../model/coerce.ts';
import type { Kind } from '../../../model/columns.ts';
import type { Element, Metadata } from './hyparquet.ts';
import { exactName, type Leaf, type LeafType, leavesOf } from './leaves.ts';
import { PUT, plainBytes } from './plain.ts';
import { restoreInstant, restoreInteger } from './stored.ts';
import { foreign, torn } from './torn.ts';
import type { Bound, ByteSource, Chunk, Compression, FileColumn, Range, StoredGroup } from './types.ts';

/** The footer of a file in our words: what `footer.ts` writes, read back. */
export function readColumns(source: ByteSource, metadata: Metadata): FileColumn[] {
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

export const readEntries = ({ key_value_metadata: entries = [] }: Metadata): Record<string, string> =>
  Object.fromEntries(entries.map(({ key, value }) => [key, value ?? '']));

type GroupEntry = Metadata['row_groups'][number];
type ChunkEntry = NonNullable<GroupEntry['columns'][number]['meta_data']>;

export function readStoredGroup(source: ByteSource, columns: readonly FileColumn[], group: GroupEntry): StoredGroup {
  const start = Number(group.file_offset);
  const rows = Number(group.num_rows);
  const leaves = leavesOf(columns);
  const entries = group.columns.map(({ meta_data: entry }) => entry as ChunkEntry);
  const isWhole =
    entries.length === leaves.length &&
    leaves.every(({ name }, i) => entries[i]?.path_in_schema[0] === name && Number(entries[i]?.num_values) === rows);
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
    // The bounds of doubles are not those of the numbers: see `leaves.ts`.
    if (min === undefined || max === undefined || type === 'double') return;
    ranges.set(name, { min: restoreEnd(type, min), max: restoreEnd(type, max) });
  });
  return ranges;
}

function restoreEnd(type: LeafType, value: unknown): Value {
  if (typeof value === 'bigint') return type === 'timestamp' ? restoreInstant(value) : restoreInteger(value);
  return Buffer.from(value as Uint8Array).toString('utf8');
}
