import { type FileHandle, link, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { RetryLater } from '../../../model/errors.ts';
import type { OpenFile } from './store.ts';

/** A file of the local disk, read from any place. */
export async function openFile(handle: FileHandle, name: string): Promise<OpenFile> {
  const stats = await handle.stat({ bigint: true });
  return {
    name,
    size: Number(stats.size),
    identity: identityOf(stats),
    async read(start, end) {
      const bytes = Buffer.allocUnsafe(end - start);
      let done = 0;
      while (done < bytes.length) {
        const { bytesRead } = await handle.read(bytes, done, bytes.length - done, start + done);
        if (bytesRead === 0) throw new Error(`${name} ends at byte ${start + done}, before ${end}`);
        done += bytesRead;
      }
      return bytes;
    },
    close: () => handle.close(),
  };
}

/** A file that was replaced is another inode, or was written at another time. */
export const identityOf = ({ ino, mtimeNs, size }: { ino: bigint; mtimeNs: bigint; size: bigint }): string =>
  `${ino}-${mtimeNs}-${size}`;

export async function writeAt(handle: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
  }
}

const ENDING = '.lock';

/**
 * A rename asks no questions. So whoever replaces a file holds this lock while it looks whether the file is still the one it has
 * read, and renames. Writers that share a state database never meet here; this is for those that do not.
 */
export async function lockFile(target: string, file: string): Promise<{ release(): Promise<void> }> {
  const lock = join(dirname(target), `.${basename(target)}${ENDING}`);
  const held = holdName(basename(target), 'lock');
  const mine = join(dirname(target), held.name);
  const take = async (): Promise<boolean> => {
    try {
      // Linked, not opened: it comes into being with its holder's name in it, whenever we are killed.
      await writeFile(mine, held.name, { mode: 0o600 });
      await link(mine, lock);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    } finally {
      await rm(mine, { force: true });
    }
  };
  if (!(await take())) {
    if (await isLeft(lock)) await rm(lock, { force: true });
    if (!(await take())) {
      held.release();
      throw new RetryLater(`another writer is replacing ${file} now`, {
        kept: 'the file of the other writer; nothing of this batch was written to it',
        next: 'see that only one Tributary (one state database) writes this source into this lake; then run again',
      });
    }
  }
  return {
    async release() {
      await rm(lock, { force: true });
      held.release();
    },
  };
}

/** Of whatever file: what it holds says whose it is. */
export const isLock = (name: string): boolean => name.endsWith(ENDING);

/** Its holder, whose name it holds, was killed. */
export async function isLeft(lock: string): Promise<boolean> {
  try {
    return isAbandoned(await readFile(lock, 'utf8'), (await stat(lock)).mtimeMs);
  } catch (error) {
    // Recovery: it was given back in this moment.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    throw error;
  }
}

/**
 * Files that nobody shall see carry the name of the process that makes them, so that those of a process that was killed can be told
 * from those of one at work: `.main.parquet.4711@host.3.tmp`.
 */
const PATTERN = /^\.(.+)\.(\d+)@([^/]+)\.\d+\.(?:tmp|lock)$/;

/** Of a process on another machine nobody knows whether it is there. Nobody writes a file for so long without touching it. */
const ABANDONED_AFTER_MS = 10 * 60_000;

/** Ours that are in use: in a container every process may have the same number. */
const inUse = new Set<string>();
let count = 0;

export interface Held {
  name: string;
  release(): void;
}

/** A name for a file of ours that is not finished. */
export function holdName(name: string, ending: 'tmp' | 'lock'): Held {
  count += 1;
  const held = `.${name}.${process.pid}@${hostname()}.${count}.${ending}`;
  inUse.add(held);
  return { name: held, release: () => void inUse.delete(held) };
}

/** Whether a file is of our making and its maker is gone. */
export function isAbandoned(name: string, mtimeMs: number): boolean {
  const [, , pid, host] = PATTERN.exec(name) ?? [];
  if (pid === undefined || inUse.has(name)) return false;
  return (host === hostname() && isGone(Number(pid))) || Date.now() - mtimeMs > ABANDONED_AFTER_MS;
}

function isGone(pid: number): boolean {
  if (pid === process.pid) return true;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    // EPERM: it is there, and another user's.
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
