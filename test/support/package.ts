import { execFile } from 'node:child_process';
import { mkdtemp, realpath, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll } from 'vitest';
import { filesIn } from './lake-readers.ts';

/** The package as somebody gets it: packed, and installed where nothing else is. */

const run = promisify(execFile);
const folders: string[] = [];

afterAll(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true, maxRetries: 20 });
});

export async function emptyFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tributary-package-')));
  folders.push(folder);
  return folder;
}

export type Tarball = Awaited<ReturnType<typeof pack>>;

/** Without `prepare`: `npm test` has built it, and building again would pull it from under tests that run beside this one. */
export async function pack() {
  const folder = await emptyFolder();
  const { stdout } = await npm(process.cwd(), ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]);
  const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: Array<{ path: string }> }];
  return { path: join(folder, filename), files: files.map(({ path }) => path) };
}

/** What npm has fetched once it does not fetch again: a machine that ran `npm ci` needs next to no network. */
const QUIET = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];

export const npmInstall = (folder: string, args: readonly string[]): Promise<unknown> =>
  npm(folder, ['install', ...QUIET, ...args]);

export const npmCi = (folder: string, args: readonly string[]): Promise<unknown> =>
  npm(folder, ['ci', ...QUIET, ...args]);

function npm(cwd: string, args: readonly string[]): Promise<{ stdout: string }> {
  // Settings of the npm that runs these tests would reach this one as npm_config_….
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  return run('npm', [...args], { cwd, env, maxBuffer: 2 ** 26 });
}

/** Every file below a folder with its size and time: two of these differ when anything was written. */
export async function listing(folder: string): Promise<string[]> {
  const lines = (await filesIn(folder)).map(async (file) => {
    const { size, mtimeMs } = await stat(join(folder, file));
    return `${file} ${size} ${mtimeMs}`;
  });
  return Promise.all(lines);
}
