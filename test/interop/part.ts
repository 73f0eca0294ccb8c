import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';

/** One thing that Tributary meets in the field, tried for real. */
export interface Part {
  /** Chosen by `npm run interop -- NAME`, or by the beginning of it. */
  name: string;
  checks: string;
  needs: string;
  /** Throws `Missing` where the machine lacks what it needs, and any other error where it fails. */
  run(): Promise<Found>;
}

export interface Found {
  /** What it was tried with, by name and version. */
  versions: string;
  /** What was seen, as figures. */
  result: string;
  /** For a table of its own, in Markdown, where the page has a place for it: between `<!-- NAME -->` and `<!-- end NAME -->`. */
  table?: string;
}

/** Why a part is skipped, and how to get what it lacks. */
export class Missing extends Error {}

export interface Ran {
  code: number | null;
  out: string;
  err: string;
}

export const SLOWEST_MS = 30 * 60_000;

/** Runs a program to its end. */
export function run(command: string, args: readonly string[], options: SpawnOptions = {}, input = ''): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { timeout: SLOWEST_MS, ...options, stdio: 'pipe' });
    let [out, err] = ['', ''];
    child.stdout?.on('data', (chunk) => (out += chunk));
    child.stderr?.on('data', (chunk) => (err += chunk));
    child.on('error', (error) => resolve({ code: 127, out, err: String(error) }));
    child.on('close', (code) => resolve({ code, out, err }));
    child.stdin?.on('error', () => {}); // It ended without reading: what it said counts.
    child.stdin?.end(input);
  });
}

/** The same for what has to work: what it printed, or an error with the end of what it said. */
export async function must(command: string, args: readonly string[], options: SpawnOptions = {}, input = '') {
  const ran = await run(command, args, options, input);
  if (ran.code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${ran.code}:\n${lastLines(ran)}`);
  return ran.out;
}

export const lastLines = ({ out, err }: Ran, most = 30): string =>
  `${out}\n${err}`.trim().split('\n').slice(-most).join('\n');

/** Ends a server that we started, and waits until it is gone. */
export async function stop(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exited = once(child, 'exit');
  child.kill(signal);
  const [code] = await exited;
  return code as number | null;
}

/** What was opened, closed in reverse, whatever happens. */
export async function withClosers<T>(work: (opened: (close: () => unknown) => void) => Promise<T>): Promise<T> {
  const closers: Array<() => unknown> = [];
  try {
    return await work((close) => void closers.push(close));
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

const closers: Array<() => unknown> = [];

/** For what several parts share: closed after the last of them. */
export const atEnd = (close: () => unknown): void => void closers.push(close);

export async function closeShared(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}
