import { link, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { RetryLater } from '../../../model/errors.ts';
import { holdName, isAbandoned } from './holder.ts';

const ENDING = '.lock';

/**
 * A rename asks no questions. So whoever replaces a file holds this lock while it looks whether the file is still the one it has
 * read, and renames. Writers that share a state database never meet here; this is for those that do not.
 */
export async function lockFile(target: string, file: string): Promise<{ release(): Promise<void> }> {
  const lock = join(dirname(target), `.${basename(target)}${ENDING}`);
  const held = holdName(basename(target), 'lock');
  const mine = join(dirname(target), held.name);
  const take = async (): Promise<boolean> => {
    try {
      // Linked, not opened: it comes into being with its holder's name in it, whenever we are killed.
      await writeFile(mine, held.name);
      await link(mine, lock);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    } finally {
      await rm(mine, { force: true });
    }
  };
  if (!(await take())) {
    if (await isLeft(lock)) await rm(lock, { force: true });
    if (!(await take())) {
      held.release();
      throw new RetryLater(`another writer is replacing ${file} now`, {
        kept: 'the file of the other writer; nothing of this batch was written to it',
        next: 'see that only one Tributary (one state database) writes this source into this lake; then run again',
      });
    }
  }
  return {
    async release() {
      await rm(lock, { force: true });
      held.release();
    },
  };
}

/** Of whatever file: what it holds says whose it is. */
export const isLock = (name: string): boolean => name.endsWith(ENDING);

/** Its holder, whose name it holds, was killed. */
export async function isLeft(lock: string): Promise<boolean> {
  try {
    return isAbandoned(await readFile(lock, 'utf8'), (await stat(lock)).mtimeMs);
  } catch (error) {
    // Recovery: it was given back in this moment.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    throw error;
  }
}
