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
  type Home,
  launchOn,
  makerUser,
  serverEnv,
  type User,
} from './home.ts';

/** A data directory that is whole: initialised by initdb, with our password, of the major version of our programs. */
export type Cluster = Awaited<ReturnType<typeof prepareCluster>>;

export const USER = 'tributary';

const PASSWORD_FILE = 'tributary.password';
const UNFINISHED = 'postgres.init-';

/** Finds the data directory, or makes it aside and renames it when it is whole: a killed initdb leaves nothing that looks like a database. */
export async function prepareCluster(home: Home, programs: Binaries, sync: boolean) {
  const data = dataDirectory(home.path);
  if (!(await versionOf(home))) await makeCluster(home, programs, sync);
  const version = await versionOf(home);
  if (version !== programs.major) {
    const shown = dataDirectory(home.dir);
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

/** What killed initialisations left. Only for the one who holds the server: a slower maker would lose its ground. */
export async function removeUnfinished({ path }: Home): Promise<void> {
  for (const name of await readdir(path)) {
    if (!name.startsWith(UNFINISHED)) continue;
    // Recovery: an orphaned initdb is still writing there; it is swept the next time.
    await remove(join(path, name)).catch(() => {});
  }
}

/** What belongs to another user is emptied as that user: by a link in it, root could be led to remove something else. */
async function remove(path: string): Promise<void> {
  const found = await lstat(path);
  if (found.uid === process.getuid?.() || !found.isDirectory()) return rm(path, { recursive: true, force: true });
  const { options } = launchOn(path, found);
  await once(spawn('find', ['.', '-mindepth', '1', '-delete'], { ...options, stdio: 'ignore' }), 'exit');
  await rmdir(path);
}

async function versionOf({ dir, path }: Home): Promise<string | undefined> {
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

async function makeCluster(home: Home, programs: Binaries, sync: boolean): Promise<void> {
  const { path, user } = home;
  const maker = user && (await makerUser());
  const data = await mkdtemp(join(path, UNFINISHED));
  try {
    if (maker) await chown(data, maker.uid, maker.gid);
    const password = randomBytes(24).toString('base64url');
    await runInitdb(programs, data, maker, password, sync ? [] : ['--no-sync']);
    await (await createFile(join(data, PASSWORD_FILE), password, user)).close();
    if (sync) await syncFolder(data);
    await rename(data, dataDirectory(path));
    if (sync) await syncFolder(path);
  } catch (error) {
    await remove(data).catch(() => {});
    // Recovery: another process was faster (its directory stands, and swept ours away); use that.
    if (!(await versionOf(home))) throw error;
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
      // By the open file: the other user cannot come to it by way of our folder.
      ...[`--pgdata=${launch.data}`, `--username=${USER}`, `--pwfile=${user ? '/proc/self/fd/3' : passwordFile}`],
      // The builtin locale sorts the same on every machine and needs no locale of the operating system.
      ...['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--locale-provider=builtin'],
      ...['--builtin-locale=C.UTF-8', ...flags],
    ];
    const child = spawn(programs.initdb, args, {
      ...launch.options,
      env: serverEnv(programs),
      // Its own process group: Ctrl-C on the terminal is for us to handle.
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

/** A rename is durable only when its directory is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
