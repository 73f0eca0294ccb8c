import type { Value } from '../../../model/coerce.ts';
import type { Kind } from '../../../model/columns.ts';
import { NUMBERS } from './footer.ts';
import type { Element, Metadata } from './hyparquet.ts';
import { PUT, plainBytes } from './plain.ts';
import { restoreInstant, restoreInteger } from './stored.ts';
import { foreign, torn } from './torn.ts';
import type { Bound, ByteSource, Chunk, Compression, FileColumn, Range, StoredGroup } from './types.ts';

/** The footer of a file in our words: what `footer.ts` writes, read back. */
export function readColumns(source: ByteSource, metadata: Metadata): FileColumn[] {
  const numbers = new Set<string>(JSON.parse(entryOf(metadata, NUMBERS) ?? '[]'));
  return metadata.schema.slice(1).map((element) => {
    const kind = numbers.has(element.name) ? 'number' : kindOf(element);
    if (kind === undefined) throw foreign(source, `column ${element.name} has a type that no column here has`);
    return { name: element.name, kind, nullable: element.repetition_type === 'OPTIONAL' };
  });
}

function kindOf({ type, converted_type: meaning }: Element): Kind | undefined {
  if (type === 'BOOLEAN') return 'boolean';
  if (type === 'INT64') return meaning === 'TIMESTAMP_MICROS' ? 'timestamp' : 'integer';
  if (type !== 'BYTE_ARRAY') return undefined;
  return meaning === 'UTF8' ? 'text' : meaning === 'JSON' ? 'json' : undefined;
}

const entryOf = ({ key_value_metadata: entries }: Metadata, name: string): string | undefined =>
  entries?.find(({ key }) => key === name)?.value;

/** What the writer wanted to have remembered; our own note is none of it. */
export function readEntries({ key_value_metadata: entries = [] }: Metadata): Record<string, string> {
  return Object.fromEntries(entries.filter(({ key }) => key !== NUMBERS).map(({ key, value }) => [key, value ?? '']));
}

type GroupEntry = Metadata['row_groups'][number];
type ChunkEntry = NonNullable<GroupEntry['columns'][number]['meta_data']>;
type Statistics = NonNullable<ChunkEntry['statistics']>;

export function readStoredGroup(source: ByteSource, columns: readonly FileColumn[], group: GroupEntry): StoredGroup {
  const start = Number(group.file_offset);
  const length = Number(group.total_compressed_size);
  const entries = group.columns.map(({ meta_data: entry }) => entry);
  const rows = Number(group.num_rows);
  const isWhole =
    entries.length === columns.length &&
    columns.every(({ name }, i) => entries[i]?.path_in_schema[0] === name && Number(entries[i]?.num_values) === rows);
  if (!isWhole) throw torn(source, 'a group has other columns or rows than it should');
  const chunks = entries.map((entry) => readChunk(entry as ChunkEntry, start));
  let at = 0;
  for (const chunk of chunks) {
    if (chunk.at !== at) throw torn(source, 'the columns of a group do not follow one another');
    at += chunk.length;
  }
  if (at !== length) throw torn(source, 'the columns of a group do not add up to its length');
  return { rows, length, chunks, start, end: start + length, ranges: rangesOf(columns, entries as ChunkEntry[]) };
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

function boundOf(value: Statistics['min_value'], isExact = true): Bound | undefined {
  if (value instanceof Uint8Array) return { bytes: value, isExact };
  return typeof value === 'bigint' ? { bytes: plainBytes(PUT.integer, value), isExact } : undefined;
}

function rangesOf(columns: readonly FileColumn[], entries: readonly ChunkEntry[]): Map<string, Range> {
  const ranges = new Map<string, Range>();
  columns.forEach(({ name, kind }, i) => {
    const { min_value: min, max_value: max } = entries[i]?.statistics ?? {};
    if (min !== undefined && max !== undefined)
      ranges.set(name, { min: restoreEnd(kind, min), max: restoreEnd(kind, max) });
  });
  return ranges;
}

function restoreEnd(kind: Kind, value: unknown): Value {
  if (typeof value === 'bigint') return kind === 'timestamp' ? restoreInstant(value) : restoreInteger(value);
  return Buffer.from(value as Uint8Array).toString('utf8');
}
