import type { Abilities, SinkWith } from '../sink.ts';
import { openBatch } from './batch.ts';
import { prepareLake } from './catalog.ts';
import { checkLake } from './check.ts';
import { compareLake } from './compare.ts';
import { showCoverage } from './coverage.ts';
import { erase } from './erase.ts';
import type { Lake } from './lake.ts';
import { readLake } from './read-lake.ts';
import { rewriteLake } from './rewrite-lake.ts';
import { tidy } from './tidy.ts';

/** A sink of Parquet files. Nothing is to be recovered: every commit looks first whether the one before it was cut short. */
export type ParquetSink = SinkWith<Exclude<keyof Abilities, 'recover' | 'maintain'>>;

/** Enough for a full row group: what is written at once need not be written again soon. */
const BATCH_ROWS = 20_000;

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
