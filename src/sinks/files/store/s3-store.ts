import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { ConfigError } from '../../../model/errors.ts';
import { onDisk } from '../../../model/io-errors.ts';
import { holdName, isAbandoned, openFile, writeAt } from './folder-file.ts';
import { type Bucket, createBucket } from './s3-bucket.ts';
import { type OpenFile, ReplacedMeanwhile, type Store } from './store.ts';

/** Longer than clocks differ, so that uploads in progress are not aborted. */
const LEFT_AFTER_MS = 24 * 60 * 60_000;

/**
 * S3 has no rename: a file is built on the local disk and uploaded with one conditional request, which fails if another writer was faster.
 * Path style is `http://host/bucket/key` instead of `http://bucket.host/key`, for servers other than Amazon's.
 */
export function createS3Store({ url, pathStyle }: { url: string; pathStyle: boolean }): Store {
  const { name, prefix } = parseUrl(url);
  const bucket = createBucket({ name, pathStyle });
  const scratch = openScratch();
  const keyOf = (path: string): string => `${prefix}${path}`;
  return {
    place: `Parquet files in s3://${name}/${prefix}`,
    isRemote: true,
    async *list(folder, beginning = '') {
      for await (const { key, ...rest } of bucket.list(keyOf(`${folder}/${beginning}`)))
        yield { path: key.slice(prefix.length), ...rest };
    },
    open: (path) => openObject(bucket, keyOf(path), path),
    async stage(path) {
      const { path: local, ...file } = await scratch.create(path);
      return {
        ...file,
        async publish(over) {
          const { size } = await stat(local);
          // If the response is lost and the request retried, the mark tells our own object from another writer's.
          const object = { stream: createReadStream(resolve(local)), size, over, mark: randomUUID() };
          const put = await bucket.put(keyOf(path), object);
          if (typeof put === 'string') throw new ReplacedMeanwhile(path, put);
          return put.identity;
        },
      };
    },
    async remove(path, identity) {
      const isOther = identity !== undefined && (await bucket.head(keyOf(path)))?.identity !== identity;
      if (isOther) throw new ReplacedMeanwhile(path);
      await bucket.remove(keyOf(path), identity);
    },
    async removeLeftovers(folder, own) {
      await scratch.removeLeftovers();
      // Only files in folders are large enough for multipart uploads.
      if (folder === undefined) return;
      const isOwn = (key: string): boolean => own !== undefined && key.endsWith(`/${own}`);
      await bucket.abortUploads(
        keyOf(`${folder}/`),
        ({ key, begunAt }) => isOwn(key) || (key.endsWith('.parquet') && Date.now() - begunAt > LEFT_AFTER_MS),
      );
    },
    close: async () => bucket.close(),
  };
}

function parseUrl(url: string): { name: string; prefix: string } {
  const [, name, rest = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,62})(?:\/(.*))?$/.exec(url) ?? [];
  const steps = rest.split('/').filter((step) => step !== '');
  if (name === undefined || steps.some((step) => step === '.' || step === '..')) {
    throw new ConfigError(`"${url}" is not a place for a lake`, {
      next: 'write it as s3://bucket/prefix; no step of it may be . or .. itself',
    });
  }
  return { name, prefix: steps.map((step) => `${step}/`).join('') };
}

async function openObject(bucket: Bucket, key: string, path: string): Promise<OpenFile | undefined> {
  const found = await bucket.head(key);
  if (!found) return undefined;
  return {
    name: path,
    size: found.size,
    identity: found.identity,
    // Reads this version only: the request fails if the object was replaced meanwhile.
    read: (start, end) => bucket.read(key, start, end, found.identity),
    close: async () => {},
  };
}

/** One folder per user, readable only by that user: the files may hold personal data. */
const FOLDER = join(tmpdir(), `tributary-lake-${process.getuid?.() ?? 'user'}`);

const openScratch = () =>
  onDisk(FOLDER, {
    async create(name: string) {
      await mkdir(FOLDER, { recursive: true, mode: 0o700 });
      await checkOwn();
      const held = holdName(basename(name), 'tmp');
      const path = join(FOLDER, held.name);
      const handle = await open(path, 'wx', 0o600);
      return {
        path,
        write: (bytes: Uint8Array, at: number) => writeAt(handle, bytes, at),
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
    async removeLeftovers() {
      for (const name of await readdir(FOLDER).catch(() => [])) {
        const stats = await lstat(join(FOLDER, name)).catch(() => undefined);
        if (stats?.isFile() && isAbandoned(name, stats.mtimeMs)) await rm(join(FOLDER, name), { force: true });
      }
    },
  });

async function checkOwn(): Promise<void> {
  const stats = await lstat(FOLDER);
  if (stats.isDirectory() && (process.getuid === undefined || stats.uid === process.getuid())) return;
  throw new ConfigError(`${FOLDER} is not a folder of this user`, {
    next: 'remove it, or set TMPDIR to another place',
  });
}
