import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { closeSync, constants, fstatSync, linkSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openStateFolder } from '../cursor/embedded/state-folder.ts';
import { ConfigError } from '../model/errors.ts';

/** In ascending order: each role includes the ones before it. */
export const ROLES = ['metrics', 'read', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export interface Token {
  /** The name of its holder in the audit trail. */
  name: string;
  role: Role;
  secret: string;
  expiresAt?: number | undefined;
}

const COMPARE_KEY = randomBytes(32);

/** Compares in constant time. Both are hashed first, so that timing does not reveal the length either. */
export function isSame(given: string, wanted: string): boolean {
  const digest = (text: string): Buffer => createHmac('sha256', COMPARE_KEY).update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}

/**
 * The token of a control room whose config has none: generated at the first start, and readable only by the user who runs it. It is in
 * the state folder, and opened by the same rules: root follows no symbolic link to it, and uses no file of another user.
 */
export async function ownToken(folder: string): Promise<string> {
  const home = await openStateFolder(folder);
  const path = join(home.path, NAME);
  try {
    make(path);
    return read(path, join(folder, NAME));
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`the token of the control room cannot be kept in ${join(folder, NAME)} (${code})`, {
      kept: 'nothing was started',
      next: 'set http.token to a long random text (openssl rand -hex 32 makes one), or make the folder writable',
    });
  } finally {
    await home.close();
  }
}

const NAME = 'http-token';

/** Written completely, then linked to its name: if two first starts race, one token wins, and none is read half written. */
function make(path: string): void {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' });
  try {
    linkSync(draft, path);
  } catch (error) {
    // Recovery: another process was first; uses its token.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft);
  }
}

/** Refuses a file that other users own or can read: its token is no secret. */
function read(path: string, shown: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { uid, mode } = fstatSync(file);
    const isOurs = process.getuid === undefined || uid === process.getuid();
    const token = readFileSync(file, 'utf8').trim();
    if (isOurs && (mode & 0o077) === 0 && token.length >= 16) return token;
    throw new ConfigError(`${shown} cannot be trusted: other users own it or can read it, or it is too short`, {
      kept: 'nothing was started',
      next: `delete it (the next start makes another), or set http.token`,
    });
  } finally {
    closeSync(file);
  }
}
