import { execFile } from 'node:child_process';
import { mkdtemp, realpath, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll } from 'vitest';
import { filesIn } from './lake-readers.ts';

/** The package as users get it: packed, and installed in an empty project. */

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

/** Without `prepare`: `npm test` has built it, and another build would disturb concurrent tests. */
export async function pack() {
  const folder = await emptyFolder();
  const { stdout } = await npm(process.cwd(), ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]);
  const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: Array<{ path: string }> }];
  return { path: join(folder, filename), files: files.map(({ path }) => path) };
}

/** Uses npm's cache: after `npm ci` it needs almost no network. */
const QUIET = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];

export const npmInstall = (folder: string, args: readonly string[]): Promise<unknown> =>
  npm(folder, ['install', ...QUIET, ...args]);

export const npmCi = (folder: string, args: readonly string[]): Promise<unknown> =>
  npm(folder, ['ci', ...QUIET, ...args]);

function npm(cwd: string, args: readonly string[]): Promise<{ stdout: string }> {
  // The npm that runs these tests passes its settings on as npm_config_….
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  return run('npm', [...args], { cwd, env, maxBuffer: 2 ** 26 });
}

/** Every file below a folder with its size and time: two listings differ after any write. */
export async function listing(folder: string): Promise<string[]> {
  const lines = (await filesIn(folder)).map(async (file) => {
    const { size, mtimeMs } = await stat(join(folder, file));
    return `${file} ${size} ${mtimeMs}`;
  });
  return Promise.all(lines);
}
