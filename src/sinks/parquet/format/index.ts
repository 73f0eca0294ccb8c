/**
 * Reads and writes Parquet in memory; `types.ts` explains the terms. Our own, because it copies unchanged row groups from file to file as
 * bytes, which no writer on npm can, and because it encodes about twice as fast as the fastest of them (`npm run bench:parquet`).
 */
export type { Compression } from './compression.ts';
export { compareText } from './encodings.ts';
export { encodeFooter, fitsSchema } from './footer.ts';
export { encodeGroup } from './group.ts';
export { type AnyFile, type ReadableFile, readAny, readFooter, readGroup, UnreadableFile } from './read.ts';
export {
  type ByteSource,
  type Chunk,
  type EncodedGroup,
  type FileColumn,
  leavesOf,
  MAGIC,
  type ParquetFile,
  type StoredGroup,
} from './types.ts';
