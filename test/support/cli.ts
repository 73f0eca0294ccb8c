import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { run } from '../../src/cli/program.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { stopPostmaster } from '../../src/cursor/embedded/server.ts';
import { silentLog } from './silent-log.ts';

/** The built binary: `npm test` builds it first. */
export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
  /** The complete output. */
  text: string;
}

export interface Running {
  pid: number;
  child: ChildProcess;
  done: Promise<Finished>;
  /** Waits for a text in the output; returns everything printed until then. */
  saw(text: string | RegExp): Promise<string>;
}

export type Place = Awaited<ReturnType<typeof freshPlace>>;

const places: string[] = [];
const running = new Set<Running>();

/** Ends the remaining processes with the file: by pid, and the embedded server by its own command. */
afterAll(async () => {
  for (const { child, done } of running) {
    child.kill('SIGKILL');
    await done;
  }
  for (const root of places.splice(0)) {
    await stopPostmaster(join(root, 'work/.tributary/postgres')).catch(() => {}); // There was none.
    await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
});

/** A folder to run commands in, with a home and a temporary folder that should stay empty. */
export async function freshPlace() {
  const root = await mkdtemp(join(tmpdir(), 'tributary-cli-'));
  places.push(root);
  const [dir, home, tmp] = ['work', 'home', 'tmp'].map((name) => join(root, name)) as [string, string, string];
  for (const each of [dir, home, tmp]) await mkdir(each, { mode: 0o700 });
  const own = { PATH: process.env.PATH ?? '', HOME: home, TMPDIR: tmp };
  const start = (args: readonly string[], env: Record<string, string> = {}): Running =>
    startProcess(process.execPath, [MAIN, ...args], dir, { ...own, ...env });
  return {
    dir,
    start,
    /** Runs a separate process to its end. */
    run: (args: readonly string[], env?: Record<string, string>): Promise<Finished> => start(args, env).done,
    /** Runs in this process and without its log, where the process is not under test: starting one costs more than most commands. */
    call: (args: readonly string[], env?: Record<string, string>): Promise<Finished> =>
      callHere(args, dir, { ...own, ...env }),
    async config(text: string, name = 't.yaml') {
      await writeFile(join(dir, name), text);
      return name;
    },
    /** The names of files in the folder, its home and its temporary folder. */
    files: async () => ({ dir: await readdir(dir), home: await readdir(home), tmp: await readdir(tmp) }),
  };
}

/** Working directory and environment are global: one call at a time. */
let turn: Promise<unknown> = Promise.resolve();

function callHere(args: readonly string[], cwd: string, env: Record<string, string>): Promise<Finished> {
  const call = async (): Promise<Finished> => {
    const [output, before] = [
      { stdout: '', stderr: '', text: '' },
      { cwd: process.cwd(), env: process.env },
    ];
    const write = (name: 'stdout' | 'stderr', text: string): void => {
      output[name] += text;
      output.text += text;
    };
    const terminal: Terminal = {
      out: (text) => write('stdout', `${text}\n`),
      say: (text) => write('stdout', `${text}\n`),
      err: (text) => write('stderr', text),
      hasReader: () => true,
      isInteractive: false,
      live: () => {},
      isScreen: false,
      columns: 80,
      resized: () => new Promise(() => {}),
    };
    process.chdir(cwd);
    process.env = env;
    try {
      const { signal } = new AbortController();
      return { code: await run(args, { terminal, signal, createLog: () => silentLog }), ...output };
    } finally {
      process.env = before.env;
      process.chdir(before.cwd);
    }
  };
  const done = turn.then(call);
  turn = done.catch(() => {}); // The caller handles it.
  return done;
}

export function startProcess(file: string, args: string[], cwd: string, env: Record<string, string>): Running {
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '', text: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      output[name] += chunk;
      output.text += chunk;
    });
  }
  const handle: Running = {
    pid: child.pid ?? -1,
    child,
    done: once(child, 'close').then(([code]) => {
      running.delete(handle);
      return { code: code as number | null, ...output };
    }),
    async saw(text) {
      while (!(typeof text === 'string' ? output.text.includes(text) : text.test(output.text))) {
        if (child.exitCode !== null) throw new Error(`it ended without saying ${text}: ${output.text}`);
        await sleep(10);
      }
      return output.text;
    },
  };
  running.add(handle);
  return handle;
}

/** Lines with more than so many characters. */
export const longLines = (text: string, most = 80): string[] =>
  text.split('\n').filter((line) => [...line].length > most);
