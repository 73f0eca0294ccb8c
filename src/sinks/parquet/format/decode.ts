import { type FileMetaData, parquetMetadata, parquetScan } from 'hyparquet';
import type { Kind, Value } from '../../../model/columns.ts';
import { unpackers } from './compression.ts';
import { createYield } from './group.ts';
import { type ByteSource, exactName, type FileColumn, restoreInstant, restoreInteger } from './types.ts';

/** By default hyparquet makes Dates of instants, parses JSON and drops a byte order mark; these parsers do not. */
const asItIs = (value: unknown): unknown => value;
const toText = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');

/** Parses a footer, which ends with its length and MAGIC. Bounds of text are bytes; bounds of integers and instants are BigInts. */
export const parseMetadata = (footer: Uint8Array): FileMetaData =>
  parquetMetadata(footer, {
    parsers: { stringFromBytes: asItIs, timestampFromMicroseconds: asItIs },
    geoparquet: false,
  });

/** Reads the rows of a row group, with these columns converted to their kinds. A column that the file lacks is null. */
export async function readValues(
  footer: FileMetaData,
  number: number,
  columns: ReadonlyArray<Pick<FileColumn, 'name' | 'kind'>>,
  read: ByteSource['read'],
): Promise<Value[][]> {
  const group = footer.row_groups[number];
  if (!group) throw new RangeError(`there is no group ${number}`);
  const rowEnd = Number(group.num_rows);
  const names = new Set(footer.schema.slice(1).map(({ name }) => name));
  const scan = await parquetScan({
    metadata: { ...footer, row_groups: [group], num_rows: group.num_rows },
    file: {
      byteLength: Number.MAX_SAFE_INTEGER,
      slice: async (start, end) => ownBuffer(await read(start, end as number)),
    },
    compressors: await unpackers(),
    parsers: {
      stringFromBytes: (bytes) => bytes && toText(bytes),
      jsonFromBytes: (bytes) => bytes && toText(bytes),
      timestampFromMicroseconds: asItIs,
      // We write microseconds; other writers may use other units.
      timestampFromMilliseconds: (millis: bigint) => (millis === undefined ? undefined : BigInt(millis) * 1000n),
      timestampFromNanoseconds: (nanos: bigint) => (nanos === undefined ? undefined : BigInt(nanos) / 1000n),
    },
  });
  const rows = Array.from({ length: rowEnd }, () => new Array<Value>(columns.length).fill(null));
  const fill = async (column: string, at: number, convert: (value: unknown) => Value): Promise<void> => {
    if (!names.has(column)) return;
    const values: ArrayLike<unknown> = await scan.readColumn({ column, rowStart: 0, rowEnd });
    if (values.length !== rows.length) throw new RangeError(`a column has ${values.length} values`);
    rows.forEach((row, i) => {
      const value = values[i] ?? null;
      if (value !== null) row[at] = convert(value);
    });
  };
  const yieldNow = createYield();
  for (const [at, { name, kind }] of columns.entries()) {
    await fill(name, at, CONVERT[kind]);
    if (kind === 'number') await fill(exactName(name), at, (value) => BigInt(String(value)));
    await yieldNow();
  }
  return rows;
}

/** Small Node Buffers share a larger ArrayBuffer. */
const ownBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): ArrayBuffer =>
  buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;

/** Other writers may not annotate text as UTF8; then it comes as bytes. */
const asText = (value: unknown): string => (value instanceof Uint8Array ? toText(value) : String(value));

const CONVERT: Readonly<Record<Kind, (value: unknown) => Value>> = {
  text: asText,
  json: asText,
  boolean: Boolean,
  number: Number,
  integer: (value) => restoreInteger(BigInt(value as bigint)),
  timestamp: (value) => restoreInstant(BigInt(value as bigint)),
};
