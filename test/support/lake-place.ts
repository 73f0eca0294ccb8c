import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { GetObjectCommand, paginateListObjectsV2, S3Client } from '@aws-sdk/client-s3';
import { connect } from '../../src/cursor/database/index.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { createS3Store } from '../../src/sinks/files/store/s3-store.ts';
import type { Store } from '../../src/sinks/files/store/store.ts';
import type { Lake } from '../../src/sinks/parquet/lake.ts';
import { createParquetSink, type ParquetSink } from '../../src/sinks/parquet/parquet-sink.ts';
import { readWithDuckdb } from './lake-readers.ts';
import { stateDatabase } from './postgres.ts';
import type { S3Server } from './s3-server.ts';
import type { SinkPlace } from './sink-harness.ts';

export interface LakePlace extends SinkPlace {
  folder: string;
  stateUrl: string;
  createSink(): ParquetSink;
}

type Settings = Partial<Pick<Lake, 'scheme' | 'compression' | 'readAgainMs'>>;

/** The days of the tests count as recent. */
export const WHOLE_HISTORY = (): number => 3650 * DAY_MS;

const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'tributary-lake-'));

/** A lake with a new state, in a new folder or a shared one. */
export async function lakePlace({
  folder: shared,
  wrap = (store) => store,
  ...settings
}: Settings & { folder?: string; wrap?: (store: Store) => Store } = {}): Promise<LakePlace> {
  const folder = shared ?? (await newFolder());
  return placeOf({
    folder,
    isOwn: shared === undefined,
    settings,
    createStore: () => wrap(createFolderStore(folder)),
    readRows: (stream) => readWithDuckdb(folder, stream),
  });
}

/** A lake in a bucket of a local S3 server. Readers use a copy in a folder. */
export async function s3Place(
  server: S3Server,
  { prefix: shared, ...settings }: Settings & { prefix?: string } = {},
): Promise<LakePlace & { prefix: string }> {
  const folder = await newFolder();
  const prefix = shared ?? `lakes/${basename(folder)}`;
  const createStore = (): Store => createS3Store({ url: `s3://${server.bucket}/${prefix}`, pathStyle: true });
  const place = await placeOf({
    folder,
    isOwn: true,
    settings,
    createStore,
    async readRows(stream) {
      await rm(join(folder, stream.name), { recursive: true, force: true });
      await download(server, `${prefix}/${stream.name}/`, join(folder, stream.name));
      return readWithDuckdb(folder, stream);
    },
  });
  return { ...place, prefix };
}

/** For operations on a place without a sink. */
export const lakeOf = ({ state, folder }: Pick<LakePlace, 'state' | 'folder'>): Lake => ({
  name: 'lake',
  state,
  readAgainMs: WHOLE_HISTORY,
  scheme: 'day',
  compression: 'zstd',
  store: createFolderStore(folder),
});

interface Made {
  folder: string;
  /** No other sink writes there. */
  isOwn: boolean;
  settings: Settings;
  createStore(): Store;
  readRows: SinkPlace['readRows'];
}

async function placeOf({ folder, isOwn, settings, createStore, readRows }: Made): Promise<LakePlace> {
  const home = await stateDatabase();
  const state = connect({ url: home.url });
  return {
    state,
    folder,
    stateUrl: home.url,
    createSink: () => createParquetSink({ ...lakeOf({ state, folder }), ...settings, store: createStore() }),
    readRows,
    async close() {
      await state.close();
      await home.drop();
      if (isOwn) await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Copies objects below a prefix into a folder with a client common elsewhere, except those present. Returns all names. */
export async function download(
  { bucket }: S3Server,
  prefix: string,
  folder: string,
  known: ReadonlySet<string> = new Set(),
): Promise<Set<string>> {
  const client = new S3Client({ forcePathStyle: true });
  const names = new Set<string>();
  try {
    for await (const { Contents = [] } of paginateListObjectsV2({ client }, { Bucket: bucket, Prefix: prefix })) {
      for (const { Key = '' } of Contents) names.add(Key.slice(prefix.length));
    }
    for (const name of names) {
      if (known.has(name)) continue;
      const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: `${prefix}${name}` }));
      const file = join(folder, name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, (await Body?.transformToByteArray()) ?? '');
    }
    return names;
  } finally {
    client.destroy();
  }
}
