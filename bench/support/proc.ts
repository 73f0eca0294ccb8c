import { readdirSync, readFileSync } from 'node:fs';

/** The kernel's figures of other processes; undefined or NaN if the process has exited, or without Linux. */

const TICKS_A_SECOND = 100;

/** The peak memory. The kernel keeps it while the process exists, so occasional sampling is enough. */
export function peakBytesOf(pid: number | undefined): number | undefined {
  const [, kb] = /VmHWM:\s+(\d+) kB/.exec(read(`${pid}/status`)) ?? [];
  return kb === undefined ? undefined : Number(kb) * 1024;
}

/** CPU seconds over all threads, user and system. */
export const cpuSecondsOf = (pid: number | undefined): number | undefined => statOf(pid)?.own;

/** The server process of a Postgres backend. Backends come and go with their connections. */
export const serverOf = (backend: number | undefined): number | undefined => statOf(backend)?.parent;

/** CPU seconds of a server, including backends that have exited. */
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
  /** Of children that have exited. */
  ended: number;
}

function statOf(pid: number | undefined): Stat | undefined {
  // The name in parentheses may contain anything.
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
    // Recovery: no figure; the last one counts.
    return '';
  }
}
