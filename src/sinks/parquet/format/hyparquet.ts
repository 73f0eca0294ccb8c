import { type FileMetaData, parquetMetadata, parquetScan, type SchemaElement } from 'hyparquet';
import { parseJson } from '../../../model/json.ts';
import { unpackers } from './compression.ts';

/**
 * Reading is hyparquet's work. Left to itself it makes Dates of instants, bends large integers in JSON and swallows a byte order
 * mark at the beginning of a text; so it is told how to read each.
 */
export type Metadata = FileMetaData;
export type Element = SchemaElement;

const asItIs = (value: unknown): unknown => value;
const toText = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');

/** Reads a footer; its last bytes are the length and MAGIC. Bounds of text come as bytes, those of integers and instants as BigInt. */
export function parseMetadata(footer: Uint8Array): Metadata {
  return parquetMetadata(footer, {
    parsers: { stringFromBytes: asItIs, timestampFromMicroseconds: asItIs },
    geoparquet: false,
  });
}

export type ReadColumn = (name: string) => Promise<ArrayLike<unknown>>;

/** Columns of the only group that the metadata tells of: integers and instants as BigInt, text as text, JSON parsed. */
export async function openGroup(
  metadata: Metadata,
  read: (start: number, end: number) => Promise<Uint8Array>,
): Promise<ReadColumn> {
  const scan = await parquetScan({
    metadata,
    file: {
      byteLength: Number.MAX_SAFE_INTEGER,
      slice: async (start, end) => ownBuffer(await read(start, end as number)),
    },
    compressors: await unpackers(),
    parsers: {
      stringFromBytes: (bytes) => bytes && toText(bytes),
      jsonFromBytes: (bytes) => bytes && parseJson(toText(bytes)),
      timestampFromMicroseconds: asItIs,
    },
  });
  const rowEnd = Number(metadata.num_rows);
  return (column) => scan.readColumn({ column, rowStart: 0, rowEnd });
}

/** Small Buffers of Node lie in a larger one that they share. */
const ownBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): ArrayBuffer =>
  buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
