import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { lookAtPostmaster, stopPostmaster } from '../../src/cursor/embedded/server.ts';

const SCRIPT = fileURLToPath(new URL('embedded-child.ts', import.meta.url));

export type Child = ReturnType<typeof startChild>;

/** A folder as from `mktemp -d`, and a process in it that uses the embedded Postgres. */
export function startChild(dir: string, options: { attach?: boolean; as?: string } = {}) {
  const script = ['--import', import.meta.resolve('tsx'), SCRIPT, dir];
  if (options.attach) script.push('attach');
  const [file = '', ...args] = [
    ...(options.as === undefined ? [] : asOwnerOf(options.as)),
    process.execPath,
    ...script,
  ];
  const child = spawn(file, args, {
    detached: true,
    // The user may lack access to the machine's own.
    env: { ...process.env, ...(options.as !== undefined && { TMPDIR: options.as }) },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const answer = (async () => {
    for await (const line of createInterface({ input: child.stdout }))
      return JSON.parse(line) as { url?: string; refused?: string; uid?: number };
    throw new Error(`the child ended without an answer: ${await exited}`);
  })();
  answer.catch(() => {});
  return {
    process: child,
    pid: child.pid ?? -1,
    /** Its output: the URL, or why it was refused. */
    answer,
    /** Closes its stdin, so that it stops the server and exits. */
    async close() {
      child.stdin.end();
      await exited;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Runs as the owner of a folder, with permission to read this checkout. */
function asOwnerOf(folder: string): string[] {
  if (process.getuid?.() !== 0) return [];
  const { uid, gid } = statSync(folder);
  const rights = '-all,+dac_read_search';
  return [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    `--inh-caps=${rights}`,
    `--ambient-caps=${rights}`,
  ];
}

export async function temporaryFolder(): Promise<{ dir: string; remove(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'tributary-embedded-'));
  return {
    dir,
    async remove() {
      await stopPostmaster(join(dir, 'postgres'));
      await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
}

export async function postmasterOf(dir: string): Promise<number | undefined> {
  const found = await lookAtPostmaster(join(dir, 'postgres'));
  return found.state === 'ready' || found.state === 'busy' ? found.pid : undefined;
}
