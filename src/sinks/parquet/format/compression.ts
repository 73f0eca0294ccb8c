import * as zlib from 'node:zlib';
import { compressUsingDict, createCCtx, decompress, init } from '@bokuweb/zstd-wasm';
import { type FileMetaData, parquetMetadata, parquetScan, type SchemaElement } from 'hyparquet';
import { snappyCompress } from './bytes.ts';

export type Compression = 'zstd' | 'snappy' | 'gzip';

export type Pack = (bytes: Uint8Array) => Uint8Array;
type Unpack = (bytes: Uint8Array, length: number) => Uint8Array;

/** From Node 22.15 on; the types we compile against are those of Node 20. */
interface NodeZstd {
  zstdCompressSync?: Pack;
  zstdDecompressSync?: Pack;
}

const { zstdCompressSync, zstdDecompressSync }: NodeZstd = zlib as NodeZstd;

export async function packer(compression: Compression): Promise<Pack> {
  switch (compression) {
    case 'zstd':
      return zstdCompressSync ?? (await loadWasm()).pack;
    case 'snappy':
      return snappyCompress;
    case 'gzip':
      return (bytes) => zlib.gzipSync(bytes);
  }
}

/** By Parquet's names, without snappy, which the reader has built in. */
export async function unpackers(): Promise<Record<'ZSTD' | 'GZIP', Unpack>> {
  return {
    ZSTD: zstdDecompressSync ? (bytes) => zstdDecompressSync(bytes) : (await loadWasm()).unpack,
    GZIP: (bytes) => zlib.gunzipSync(bytes),
  };
}

interface Wasm {
  pack: Pack;
  unpack: Unpack;
}

const LEVEL = 3;
const NO_DICTIONARY = new Uint8Array();

let wasm: Promise<Wasm> | undefined;

/** Older versions of Node load zstd as WebAssembly, once, when it is first needed. */
function loadWasm(): Promise<Wasm> {
  wasm ??= init().then(() => {
    // Reusing the context takes a third less time than one for each page.
    const context = createCCtx();
    return {
      pack: (bytes) => compressUsingDict(context, bytes, NO_DICTIONARY, LEVEL),
      // Data compressed as a stream does not record its length; the page header does.
      unpack: (bytes, length) => decompress(bytes, { defaultHeapSize: length }),
    };
  });
  return wasm;
}

/**
 * hyparquet does the reading. By default it makes Dates of instants, parses JSON and drops a byte order mark at the start of
 * a text; these parsers replace its own.
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

/** Columns of the single group in the metadata: integers and instants as BigInt, text and JSON as text. */
export async function openGroup(metadata: Metadata, read: (start: number, end: number) => Promise<Uint8Array>) {
  const scan = await parquetScan({
    metadata,
    file: {
      byteLength: Number.MAX_SAFE_INTEGER,
      slice: async (start, end) => ownBuffer(await read(start, end as number)),
    },
    compressors: await unpackers(),
    parsers: {
      stringFromBytes: (bytes) => bytes && toText(bytes),
      jsonFromBytes: (bytes) => bytes && toText(bytes),
      timestampFromMicroseconds: asItIs,
      // Ours are in microseconds; other writers may use others.
      timestampFromMilliseconds: (millis: bigint) => (millis === undefined ? undefined : BigInt(millis) * 1000n),
      timestampFromNanoseconds: (nanos: bigint) => (nanos === undefined ? undefined : BigInt(nanos) / 1000n),
    },
  });
  const rowEnd = Number(metadata.num_rows);
  return (column: string): Promise<ArrayLike<unknown>> => scan.readColumn({ column, rowStart: 0, rowEnd });
}

/** Small Node Buffers share a larger ArrayBuffer. */
const ownBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): ArrayBuffer =>
  buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
