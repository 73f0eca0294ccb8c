import type { SpawnOptions } from 'node:child_process';
import { constants, readFileSync } from 'node:fs';
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../../model/errors.ts';

/** The state folder, and the user whom the server runs as: Postgres refuses to run as root. */
export interface Home {
  /** As people know it: for messages. */
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
    await mkdir(dir, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new ConfigError(`the state folder ${dir} cannot be made (${(cause as NodeJS.ErrnoException).code})`, {
      next: 'run it in a folder that this user may write, or set state.url to a Postgres server',
      cause,
    });
  }
  return process.getuid?.() === 0 ? openAsRoot(dir) : { dir, path: dir, user: undefined, close: async () => {} };
}

/**
 * Whoever owns the folder could lead root astray by a link in it, so root uses only a folder of its own. It stays open for as long as
 * we are here and is named by that: the owner of a folder above it could put another one in its place.
 */
async function openAsRoot(dir: string): Promise<Home> {
  const folder = await open(dir, constants.O_DIRECTORY | constants.O_NOFOLLOW).catch((cause: unknown) => {
    throw new ConfigError(`the state folder ${dir} is a link or no folder, and root does not follow it`, {
      kept: 'nothing was changed',
      next: 'run tributary as an ordinary user, in the folder itself, or set state.url to a Postgres server',
      cause,
    });
  });
  try {
    if (process.platform !== 'linux') throw unfit('the embedded Postgres does not run for root on this system');
    const { uid, mode } = await folder.stat();
    if (uid !== 0) throw unfit(`the state folder ${dir} belongs to user ${uid}, and root does not work in it`);
    // Closed to the server's user as well: from its data it could otherwise climb to whatever lies around.
    if ((mode & 0o077) !== 0) await folder.chmod(0o700);
    const path = `/proc/self/fd/${folder.fd}`;
    return { dir, path, user: await serverUser(path), close: () => folder.close() };
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

/** Whoever the data was given to; in the beginning `postgres`, else `nobody`. A user is never made for it. */
async function serverUser(path: string): Promise<User> {
  const found = await stat(dataDirectory(path)).catch(() => undefined);
  if (found?.uid === 0)
    throw unfit('the data of the embedded Postgres belongs to root, and Postgres does not run as root');
  return found ?? userNamed('postgres') ?? userNamed('nobody') ?? { uid: 65534, gid: 65534 };
}

function userNamed(name: string): User | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}

/**
 * How a program of Postgres is started on a data directory. Root's child enters the directory before it becomes the other user, and
 * names it by where it stands: that needs no right on any folder above, and so none is given.
 */
export function launchOn(data: string, user: User | undefined): { data: string; options: SpawnOptions } {
  if (!user) return { data, options: { cwd: '/' } };
  return { data: '/proc/self/cwd', options: { cwd: data, uid: user.uid, gid: user.gid } };
}

/** Creates a file and hands it over. Neither can be led astray by a link: the file must be new, and is named by its handle. */
export async function createFile(path: string, text: string, user: User | undefined): Promise<FileHandle> {
  const file = await open(path, 'wx', 0o600);
  await file.writeFile(text);
  if (user) await file.chown(user.uid, user.gid);
  await file.sync();
  return file;
}
