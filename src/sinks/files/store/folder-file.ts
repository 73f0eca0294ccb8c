import { type FileHandle, link, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { RetryLater } from '../../../model/errors.ts';
import type { OpenFile } from './store.ts';

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

/** A replaced file has another inode or another modification time. */
export const identityOf = ({ ino, mtimeNs, size }: { ino: bigint; mtimeNs: bigint; size: bigint }): string =>
  `${ino}-${mtimeNs}-${size}`;

export async function writeAt(handle: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
  }
}

const ENDING = '.lock';

/** A rename has no precondition, so a lock file keeps writers of another state database out between compare and rename. */
export async function whileLocked<T>(target: string, file: string, work: () => Promise<T>): Promise<T> {
  const lock = join(dirname(target), `.${basename(target)}${ENDING}`);
  const held = holdName(basename(target), 'lock');
  const mine = join(dirname(target), held.name);
  const take = async (): Promise<boolean> => {
    try {
      // Linked, not created: the lock file always contains its holder's name, even if we are killed in between.
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
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
    held.release();
  }
}

export const isLock = (name: string): boolean => name.endsWith(ENDING);

export async function isLeft(lock: string): Promise<boolean> {
  try {
    return isAbandoned(await readFile(lock, 'utf8'), (await stat(lock)).mtimeMs);
  } catch (error) {
    // Recovery: the lock was released just now.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    throw error;
  }
}

/** The name holds the process id and host, to recognize files of a killed process: `.main.parquet.4711@host.3.tmp`. */
const PATTERN = /^\.(.+)\.(\d+)@([^/]+)\.\d+\.(?:tmp|lock)$/;

/** We cannot tell whether a process on another machine is alive, but no writer leaves its file untouched for this long. */
const ABANDONED_AFTER_MS = 10 * 60_000;

/** Files in use by this process: in containers several processes may have the same id, so the id alone says nothing. */
const inUse = new Set<string>();
let count = 0;

export function holdName(name: string, ending: 'tmp' | 'lock') {
  count += 1;
  const held = `.${name}.${process.pid}@${hostname()}.${count}.${ending}`;
  inUse.add(held);
  return { name: held, release: () => void inUse.delete(held) };
}

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
    // EPERM: the process is alive and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
