import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../../src/config/index.ts';
import type { Timings } from '../../../src/jobs/schedule.ts';

/** Processes that are killed: see `host.mjs`. */

const HOST = fileURLToPath(new URL('host.mjs', import.meta.url));
/** A case that neither comes to its step nor to its end is a fault. */
const PATIENCE_MS = 120_000;

export interface Ended {
  pid: number | undefined;
  /** It stood at its step when the process was killed; else it was through. */
  isStill: boolean;
  code: number | undefined;
  /** What it said about how it went. */
  said: string;
  /** Every step in order, of one that was to go through. */
  steps: string[];
}

/** What a process is to do: a command line, or the work of a worker. */
export type Task = { argv: readonly string[] } | { worker: { config: Config; timings: Partial<Timings> } };

export interface Doomed {
  task: Task;
  /** Undefined: it goes through. */
  at?: string | undefined;
}

/** Brings each to its step, in one process, and kills that. */
export async function killAll(doomed: readonly Doomed[]): Promise<Ended[]> {
  const child = spawn(process.execPath, ['--no-warnings', HOST], {
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: PATIENCE_MS,
  });
  child.stdin.end(JSON.stringify(doomed.map(({ task, at }) => ({ ...task, at }))));
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const said = await text(child.stdout);
  await exited;
  if (child.signalCode !== 'SIGKILL') {
    const steps = doomed.map(({ at }) => at).join(', ');
    throw new Error(`the process ended with ${child.exitCode ?? child.signalCode}, not by its own kill: ${steps}`);
  }
  return (JSON.parse(said) as Ended[]).map((end) => ({ ...end, pid: child.pid }));
}
