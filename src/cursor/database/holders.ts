import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Containers may share a host name, and each has a process 1, so the holder also has a hash of boot id and pid namespace. */
export const holderOf = (command: string): string =>
  `tributary ${command} (process ${process.pid} on ${hostname()}, ${processSpace}-${instance})`;

const instance = randomBytes(3).toString('hex');
const processSpace = identifyProcessSpace();

/** The scope in which a pid is unique: one boot of one machine, and in it one pid namespace. */
function identifyProcessSpace(): string {
  let space = hostname();
  try {
    space = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8') + readlinkSync('/proc/self/ns/pid');
  } catch {
    // Recovery: not Linux, so no containers share this kernel; the host name distinguishes machines.
  }
  return createHash('sha256').update(space).digest('hex').slice(0, 8);
}

/** Whether the holder's process is known to have ended. Never true for processes of other machines. */
export function isDead(holder: string): boolean {
  const [, pid, space] = /\(process (\d+) on .*, ([0-9a-f]{8})-[0-9a-f]{6}\)$/.exec(holder) ?? [];
  return space === processSpace && !isAlive(Number(pid));
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
