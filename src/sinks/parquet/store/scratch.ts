import { type FileHandle, lstat, mkdir, open, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { onDisk } from '../../../model/disk-errors.ts';
import { ConfigError } from '../../../model/errors.ts';
import { openFile, writeAt } from './folder-file.ts';
import { holdName, isAbandoned } from './holder.ts';
import type { OpenFile } from './store.ts';

/** Files on the local disk on their way to somewhere else. */
export interface Scratch {
  create(name: string): Promise<ScratchFile>;
  /** Removes those of processes that are gone. */
  sweep(): Promise<void>;
}

export interface ScratchFile {
  readonly path: string;
  write(bytes: Uint8Array, at: number): Promise<void>;
  finish(): Promise<OpenFile>;
  discard(): Promise<void>;
}

/** One folder per user, which nobody else may look into: what is on its way may be personal. */
const FOLDER = join(tmpdir(), `tributary-lake-${process.getuid?.() ?? 'user'}`);

export function openScratch(): Scratch {
  return onDisk<Scratch>(FOLDER, {
    async create(name) {
      await mkdir(FOLDER, { recursive: true, mode: 0o700 });
      await checkOwn();
      const held = holdName(basename(name), 'tmp');
      const path = join(FOLDER, held.name);
      const handle: FileHandle = await open(path, 'wx', 0o600);
      return {
        path,
        write: (bytes, at) => writeAt(handle, bytes, at),
        async finish() {
          await handle.close();
          return openFile(await open(path, 'r'), name);
        },
        async discard() {
          await handle.close();
          await rm(path, { force: true });
          held.release();
        },
      };
    },
    async sweep() {
      for (const name of await readdir(FOLDER).catch(() => [])) {
        const stats = await lstat(join(FOLDER, name)).catch(() => undefined);
        if (stats?.isFile() && isAbandoned(name, stats.mtimeMs)) await rm(join(FOLDER, name), { force: true });
      }
    },
  });
}

async function checkOwn(): Promise<void> {
  const stats = await lstat(FOLDER);
  if (stats.isDirectory() && (process.getuid === undefined || stats.uid === process.getuid())) return;
  throw new ConfigError(`${FOLDER} is not a folder of this user`, {
    next: 'remove it, or set TMPDIR to another place',
  });
}
