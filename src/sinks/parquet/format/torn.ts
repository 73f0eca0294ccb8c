import { StopStream } from '../../../model/errors.ts';
import type { ByteSource } from './types.ts';

/** A file that is not what it should be: reading it again does not help, and replacing it could lose what it holds. */
export function torn(source: ByteSource, why: string, cause?: unknown): StopStream {
  return new StopStream(`${nameOf(source)} is no whole Parquet file: ${why}`, {
    kept: 'the file as it is',
    next: 'move it away and backfill the days it held',
    ...(cause !== undefined && { cause }),
  });
}

export function foreign(source: ByteSource, why: string): StopStream {
  return new StopStream(`${nameOf(source)} was not written by Tributary: ${why}`, {
    kept: 'the file as it is',
    next: 'move it out of the lake, then run again',
  });
}

const nameOf = ({ name }: ByteSource): string => name ?? 'a file of the lake';
