import { RetryLater } from '../../../model/errors.ts';
import type { ByteSource } from '../format/index.ts';

/** Where the files of a lake are kept: a folder, or a bucket. Paths are relative to the lake and use `/`. */
export interface Store {
  /** For people. */
  readonly place: string;
  /** Every file below a folder, however deep; or those of one name. */
  list(folder: string, name?: string): AsyncIterable<Listed>;
  open(path: string): Promise<OpenFile | undefined>;
  /** A new file that nobody sees yet. */
  stage(path: string): Promise<Staged>;
  /** Only if it is still the same file. */
  remove(path: string, identity: string): Promise<void>;
  /** Whatever is there: for files that are never replaced. */
  delete(path: string): Promise<void>;
  readText(path: string): Promise<string | undefined>;
  /** Replaces a small file, whole. */
  writeText(path: string, text: string): Promise<void>;
  /**
   * Removes what writers that are gone left behind below a folder, or, without one, beside the folders; and nothing else. Of files of
   * the name `own` nobody but the caller is a writer now.
   */
  removeLeftovers(folder?: string, own?: string): Promise<void>;
  close(): Promise<void>;
}

export interface Listed {
  path: string;
  identity: string;
  modifiedAt: number;
}

/** A file as it was when it was opened. Its identity changes whenever somebody replaces it. */
export interface OpenFile extends ByteSource {
  readonly identity: string;
  close(): Promise<void>;
}

/** A file that is being made. It is seen under its name only once it is published, and then whole. */
export interface Staged {
  /** At a place of the file. What nothing is written to reads as zeros. */
  write(bytes: Uint8Array, at: number): Promise<void>;
  /** Everything is on disk; what was written can be read. */
  finish(): Promise<OpenFile>;
  /** Puts it in the place of the file it was made from; undefined: where there was none. Returns its identity. */
  publish(over: string | undefined): Promise<string>;
  /** Leaves nothing behind. After `publish` there is nothing left to do. */
  discard(): Promise<void>;
}

/** Two writers of one partition: the second is refused, not merged blindly. */
export class ReplacedMeanwhile extends RetryLater {
  constructor(path: string, what: 'replaced' | 'removed' = 'replaced') {
    super(`${path} was ${what} by another writer while this one was working on it`, {
      kept: 'the file of the other writer; nothing of this batch was written to it',
      next: 'see that only one Tributary (one state database) writes this source into this lake; then run again',
    });
  }
}
