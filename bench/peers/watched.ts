import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';

export interface Command {
  /** A shell command: a pipe of two programs counts as one. */
  line: string;
  dir: string;
  env: Record<string, string>;
}

export interface Watched {
  seconds: number;
  /** Of the command's own processes, without a database server's. */
  cpuSeconds: number;
  /** Memory of the command and all its children together; undefined without /proc. */
  peakMb: number | undefined;
  failed: boolean;
  /** The end of its output. */
  said: string;
}

const LOOK_EVERY_MS = 100;
const KEPT = 4000;
/** The shell writes the command's CPU time to a separate pipe. */
const TIMED = (line: string): string => `TIMEFORMAT='%U %S'; { time { ${line}\n} 2>&4; } 4>&2 2>&3`;

/** Runs a command to its end, measures its CPU time, and samples its memory. */
export async function watch({ line, dir, env }: Command): Promise<Watched> {
  const began = performance.now();
  // In its own session, which identifies its children.
  const child = spawn('bash', ['-o', 'pipefail', '-c', TIMED(line)], {
    cwd: dir,
    env: { PATH: process.env.PATH ?? '', HOME: dir, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const printed = ['', '', '', ''];
  for (const [fd, stream] of child.stdio.entries()) {
    (stream as Readable | null)?.setEncoding('utf8').on('data', (text: string) => {
      const as = fd === 3 ? 3 : 1;
      printed[as] = (printed[as] + text).slice(-KEPT);
    });
  }
  let peakKb: number | undefined;
  const look = async (): Promise<void> => {
    const now = await residentKb(child.pid ?? 0).catch(() => undefined); // No /proc.
    if (now !== undefined) peakKb = Math.max(peakKb ?? 0, now);
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  const [code] = await once(child, 'close');
  clearInterval(timer);
  return {
    seconds: (performance.now() - began) / 1000,
    peakMb: peakKb === undefined ? undefined : peakKb / 1024,
    cpuSeconds: (printed[3] ?? '')
      .trim()
      .split(' ')
      .map(Number)
      .reduce((sum, each) => sum + each, 0),
    failed: code !== 0,
    said: printed[1] ?? '',
  };
}

async function residentKb(session: number): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const sizes = await Promise.all(pids.map((pid) => sizeIn(pid, session)));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function sizeIn(pid: string, session: number): Promise<number> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // After the name, which may contain anything: state, parent, group, session.
    const of = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]);
    if (of !== session) return 0;
    return Number(/^VmRSS:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0; // It has exited.
  }
}
