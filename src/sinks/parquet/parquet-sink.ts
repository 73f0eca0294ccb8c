import { randomUUID } from 'node:crypto';
import { type Finding, findingOf, ok, StopStream } from '../../model/errors.ts';
import type { Abilities, SinkWith } from '../sink.ts';
import { openBatch } from './batch.ts';
import { prepareLake, showCoverage } from './catalog.ts';
import { erase } from './erase.ts';
import type { Lake } from './lake.ts';
import { compareLake, readLake } from './read-lake.ts';
import { rewriteLake, tidy } from './rework.ts';
import { createFolderStore } from './store/folder-store.ts';
import type { Store } from './store/store.ts';

/** A sink of Parquet files. Nothing is to be recovered: every commit looks first whether the one before it was cut short. */
export type ParquetSink = SinkWith<Exclude<keyof Abilities, 'recover' | 'maintain'>>;

/** Half a row group: the next one joins it, and two batches with what they are made of stay small. */
const BATCH_ROWS = 10_000;

export function createParquetSink(lake: Lake): ParquetSink {
  const met = new Set<number>();
  return {
    name: lake.name,
    place: lake.store.place,
    batchRows: BATCH_ROWS,
    prepare: (stream) => prepareLake(lake, stream),
    open: async (stream) => openBatch(lake, stream, met),
    async publishProgress(track) {
      await tidy(lake, track);
      await showCoverage(lake, track);
    },
    erase: (erasure) => erase(lake, erasure),
    check: () => checkLake(lake.store, `sink ${lake.name}`),
    compare: (comparison) => compareLake(lake, comparison),
    read: (stream, source, window) => readLake(lake, stream, source, window),
    rewrite: (streams) => rewriteLake(lake, streams),
    close: () => lake.store.close(),
  };
}

/** Tries out what a commit does to the lake: write, read, remove. Nothing stays. */
export async function checkLake(store: Store, subject: string): Promise<Finding[]> {
  const path = `_doctor-${randomUUID()}.txt`;
  try {
    await store.writeText(path, path);
    if ((await store.readText(path)) !== path) {
      throw new StopStream(`${store.place} gave back something else than was written`, {
        next: 'see what keeps copies or changes files there',
      });
    }
    const file = await store.open(path);
    await file?.close();
    if (file) await store.remove(path, file.identity);
    return [ok(subject, `${store.place}: can write, read and remove`)];
  } catch (error) {
    return [findingOf(subject, error)];
  }
}

/** A folder, or `s3://bucket/prefix`. */
export async function openStore(path: string, { pathStyle }: { pathStyle: boolean }): Promise<Store> {
  if (!path.startsWith('s3://')) return createFolderStore(path);
  // Loaded only where it is needed: the client of S3 is larger than everything else together.
  const { createS3Store } = await import('./store/s3-store.ts');
  return createS3Store({ url: path, pathStyle });
}
