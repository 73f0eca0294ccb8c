import * as zlib from 'node:zlib';
import { compress, decompress, init } from '@bokuweb/zstd-wasm';
import { snappyCompress } from 'hyparquet-writer/src/snappy.js';
import type { Compression } from './types.ts';

export type Pack = (bytes: Uint8Array) => Uint8Array;

/** From Node 22.15 on; the types we compile against are those of Node 20. */
interface NodeZstd {
  zstdCompressSync?: Pack;
  zstdDecompressSync?: Pack;
}

const native: NodeZstd = zlib as NodeZstd;

/** Level 6, which is zlib's own choice, takes three times as long for a twentieth less. */
const GZIP = { level: 4 };

let wasm: Promise<void> | undefined;

/** Older Nodes get zstd as WebAssembly, which is loaded once, when it is first needed. */
async function loadZstd(): Promise<void> {
  if (native.zstdCompressSync && native.zstdDecompressSync) return;
  wasm ??= init();
  await wasm;
}

export async function packer(compression: Compression): Promise<Pack> {
  switch (compression) {
    case 'zstd':
      await loadZstd();
      return native.zstdCompressSync ?? compress;
    case 'snappy':
      return snappyCompress;
    case 'gzip':
      return (bytes) => zlib.gzipSync(bytes, GZIP);
  }
}

/** By Parquet's names. Snappy is missing because the reader brings it. */
export async function unpackers(): Promise<Record<'ZSTD' | 'GZIP', Pack>> {
  await loadZstd();
  return { ZSTD: native.zstdDecompressSync ?? decompress, GZIP: (bytes) => zlib.gunzipSync(bytes) };
}
