import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../../src/config/index.ts';
import type { Timings } from '../../../src/jobs/schedule.ts';

/** Processes that are killed: see `host.mjs`. */

const HOST = fileURLToPath(new URL('host.mjs', import.meta.url));
/** The limit for a case to reach its step or its end. */
const PATIENCE_MS = 120_000;

export interface Ended {
  pid: number | undefined;
  /** The process was killed at this case's step; false if the case had ended before. */
  isStill: boolean;
  code: number | undefined;
  /** The output of the case. */
  said: string;
  /** Every step in order, of a case that runs to its end. */
  steps: string[];
}

/** What a process runs: a command line or a worker. */
export type Task = { argv: readonly string[] } | { worker: { config: Config; timings: Partial<Timings> } };

export interface Doomed {
  task: Task;
  /** Undefined: it runs to its end. */
  at?: string | undefined;
}

/** Runs all cases in one process until each has reached its step, then kills it. */
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
