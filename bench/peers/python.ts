import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'tributary-bench');
const PYTHON = process.env.PYTHON ?? 'python3';

/** A file of this folder. */
export const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** The bin folder of a Python environment with these pins, created once and kept in the user's cache. */
export async function pythonWith(pinsFile: string): Promise<string> {
  const pins = await readFile(here(pinsFile), 'utf8');
  const place = join(CACHE, `python-${createHash('sha256').update(pins).digest('hex').slice(0, 12)}`);
  const finished = join(place, 'finished');
  if (!existsSync(finished)) {
    await rm(place, { recursive: true, force: true });
    await mkdir(CACHE, { recursive: true });
    await run(PYTHON, ['-m', 'venv', place]);
    await run(join(place, 'bin/pip'), ['install', '--quiet', '--requirement', here(pinsFile)]);
    // An interrupted installation lacks this file, and is repeated.
    await writeFile(finished, '');
  }
  return join(place, 'bin');
}

export async function pythonVersion(bin: string): Promise<string> {
  const { stdout } = await run(join(bin, 'python'), ['--version']);
  return stdout.trim();
}

/** The pinned direct dependencies, with their versions. */
export async function pinned(pinsFile: string): Promise<Map<string, string>> {
  const text = await readFile(here(pinsFile), 'utf8');
  const pairs = [...text.matchAll(/^([\w-]+)(?:\[[^\]]*\])?(?:==| @ \S+@)(\S+)$/gm)];
  return new Map(pairs.map(([, name = '', version = '']) => [name, version]));
}
