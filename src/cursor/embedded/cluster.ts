import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chown, lstat, mkdtemp, open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../../model/errors.ts';
import {
  type Binaries,
  createFile,
  dataDirectory,
  initdbUser,
  launchOn,
  type StateFolder,
  serverEnv,
  type User,
} from './state-folder.ts';

/** A complete data directory: initialised by initdb, with our password, and of the same major version as our binaries. */
export type Cluster = Awaited<ReturnType<typeof prepareCluster>>;

export const USER = 'tributary';

const PASSWORD_FILE = 'tributary.password';
const UNFINISHED = 'postgres.init-';

/** Opens the data directory. A new one is created under a temporary name, so that a killed initdb leaves nothing that looks complete. */
export async function prepareCluster(folder: StateFolder, programs: Binaries, sync: boolean) {
  const data = dataDirectory(folder.path);
  if (!(await versionOf(folder))) await makeCluster(folder, programs, sync);
  const version = await versionOf(folder);
  if (version !== programs.major) {
    const shown = dataDirectory(folder.dir);
    throw new ConfigError(
      `${shown} was created by Postgres ${version}; this version of tributary includes Postgres ${programs.major}`,
      {
        kept: 'nothing was changed',
        next: `run the tributary version that made it, or move ${shown} aside and sync again, or set state.url`,
      },
    );
  }
  return { data, password: await readFile(join(data, PASSWORD_FILE), 'utf8') };
}

/** Removes temporary directories of killed initialisations. Only for the owner of the server: others may still be initialising. */
export async function removeUnfinished({ path }: StateFolder): Promise<void> {
  for (const name of await readdir(path)) {
    if (!name.startsWith(UNFINISHED)) continue;
    // Recovery: an orphaned initdb is still writing there; the next owner removes it.
    await remove(join(path, name)).catch(() => {});
  }
}

/** Deletes the content as the user who owns it: as root, a link in it could make us delete something else. */
async function remove(path: string): Promise<void> {
  const found = await lstat(path);
  if (found.uid === process.getuid?.() || !found.isDirectory()) return rm(path, { recursive: true, force: true });
  const { options } = launchOn(path, found);
  await once(spawn('find', ['.', '-mindepth', '1', '-delete'], { ...options, stdio: 'ignore' }), 'exit');
  await rmdir(path);
}

async function versionOf({ dir, path }: StateFolder): Promise<string | undefined> {
  try {
    return (await readFile(join(dataDirectory(path), 'PG_VERSION'), 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new ConfigError(`${dataDirectory(dir)} cannot be read`, {
      next: 'run tributary as the user who ran it first, or hand the folder over with chown -R',
      cause: error,
    });
  }
}

async function makeCluster(folder: StateFolder, programs: Binaries, sync: boolean): Promise<void> {
  const { path, user } = folder;
  const owner = user && (await initdbUser());
  const data = await mkdtemp(join(path, UNFINISHED));
  try {
    if (owner) await chown(data, owner.uid, owner.gid);
    const password = randomBytes(24).toString('base64url');
    await runInitdb(programs, data, owner, password, sync ? [] : ['--no-sync']);
    await (await createFile(join(data, PASSWORD_FILE), password, user)).close();
    if (sync) await syncFolder(data);
    await rename(data, dataDirectory(path));
    if (sync) await syncFolder(path);
  } catch (error) {
    await remove(data).catch(() => {});
    // Recovery: another process finished first (and removed our temporary directory); its data directory is used.
    if (!(await versionOf(folder))) throw error;
  }
}

async function runInitdb(
  programs: Binaries,
  data: string,
  user: User | undefined,
  password: string,
  flags: readonly string[],
): Promise<void> {
  const launch = launchOn(data, user);
  const passwordFile = `${data}-password`;
  const secret = await createFile(passwordFile, password, user);
  const output: Buffer[] = [];
  try {
    const args = [
      // By file descriptor: the other user has no access to our folder.
      ...[`--pgdata=${launch.data}`, `--username=${USER}`, `--pwfile=${user ? '/proc/self/fd/3' : passwordFile}`],
      // The builtin locale provider sorts the same on every machine and needs no locale of the operating system.
      ...['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--locale-provider=builtin'],
      ...['--builtin-locale=C.UTF-8', ...flags],
    ];
    const child = spawn(programs.initdb, args, {
      ...launch.options,
      env: serverEnv(programs),
      // In its own process group, so that Ctrl-C does not reach it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', secret.fd],
    });
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => output.push(chunk));
    const [code, signal] = await once(child, 'close').catch((error: Error) => [error.message]);
    if (code === 0) return;
    throw new ConfigError(`the embedded Postgres could not be initialised (initdb ended with ${code ?? signal})`, {
      faults: Buffer.concat(output).toString().trim().split('\n').slice(-5),
      next: 'fix what initdb names, or set state.url to a Postgres server',
    });
  } finally {
    await secret.close();
    await rm(passwordFile, { force: true });
  }
}

/** A rename is durable only after fsync of its directory. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
