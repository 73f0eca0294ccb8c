import type { StreamName } from '../../model/streams.ts';
import type { Sink } from '../sink.ts';
import { openBatch } from './batch.ts';
import { prepareLake } from './catalog.ts';
import { checkLake } from './check.ts';
import { compareLake } from './compare.ts';
import { showCoverage } from './coverage.ts';
import { erase } from './erase.ts';
import type { Lake } from './lake.ts';
import { readLake } from './read-lake.ts';
import { type Rewrites, rewriteLake } from './rewrite-lake.ts';
import { tidy } from './tidy.ts';

/** A sink of Parquet files. */
export interface ParquetSink extends Sink {
  /** Brings files that were written with fewer columns up to the present ones. */
  rewrite(streams: readonly StreamName[]): Promise<Rewrites>;
}

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
    // Every commit looks whether the one before it was cut short, and mends the index first.
    recover: async () => {},
    async settled(track) {
      await tidy(lake, track);
      await showCoverage(lake, track);
    },
    erase: (erasure) => erase(lake, erasure),
    check: () => checkLake(lake.store, `sink ${lake.name}`),
    compare: (question) => compareLake(lake, question),
    read: (stream, source, window) => readLake(lake, stream, source, window),
    rewrite: (streams) => rewriteLake(lake, streams),
    close: () => lake.store.close(),
  };
}

export type { Rewrites };

export const isParquetSink = (sink: Sink): sink is ParquetSink => 'rewrite' in sink;
