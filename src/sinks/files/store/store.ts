import { ConfigError, RetryLater } from '../../../model/errors.ts';
import type { ByteSource } from '../../parquet/format/index.ts';

/** The storage of a lake: a folder or a bucket. Paths are relative to the lake and use `/`. */
export interface Store {
  readonly place: string;
  /** Listing files costs requests. */
  readonly isRemote: boolean;
  /** Every file below a folder, at any depth; with `beginning`, only files whose path within the folder starts with it. */
  list(folder: string, beginning?: string): AsyncIterable<ListedFile>;
  open(path: string): Promise<OpenFile | undefined>;
  stage(path: string): Promise<Staged>;
  /** Deletes a file; with an identity, throws unless it is still that file. */
  remove(path: string, identity?: string): Promise<void>;
  /** Removes leftovers of ended writers below a folder, or at the root. Files named `own` have no writer but the caller. */
  removeLeftovers(folder?: string, own?: string): Promise<void>;
  close(): Promise<void>;
}

export interface ListedFile {
  path: string;
  identity: string;
  modifiedAt: number;
}

/** A file as of when it was opened. Its identity changes whenever the file is replaced. */
export interface OpenFile extends ByteSource {
  readonly identity: string;
  close(): Promise<void>;
}

/** Closes the file after `work`, also if it throws. Does nothing for undefined. */
export async function whileOpen<F extends { close(): Promise<void> } | undefined, T>(
  file: F,
  work: (file: F) => Promise<T>,
): Promise<T> {
  try {
    return await work(file);
  } finally {
    await file?.close();
  }
}

export async function readSmall(store: Store, path: string): Promise<{ bytes: Buffer; identity: string } | undefined> {
  const file = await store.open(path);
  if (!file) return undefined;
  const { size, identity } = file;
  return whileOpen(file, async () => ({ bytes: Buffer.from(size === 0 ? [] : await file.read(0, size)), identity }));
}

/** Replaces the file `over`, or creates a new one. */
export const writeSmall = (staged: Staged, content: string | Buffer, over?: string): Promise<string> =>
  whileStaged(staged, async () => {
    await staged.write(Buffer.from(content), 0);
    await (await staged.finish()).close();
    return staged.publish(over);
  });

export async function whileStaged<T>(staged: Staged, work: (staged: Staged) => Promise<T>): Promise<T> {
  try {
    return await work(staged);
  } finally {
    await staged.discard();
  }
}

/** A file that is being written. It appears under its name only when it is complete and published. */
export interface Staged {
  /** Writes at a position. Gaps read as zeros. */
  write(bytes: Uint8Array, at: number): Promise<void>;
  /** Syncs the file, and opens it to read it back. */
  finish(): Promise<OpenFile>;
  /** Replaces the file with the identity `over`; undefined: there must be none. Returns the new identity. */
  publish(over: string | undefined): Promise<string>;
  discard(): Promise<void>;
}

/** Two writers changed the same file: the second fails instead of overwriting the first. */
export class ReplacedMeanwhile extends RetryLater {
  constructor(path: string, what: 'replaced' | 'removed' = 'replaced') {
    super(`${path} was ${what} by another writer while this one was working on it`, {
      kept: 'the file of the other writer; nothing of this batch was written to it',
      next: 'see that only one Tributary (one state database) writes this source into this lake; then run again',
    });
  }
}

/** The source's name becomes part of a path, so characters that could change the path are refused. */
export function fileName(source: string): string {
  if (/^[\w-][\w.-]*$/.test(source)) return `${source}.parquet`;
  throw new ConfigError(`"${source}" cannot be the name of a file`, {
    where: { source },
    next: 'name the source with letters, digits, _ and -',
  });
}
