import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Finished, MAIN, type Place } from './cli.ts';

/** Waits for a text, then types, or resizes the window to so many columns. */
export type Typed = { after: string } & ({ type: string } | { resize: number });

/** Runs a command on a terminal of 80 columns (`script` of util-linux), and types the answers. */
export async function runOnTerminal(
  { dir }: Place,
  args: readonly string[],
  { env = {}, typed = [] }: { env?: Record<string, string>; typed?: readonly Typed[] } = {},
): Promise<Finished> {
  const quoted = [process.execPath, MAIN, ...args].map((arg) => `'${arg}'`).join(' ');
  const child = spawn('script', ['-qec', `stty cols 80 rows 24; exec ${quoted}`, '/dev/null'], {
    cwd: dir,
    env: { PATH: process.env.PATH ?? '', HOME: dir, TERM: 'xterm', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let text = '';
  let seen = 0;
  const left = [...typed];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const next = left[0];
    const at = next ? text.indexOf(next.after, seen) : -1;
    if (!next || at < 0) return;
    left.shift();
    seen = at + next.after.length;
    if ('type' in next) child.stdin.write(next.type);
    else resize(child.pid, next.resize);
  });
  const [code] = await once(child, 'close');
  return { code: code as number | null, stdout: text, stderr: '', text };
}

const resize = (script: number | undefined, columns: number): void =>
  void execFileSync('sh', ['-c', `stty cols ${columns} < /dev/$(ps -o tty= --ppid ${script})`]);

/** Without escape codes and carriage returns. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes begin with one
export const plain = (text: string): string => text.replace(/\x1b\[[\d;?]*[A-Za-z]/g, '').replaceAll('\r', '');
