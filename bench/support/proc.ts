import { readdirSync, readFileSync } from 'node:fs';

/** What the kernel tells of other processes; undefined or NaN where it does not: the process has ended, or this is no Linux. */

const TICKS_A_SECOND = 100;

/** The most memory that it had at once. The kernel keeps the mark for as long as there is a process: looking now and then is enough. */
export function peakBytesOf(pid: number | undefined): number | undefined {
  const [, kb] = /VmHWM:\s+(\d+) kB/.exec(read(`${pid}/status`)) ?? [];
  return kb === undefined ? undefined : Number(kb) * 1024;
}

/** Seconds of the processor over all threads, user and system. */
export const cpuSecondsOf = (pid: number | undefined): number | undefined => statOf(pid)?.own;

/** The server that a Postgres backend belongs to. Backends come and go with their connections. */
export const serverOf = (backend: number | undefined): number | undefined => statOf(backend)?.parent;

/** Seconds of the processor of a whole server: backends that have ended are on its account. */
export function serverCpuSeconds(server: number | undefined): number {
  const stat = statOf(server);
  if (!stat) return Number.NaN;
  const children = readdirSync('/proc').flatMap((name) => statOf(Number(name)) ?? []);
  const alive = children.filter(({ parent }) => parent === server);
  return alive.reduce((sum, { own }) => sum + own, stat.own + stat.ended);
}

interface Stat {
  parent: number;
  own: number;
  /** Of children that have ended. */
  ended: number;
}

function statOf(pid: number | undefined): Stat | undefined {
  // The name in front, in brackets, may hold anything.
  const fields = read(`${pid}/stat`).split(') ').at(-1)?.split(' ') ?? [];
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15).map(Number);
  if (fields.length < 15) return undefined;
  return {
    parent: Number(fields[1]),
    own: (user + system) / TICKS_A_SECOND,
    ended: (endedUser + endedSystem) / TICKS_A_SECOND,
  };
}

function read(name: string): string {
  try {
    return readFileSync(`/proc/${name}`, 'utf8');
  } catch {
    // Recovery: there is nothing to tell; the last figure stands.
    return '';
  }
}
