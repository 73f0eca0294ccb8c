import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdir, mkdtemp, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../../model/errors.ts';
import type { Binaries } from './binaries.ts';
import type { RunAs } from './run-as.ts';

/** A data directory that is whole: initialised by initdb, with our password, of the major version of our programs. */
export interface Cluster {
  data: string;
  password: string;
}

export const USER = 'tributary';

const PASSWORD_FILE = 'tributary.password';
const UNFINISHED = 'postgres.init-';

/**
 * Finds the data directory, or makes it. It is made aside and renamed when it is whole, password included, so that a kill in
 * the middle of initdb leaves nothing that the next start could take for a database; of two makers one rename wins.
 */
export async function prepareCluster(dir: string, programs: Binaries, runAs: RunAs, sync: boolean): Promise<Cluster> {
  const data = dataDirectory(dir);
  if (!(await versionOf(data))) await makeCluster(dir, programs, runAs, sync);
  const version = await versionOf(data);
  if (version !== programs.major) {
    throw new ConfigError(`${data} belongs to Postgres ${version}; this tributary brings Postgres ${programs.major}`, {
      kept: 'nothing was changed',
      next: `run the tributary version that made it, or move ${data} aside and sync again, or set state.url`,
    });
  }
  return { data, password: await readFile(join(data, PASSWORD_FILE), 'utf8') };
}

export const dataDirectory = (dir: string): string => join(dir, 'postgres');

/** What killed initialisations left. Only for the one who holds the server: a slower maker would lose its ground. */
export async function sweepUnfinished(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    if (!name.startsWith(UNFINISHED)) continue;
    // Recovery: an orphaned initdb is still writing there; it is swept the next time.
    await rm(join(dir, name), { recursive: true, force: true }).catch(() => {});
  }
}

async function versionOf(data: string): Promise<string | undefined> {
  try {
    return (await readFile(join(data, 'PG_VERSION'), 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new ConfigError(`${data} cannot be read`, {
      next: 'run tributary as the user who ran it first, or hand the folder over with chown -R',
      cause: error,
    });
  }
}

async function makeCluster(dir: string, programs: Binaries, runAs: RunAs, sync: boolean): Promise<void> {
  const workshop = await mkdtemp(join(dir, UNFINISHED));
  try {
    const data = join(workshop, 'data');
    const passwordFile = join(workshop, 'password');
    await mkdir(data, { mode: 0o700 });
    await writeFile(passwordFile, randomBytes(24).toString('base64url'), { mode: 0o600 });
    const { owner } = runAs;
    if (owner) for (const path of [workshop, data, passwordFile]) await chown(path, owner.uid, owner.gid);
    await runInitdb(programs, runAs, [
      ...[`--pgdata=${data}`, `--username=${USER}`, `--pwfile=${passwordFile}`, '--auth=scram-sha-256'],
      // The builtin locale sorts the same on every machine and needs no locale of the operating system.
      ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
      ...(sync ? [] : ['--no-sync']),
    ]);
    await rename(passwordFile, join(data, PASSWORD_FILE));
    if (sync) await syncFolder(data);
    await rename(data, dataDirectory(dir));
    if (sync) await syncFolder(dir);
  } catch (error) {
    // Recovery: another process was faster (its directory stands, and swept ours away); use that.
    if (!(await versionOf(dataDirectory(dir)))) throw error;
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

async function runInitdb(programs: Binaries, runAs: RunAs, flags: string[]): Promise<void> {
  const { file, args, options } = runAs.launch(programs.initdb, flags);
  const output: Buffer[] = [];
  const status = await new Promise<number | string>((resolve) => {
    // Its own process group: Ctrl-C on the terminal is for us to handle.
    const child = spawn(file, args, { ...options, cwd: '/', env: serverEnv(programs), detached: true });
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => output.push(chunk));
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'killed'));
  });
  if (status === 0) return;
  throw new ConfigError(`the embedded Postgres could not be initialised (initdb ended with ${status})`, {
    faults: Buffer.concat(output).toString().trim().split('\n').slice(-5),
    next: 'mend what initdb names, or set state.url to a Postgres server',
  });
}

/** Little of our environment: PGDATA, PGPORT or LC_ALL of the person would change what these programs do. */
export function serverEnv({ env }: Binaries): Record<string, string> {
  return { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', ...env };
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
