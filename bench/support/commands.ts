import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { cpuSecondsOf, peakBytesOf } from './proc.ts';

/** The built command line, run in a separate process. */
export const MAIN = 'dist/cli/main.js';

export const run = promisify(execFile);

export interface Ran {
  stdout: string;
  seconds: number;
  /** The peak memory; NaN if the system does not report it. */
  peakBytes: number;
  /** CPU seconds, without the process's last moment. */
  cpuSeconds: number;
}

const LOOK_MS = 100;

export async function runMeasured(args: readonly string[]): Promise<Ran> {
  const start = performance.now();
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
  const ended = once(child, 'close').then(([code]) => code as number | null);
  let [peakBytes, cpuSeconds] = [Number.NaN, Number.NaN];
  while (child.exitCode === null && child.signalCode === null) {
    peakBytes = peakBytesOf(child.pid) ?? peakBytes;
    cpuSeconds = cpuSecondsOf(child.pid) ?? cpuSeconds;
    await Promise.race([sleep(LOOK_MS), ended]);
  }
  const code = await ended;
  const seconds = (performance.now() - start) / 1000;
  if (code !== 0) throw new Error(`tributary ${args.join(' ')} ended with ${code}: ${await stderr}`);
  return { stdout: await stdout, seconds, peakBytes, cpuSeconds };
}
