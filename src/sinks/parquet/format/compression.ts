import * as zlib from 'node:zlib';
import { compressUsingDict, createCCtx, decompress, init } from '@bokuweb/zstd-wasm';
import { snappyCompress } from 'hyparquet-writer/src/snappy.js';
import type { Compression } from './types.ts';

export type Pack = (bytes: Uint8Array) => Uint8Array;
export type Unpack = (bytes: Uint8Array, length: number) => Uint8Array;

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

/** By Parquet's names. Snappy is missing because the reader brings it. */
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

/** Older Nodes get zstd as WebAssembly, once, when it is first needed. */
function loadWasm(): Promise<Wasm> {
  wasm ??= init().then(() => {
    // A context that is kept saves a third of the time that one for each page takes.
    const context = createCCtx();
    return {
      pack: (bytes) => compressUsingDict(context, bytes, NO_DICTIONARY, LEVEL),
      // What was packed as a stream does not say how long it was; the page does.
      unpack: (bytes, length) => decompress(bytes, { defaultHeapSize: length }),
    };
  });
  return wasm;
}
