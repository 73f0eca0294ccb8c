import { ConfigError, RetryLater } from '../../../model/errors.ts';
import type { ByteSource } from '../../parquet/format/index.ts';

/** Where the files of a lake are kept: a folder, or a bucket. Paths are relative to the lake and use `/`. */
export interface Store {
  readonly place: string;
  /** Listing its files costs requests. */
  readonly isRemote: boolean;
  /** Every file below a folder, at any depth; or those in the folder whose names begin so. */
  list(folder: string, beginning?: string): AsyncIterable<Listed>;
  open(path: string): Promise<OpenFile | undefined>;
  stage(path: string): Promise<Staged>;
  /** Deletes a file; if it is given which one, only if it is still the same. */
  remove(path: string, identity?: string): Promise<void>;
  /** Removes what ended writers left below a folder, or beside them all; of files named `own` the caller writes. */
  removeLeftovers(folder?: string, own?: string): Promise<void>;
  close(): Promise<void>;
}

export interface Listed {
  path: string;
  identity: string;
  modifiedAt: number;
}

/** A file as it was when it was opened. Its identity changes whenever it is replaced. */
export interface OpenFile extends ByteSource {
  readonly identity: string;
  close(): Promise<void>;
}

/** Closes it afterwards, whatever happens; undefined where there is no such file. */
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

/** Replaces the given file, or makes a new one. */
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

/** A file that is being written. It appears under its name only when it is published, complete. */
export interface Staged {
  /** Writes at a position. Gaps read as zeros. */
  write(bytes: Uint8Array, at: number): Promise<void>;
  /** Everything is on disk, and can be read back. */
  finish(): Promise<OpenFile>;
  /** Replaces the file that it was made from; undefined: there must be none. Returns its identity. */
  publish(over: string | undefined): Promise<string>;
  discard(): Promise<void>;
}

/** Two writers met on a partition: the second is refused, not merged blindly. */
export class ReplacedMeanwhile extends RetryLater {
  constructor(path: string, what: 'replaced' | 'removed' = 'replaced') {
    super(`${path} was ${what} by another writer while this one was working on it`, {
      kept: 'the file of the other writer; nothing of this batch was written to it',
      next: 'see that only one Tributary (one state database) writes this source into this lake; then run again',
    });
  }
}

/** The name becomes part of a path, so anything that could lead elsewhere is refused. */
export function fileName(source: string): string {
  if (/^[\w-][\w.-]*$/.test(source)) return `${source}.parquet`;
  throw new ConfigError(`"${source}" cannot be the name of a file`, {
    where: { source },
    next: 'name the source with letters, digits, _ and -',
  });
}
