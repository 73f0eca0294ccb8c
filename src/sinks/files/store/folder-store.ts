import { chmod, constants, type FileHandle, lstat, mkdir, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { ConfigError } from '../../../model/errors.ts';
import { onDisk } from '../../../model/io-errors.ts';
import { holdName, identityOf, isAbandoned, isLeft, isLock, openFile, whileLocked, writeAt } from './folder-file.ts';
import { type ListedFile, ReplacedMeanwhile, type Store } from './store.ts';

/** A lake in a folder. A rename within one directory is atomic: readers see either the complete old file or the complete new one. */
export function createFolderStore(path: string, { fileMode }: { fileMode?: number | undefined } = {}): Store {
  const root = resolve(path);

  /** New folders get the mode of the umask, or the config's file mode plus search permission wherever it permits reading. */
  const makeFolder = async (folder: string): Promise<void> => {
    const first = await mkdir(folder, { recursive: true });
    if (first === undefined || fileMode === undefined) return;
    for (let made = folder; made.length >= first.length; made = dirname(made))
      await chmod(made, fileMode | ((fileMode & 0o444) >> 2));
  };

  /** Resolves a file's path. Throws if a symbolic link leads out of the lake, where we would write or delete foreign files. */
  const locate = async (file: string): Promise<string> => {
    const target = resolve(root, file);
    const folder = dirname(target);
    await makeFolder(root);
    const realRoot = await realpath(root);
    const isInside = (real: string): boolean => real === realRoot || real.startsWith(`${realRoot}${sep}`);
    // Before `makeFolder`, which would otherwise create folders beyond the link.
    if (!target.startsWith(`${root}${sep}`) || !isInside(await nearestReal(folder))) throw leadsOut(file);
    await makeFolder(folder);
    if (!isInside(await realpath(folder))) throw leadsOut(file);
    return target;
  };

  return onDisk<Store>(root, {
    place: `Parquet files in ${root}`,
    isRemote: false,
    async stage(file) {
      const target = await locate(file);
      const held = holdName(basename(target), 'tmp');
      const temp = join(dirname(target), held.name);
      // `wx` fails if another writer has a file of this name.
      const handle = await open(temp, 'wx');
      if (fileMode !== undefined) await handle.chmod(fileMode);
      let isThere = true;
      return {
        write: (bytes, at) => writeAt(handle, bytes, at),
        async finish() {
          await handle.sync();
          await handle.close();
          return openFile(await open(temp, 'r'), file);
        },
        publish: (over) =>
          whileLocked(target, file, async () => {
            if ((await identityAt(target, file)) !== over) throw new ReplacedMeanwhile(file);
            await rename(temp, target);
            isThere = false;
            // Without a sync of the folder, which holds the name, a power cut could bring back the old file.
            await syncFolders(root, dirname(target), over === undefined);
            return identityOf(await lstat(target, { bigint: true }));
          }),
        async discard() {
          await handle.close();
          if (isThere) await rm(temp, { force: true });
          held.release();
        },
      };
    },
    async *list(folder, beginning = '') {
      for await (const { path: found } of walk(root, folder)) {
        if (!found.startsWith(`${folder}/${beginning}`)) continue;
        const stats = await lstat(join(root, found), { bigint: true }).catch(ifAbsent);
        if (!stats?.isFile()) continue;
        yield { path: found, identity: identityOf(stats), modifiedAt: Number(stats.mtimeMs) } satisfies ListedFile;
      }
    },
    async open(file) {
      const handle = await openExisting(resolve(root, file), file);
      return handle && openFile(handle, file);
    },
    async remove(file, identity) {
      const target = await locate(file);
      const work = async (): Promise<void> => {
        if (identity !== undefined && (await identityAt(target, file)) !== identity) throw new ReplacedMeanwhile(file);
        await rm(target, { force: true });
        await syncFolders(root, dirname(target), false);
      };
      await (identity === undefined ? work() : whileLocked(target, file, work));
    },
    async removeLeftovers(folder) {
      for await (const { path: found, entry } of walk(root, folder)) {
        if (!entry.startsWith('.')) continue;
        const full = join(root, found);
        const stats = await lstat(full).catch(ifAbsent);
        if (!stats?.isFile()) continue;
        const isOurs = isAbandoned(entry, stats.mtimeMs) || (isLock(entry) && (await isLeft(full)));
        if (isOurs) await rm(full, { force: true });
      }
    },
    close: async () => {},
  });
}

const nearestReal = async (folder: string): Promise<string> =>
  (await realpath(folder).catch(ifAbsent)) ?? nearestReal(dirname(folder));

async function openExisting(target: string, file: string): Promise<FileHandle | undefined> {
  try {
    return await open(target, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ELOOP') throw leadsOut(file);
    return ifAbsent(error);
  }
}

async function identityAt(target: string, file: string): Promise<string | undefined> {
  const stats = await lstat(target, { bigint: true }).catch(ifAbsent);
  if (stats && !stats.isFile()) throw leadsOut(file);
  return stats && identityOf(stats);
}

/** Syncs the folder and, for a new file, its parents, which may be new too. */
async function syncFolders(root: string, folder: string, isNew: boolean): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  if (isNew && folder !== root) await syncFolders(root, dirname(folder), true);
}

/** Every file below a folder; without a folder, only files at the root. Links are not followed. */
async function* walk(root: string, folder?: string): AsyncGenerator<{ path: string; entry: string }> {
  const entries = await readdir(join(root, folder ?? ''), { withFileTypes: true }).catch(ifAbsent);
  for (const entry of (entries ?? []).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = folder === undefined ? entry.name : `${folder}/${entry.name}`;
    if (!entry.isDirectory()) yield { path, entry: entry.name };
    else if (folder !== undefined) yield* walk(root, path);
  }
}

function ifAbsent(error: unknown): undefined {
  // Recovery: a missing folder is empty.
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
  throw error;
}

const leadsOut = (file: string): ConfigError =>
  new ConfigError(`${file} leads out of the lake, or is not a plain file`, {
    kept: 'everything; nothing was read or written there',
    next: 'take the link out of the lake; to keep a lake elsewhere, give its path as path of the sink',
  });
