import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Scene } from './scene.ts';

/** A process of the built program. */
export interface Member {
  name: string;
  pid: number;
  child: ChildProcess;
  /** Its output on stderr so far. */
  said(): string;
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const DIARY = new URL('./diary.mjs', import.meta.url).href;

const living = new Set<Member>();

/** Its output goes to files under its name; the next process of that name appends to them. */
export function startMember({ dir, tmp, diary, config }: Scene, name: string, args: readonly string[]): Member {
  const [out, err] = [join(dir, `${name}.out`), join(dir, `${name}.err`)];
  const files = [out, err].map((file) => openSync(file, 'a'));
  const saidBefore = statSync(err).size;
  const node = ['--expose-gc', '--import', DIARY, MAIN];
  const child = spawn(process.execPath, [...node, ...args, '--config', config], {
    cwd: dir,
    env: { PATH: process.env.PATH ?? '', HOME: dir, TMPDIR: tmp, ENDURE_DIARY: diary },
    stdio: ['ignore', ...files],
  });
  for (const file of files) closeSync(file);
  const ended = once(child, 'exit').then(([code, signal]) => {
    living.delete(member);
    return { code, signal };
  });
  const said = (): string => readFileSync(err).subarray(saidBefore).toString('utf8');
  const member: Member = { name, pid: child.pid ?? -1, child, said, ended };
  living.add(member);
  return member;
}

/** Kills the remaining processes after the run, or after an error. */
export async function killLeft(): Promise<void> {
  for (const { child, ended } of living) {
    child.kill('SIGKILL');
    await ended;
  }
}

export const errorsOf = ({ dir }: Scene, name: string): string => readFileSync(join(dir, `${name}.err`), 'utf8');

/** The address of `tributary start`'s control room. */
export function controlRoomOf({ name, said }: Member): string {
  const address = /control room: (\S+)/.exec(said())?.[1];
  if (address === undefined) throw new Error(`${name} has no control room`);
  return address;
}
