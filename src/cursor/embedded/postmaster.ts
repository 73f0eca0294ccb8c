import { readFile, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** What Postgres' own lock file says of the server on a data directory. Postgres lets only one server live there. */
export type Postmaster =
  | { state: 'absent' }
  /** The file is a leaving of a crash. `pid` may by now be somebody else's. */
  | { state: 'dead'; pid: number }
  | { state: 'busy' | 'ready'; pid: number; port: number };

export async function lookAtPostmaster(data: string): Promise<Postmaster> {
  let lines: string[];
  try {
    lines = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { state: 'absent' };
    throw error;
  }
  // Line 1: pid. Line 4: port. Line 8: starting, ready, stopping. Lines come one by one while the server starts.
  const pid = Number(lines[0]);
  if (!(await serves(pid, data))) return { state: 'dead', pid };
  return { state: lines[7]?.trim() === 'ready' ? 'ready' : 'busy', pid, port: Number(lines[3]) };
}

/** Whether this pid is a server on this directory: a server's working directory is its data directory. */
async function serves(pid: number, data: string): Promise<boolean> {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  if (process.platform !== 'linux') return isAlive(pid);
  // After a reboot, and in a new container always, the pid of a crashed server soon belongs to another program. A dead
  // process that nobody collected (no init in the container) has no working directory either.
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  return cwd !== undefined && cwd === (await realpath(data));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: alive, and somebody else's.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** A fast shutdown: open transactions roll back, everything committed is on disk. False: it did not end in time. */
export async function stopPostmaster(data: string, timeoutMs = 60_000): Promise<boolean> {
  const found = await lookAtPostmaster(data);
  if (found.state !== 'ready' && found.state !== 'busy') return true;
  process.kill(found.pid, 'SIGINT');
  return until(timeoutMs, async () => !(await serves(found.pid, data)));
}

export async function until(timeoutMs: number, condition: () => Promise<boolean>): Promise<boolean> {
  for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await sleep(10)) {
    if (await condition()) return true;
  }
  return false;
}
