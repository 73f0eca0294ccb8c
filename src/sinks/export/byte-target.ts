import { constants } from 'node:fs';
import { access, type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { ConfigError } from '../../model/errors.ts';
import { onDisk } from '../../model/io-errors.ts';
import type { ByteTarget } from './row-file.ts';

/** A file that is there whole or not at all: it is written beside its place and moved when it is finished. */
export async function createFileTarget(path: string, { replace }: { replace: boolean }): Promise<ByteTarget> {
  if (!replace && (await exists(path))) {
    throw new ConfigError(`${path} exists already`, { next: 'choose another --out, or add --force to replace it' });
  }
  const partial = `${path}.partial`;
  const file = await openOrSay(partial, path);
  return onDisk<ByteTarget>(path, {
    async write(bytes) {
      await file.write(typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
    },
    async finish() {
      await file.sync();
      await file.close();
      await rename(partial, path);
    },
    async abandon() {
      await file.close();
      await rm(partial, { force: true });
    },
  });
}

async function openOrSay(partial: string, path: string): Promise<FileHandle> {
  try {
    const file = await open(partial, 'w', 0o600);
    // Also where an earlier one was left behind: customers stand in it.
    await file.chmod(0o600);
    return file;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? `the folder ${dirname(path)} does not exist` : `it cannot be written (${code})`;
    throw new ConfigError(`--out ${path}: ${why}`, { next: 'choose another place', cause });
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path, constants.F_OK).then(
    () => true,
    () => false,
  );

/** Standard output: the reader decides how fast; one that goes away ends the writing quietly. */
export function createStreamTarget(out: Writable): ByteTarget {
  let isGone = false;
  out.once('error', () => {
    isGone = true;
  });
  return {
    async write(bytes) {
      if (isGone || out.write(bytes)) return;
      await Promise.race([drained(out), finished(out).catch(() => {})]);
    },
    finish: async () => {},
    abandon: async () => {},
  };
}

const drained = (out: Writable): Promise<void> => new Promise((resolve) => void out.once('drain', () => resolve()));
