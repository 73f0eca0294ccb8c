import * as zlib from 'node:zlib';
import { compressUsingDict, createCCtx, decompress, init } from '@bokuweb/zstd-wasm';
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

/** By Parquet's names. Snappy is built into the reader. */
export async function unpackers(): Promise<Record<'ZSTD' | 'GZIP', Unpack>> {
  return {
    ZSTD: zstdDecompressSync ? (bytes) => zstdDecompressSync(bytes) : (await loadWasm()).unpack,
    GZIP: (bytes) => zlib.gunzipSync(bytes),
  };
}

const LEVEL = 3;
const NO_DICTIONARY = new Uint8Array();

let wasm: Promise<{ pack: Pack; unpack: Unpack }> | undefined;

/** For older versions of Node: loads zstd as WebAssembly when it is first needed. */
function loadWasm() {
  wasm ??= init().then(() => {
    // Reusing the context is a third faster than one for each page.
    const context = createCCtx();
    return {
      pack: (bytes) => compressUsingDict(context, bytes, NO_DICTIONARY, LEVEL),
      // Data compressed as a stream does not record its length; the page header does.
      unpack: (bytes, length) => decompress(bytes, { defaultHeapSize: length }),
    };
  });
  return wasm;
}
