import { randomUUID } from 'node:crypto';
import { lastCommit } from '../../cursor/cursors.ts';
import type { Transaction } from '../../cursor/database/index.ts';
import { withoutForgotten } from '../../cursor/forgotten.ts';
import type { CountRows } from '../../cursor/holdings/window-rows.ts';
import { checkFence } from '../../cursor/leases.ts';
import { applyAdvance } from '../../cursor/ledger.ts';
import { quarantine } from '../../cursor/quarantine.ts';
import { type Finding, findingOf, ok, StopStream } from '../../model/errors.ts';
import type { Row } from '../../model/flatten.ts';
import type { Stream } from '../../model/streams.ts';
import { type Abilities, type Batch, type Receipt, resolveInDoubt, type SinkWith } from '../sink.ts';
import { prepareLake, showCoverage } from './catalog.ts';
import { enterTrack, lockTrack, settleTrack } from './event-index.ts';
import { attestLake, identifyLake, type Listings, removeStrays } from './holdings.ts';
import type { Lake } from './lake.ts';
import { erase, rewriteLake, tidy } from './maintain.ts';
import { mergeBatch } from './merge-batch.ts';
import { compareLake, countLake, readLake } from './read-lake.ts';
import { reconcile } from './reconcile.ts';
import { createFolderStore } from './store/folder-store.ts';
import type { Store } from './store/store.ts';

/** A sink of Parquet files. It has no `recover`: every commit first checks whether the one before was interrupted. */
export type ParquetSink = SinkWith<Exclude<keyof Abilities, 'recover' | 'maintain' | 'glance' | 'releaseKeys'>>;

/** Half a row group: the next batch joins it, and two batches with their sources stay small. */
const BATCH_ROWS = 10_000;

export function createParquetSink(lake: Lake): ParquetSink {
  const listings: Listings = new Set();
  return {
    name: lake.name,
    place: lake.store.place,
    batchRows: BATCH_ROWS,
    prepare: (stream) => prepareLake(lake, stream),
    open: async (stream) => openBatch(lake, stream, listings),
    async publishProgress(track) {
      await tidy(lake, track);
      await showCoverage(lake, track);
    },
    erase: (erasure) => erase(lake, erasure),
    check: () => checkLake(lake.store, `sink ${lake.name}`),
    compare: (comparison) => compareLake(lake, comparison),
    tableOf: (stream) => `${lake.store.place}/${stream}`,
    isInState: true,
    identify: (tx, { source, stream }) => identifyLake(tx, lake, { source, stream, sink: lake.name }, listings),
    attest: ({ name: stream }, source, windows) =>
      attestLake(lake, { source, stream, sink: lake.name }, windows, listings),
    removeForeign: ({ name: stream }, source, windows) =>
      removeStrays(lake, { source, stream, sink: lake.name }, windows),
    read: (stream, source, window) => readLake(lake, stream, source, window),
    rewrite: (streams) => rewriteLake(lake, streams),
    close: () => lake.store.close(),
  };
}

/** Tests what a commit does to the lake: write, read, remove. Leaves nothing behind. */
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
export async function openStore(
  path: string,
  { pathStyle, fileMode }: { pathStyle: boolean; fileMode: number | undefined },
): Promise<Store> {
  if (!path.startsWith('s3://')) return createFolderStore(path, { fileMode });
  // Imported on demand: the S3 client is larger than everything else together.
  const { createS3Store } = await import('./store/s3-store.ts');
  return createS3Store({ url: path, pathStyle });
}

/**
 * Collects rows and commits them in one transaction of the state. The files are replaced inside it, before the ledger is written: a
 * crash in between leaves rows that are not in the ledger; when their window is read again, merging them changes nothing. A mark
 * that is set before the transaction makes the next commit repair the index first.
 *
 * @param listings Tracks whose files this process has compared with the index.
 */
function openBatch(lake: Lake, stream: Stream, listings: Listings): Batch {
  const { state } = lake;
  const rows: Row[] = [];
  return {
    async write(more) {
      rows.push(...more);
    },
    async commit(advance, rejected = []) {
      const { id, isUnsettled } = await enterTrack(state, advance);
      const isToCompare = isUnsettled || (!lake.store.isRemote && !listings.has(id));
      const work = async (tx: Transaction): Promise<Receipt> => {
        // Before the fence, so that a process that waits for a long rewrite keeps renewing its lease.
        await lockTrack(tx, advance);
        const fence = await checkFence(tx, advance);
        const kept = await withoutForgotten(tx, advance.source, stream, rows);
        if (isToCompare) await reconcile(tx, lake, advance, id);
        const { receipt, ...changes } = await mergeBatch(tx, {
          lake,
          track: id,
          stream,
          rows: kept,
          advance,
          beat: fence.renew,
        });
        await quarantine(tx, advance, rejected);
        const count: CountRows = (windows) => countLake(tx, lake, advance, windows);
        await applyAdvance(tx, fence, advance, { ...changes, count, isAfterCrash: isUnsettled });
        await settleTrack(tx, id);
        return receipt;
      };
      const isThere = async (): Promise<boolean> => (await lastCommit(state, advance)) === advance.commitId;
      listings.delete(id);
      const receipt = await resolveInDoubt(work, (attempt) => state.transaction(attempt), isThere);
      listings.add(id);
      return receipt;
    },
    async abort() {
      rows.length = 0;
    },
  };
}
