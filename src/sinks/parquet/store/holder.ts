import { hostname } from 'node:os';

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
