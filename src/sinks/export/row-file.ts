import type { Row } from '../../model/flatten.ts';
import type { Stream } from '../../model/streams.ts';

/** One file for an analyst, written row by row from the first to the last. */
export interface RowFile {
  write(rows: readonly Row[]): Promise<void>;
  /** Everything was written. Returns once the file is whole and in its place. */
  finish(metadata: Readonly<Record<string, string>>): Promise<void>;
  /** Leaves nothing behind. */
  abandon(): Promise<void>;
}

/** Where bytes go: a file that appears whole or not at all, or standard output. */
export interface ByteTarget {
  write(bytes: Uint8Array | string): Promise<void>;
  finish(): Promise<void>;
  abandon(): Promise<void>;
}

/** The columns of an export: those of the stream, and what no column holds. */
export const exportColumns = (stream: Stream): string[] => [...stream.columns.map(({ name }) => name), '_extra'];
