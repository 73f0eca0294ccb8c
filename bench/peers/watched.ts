import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';

export interface Command {
  /** For the shell: a pipe of two programs is one command. */
  line: string;
  dir: string;
  env: Record<string, string>;
}

export interface Watched {
  seconds: number;
  /** Memory of the command and all its children at once; undefined where there is no /proc. */
  peakMb: number | undefined;
  failed: boolean;
  /** The last of what it printed. */
  said: string;
}

const LOOK_EVERY_MS = 100;
const KEPT = 4000;

/** Runs a command to its end, and looks at its memory meanwhile. */
export async function watch({ line, dir, env }: Command): Promise<Watched> {
  const began = performance.now();
  // In a session of its own, so that its children are known by it.
  const child = spawn('bash', ['-o', 'pipefail', '-c', line], {
    cwd: dir,
    env: { PATH: process.env.PATH ?? '', HOME: dir, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-KEPT);
    });
  }
  let peakKb: number | undefined;
  const look = async (): Promise<void> => {
    const now = await residentKb(child.pid ?? 0).catch(() => undefined); // No /proc here.
    if (now !== undefined) peakKb = Math.max(peakKb ?? 0, now);
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  const [code] = await once(child, 'close');
  clearInterval(timer);
  return {
    seconds: (performance.now() - began) / 1000,
    peakMb: peakKb === undefined ? undefined : peakKb / 1024,
    failed: code !== 0,
    said,
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
    // After the name, which may hold anything: state, parent, group, session.
    const of = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]);
    if (of !== session) return 0;
    return Number(/^VmRSS:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0; // It ended between two looks.
  }
}
