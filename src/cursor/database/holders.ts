import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Containers may share a host name and all have a process 1, so it ends in boot and namespace of the process id. */
export const holderOf = (command: string): string =>
  `tributary ${command} (process ${process.pid} on ${hostname()}, ${processSpace}-${instance})`;

const instance = randomBytes(3).toString('hex');
const processSpace = identifyProcessSpace();

/** Where a process id means the same process: one boot of one machine, and in it one namespace of process ids. */
function identifyProcessSpace(): string {
  let space = hostname();
  try {
    space = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8') + readlinkSync('/proc/self/ns/pid');
  } catch {
    // Recovery: no Linux, so no containers that share this kernel; the host name tells machines apart.
  }
  return createHash('sha256').update(space).digest('hex').slice(0, 8);
}

/** Only of a process on this machine can we know that it is gone. */
export function isDead(holder: string): boolean {
  const [, pid, space] = /\(process (\d+) on .*, ([0-9a-f]{8})-[0-9a-f]{6}\)$/.exec(holder) ?? [];
  return space === processSpace && !isAlive(Number(pid));
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: it is there, and another user's.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
