import type { Queryable } from '../../cursor/database/index.ts';
import type { Feed } from '../../cursor/ledger.ts';
import type { Row } from '../../model/flatten.ts';
import type { Stream } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { type Change, inChange } from '../files/change.ts';
import { commitOnce, gather, type Load, storeLoad } from '../files/commit.ts';
import { enterFeed, feedLock, indexStart, moveIndex, settleFeed, unsettleFeed } from '../files/event-index.ts';
import { mergeEvents } from '../files/merge.ts';
import { checkStore } from '../files/store/open-store.ts';
import type { Receipt, Sink } from '../sink.ts';
import { prepareLake, showCoverage } from './catalog.ts';
import { attestLake, identifyLake, type Listings, pruneLake, reconcile, removeForeignFiles } from './holdings.ts';
import type { Lake } from './lake.ts';
import { compareLake, countLake, indexLake, readLake, UnknownFile, writableLake } from './lake-files.ts';
import { replaceLinks } from './links.ts';
import { erase, makeJson, removeMovedRows, rewriteLake, tidy } from './maintain.ts';

/** A sink of Parquet files. It has no `recover`: every commit first checks whether the previous one was interrupted. */
export type ParquetSink = ReturnType<typeof createParquetSink>;

/** Half a row group: the next batch is joined to it, and two batches stay small in memory. */
const BATCH_ROWS = 10_000;

export function createParquetSink(lake: Lake) {
  const listings: Listings = new Set();
  const feed = ({ name: stream }: Stream, source: string): Feed => ({ source, stream, sink: lake.name });
  return {
    name: lake.name,
    place: lake.store.place,
    batchRows: BATCH_ROWS,
    isByTime: true,
    async prepare(stream) {
      await makeJson(lake, stream);
      await prepareLake(lake, stream);
    },
    open: async (stream) => gather(stream, (load) => commitToLake(lake, listings, load)),
    async publishProgress(feed) {
      await tidy(lake, feed);
      await showCoverage(lake, feed);
    },
    erase: (erasure) => erase(lake, erasure),
    replaceLinks: (snapshot) => replaceLinks(lake, snapshot),
    check: () => checkStore(lake.store, `sink ${lake.name}`),
    compare: (comparison) => compareLake(lake, comparison),
    tableOf: (stream) => `${lake.store.place}/${stream}`,
    isInState: true,
    identify: (tx, { source, stream }) => identifyLake(tx, lake, { source, stream, sink: lake.name }, listings),
    attest: (stream, source, windows) => attestLake(lake, feed(stream, source), windows, listings),
    removeForeign: (stream, source, windows) => removeForeignFiles(lake, feed(stream, source), windows),
    removeMoved: (stream, source, window) => removeMovedRows(lake, feed(stream, source), window),
    prune: (stream, source, before) => pruneLake(lake, feed(stream, source), before),
    read: (stream, source, window) => readLake(lake, stream, source, window),
    rewrite: (streams) => rewriteLake(lake, streams),
    close: () => lake.store.close(),
  } satisfies Sink;
}

/** Each attempt may find another file replaced. After this many, the error says that another writer keeps replacing files. */
const MOST_ATTEMPTS = 3;

/**
 * Writes files first, under a lock, then the state in one transaction. A crash in between leaves rows that are not in the ledger; reading
 * their window again changes nothing. A mark that is set before the first file makes the next commit repair the index.
 */
async function commitToLake(lake: Lake, listings: Listings, load: Load): Promise<Receipt> {
  const { state } = lake;
  const { stream, advance } = load;
  const work = async (change: Change) => {
    const { id, isUnsettled, now } = await enterFeed(state, advance, true);
    const isToCompare = isUnsettled || (!lake.store.isRemote && !listings.has(id));
    listings.delete(id);
    const merge = async (rows: readonly Row[]) => {
      const of = { lake, feed: id, stream, advance };
      const files = writableLake(change, of);
      const start = indexStart(now, lake.readAgainMs, advance);
      for (let attempt = 1, isDue = isToCompare; ; attempt++, isDue = true) {
        if (isDue) await reconcile(lake, advance, id);
        try {
          await moveIndex(state, change, id, start, (end) => indexLake(of, start, end));
          return { ...(await mergeEvents({ stream, rows, advance, now }, files)), isAfterCrash: isUnsettled };
        } catch (error) {
          // Recovery: a file was restored, or another state database writes here too. Nothing was replaced yet, so reconcile and retry.
          if (!(error instanceof UnknownFile) || attempt === MOST_ATTEMPTS) throw error;
        }
      }
    };
    const count = (db: Queryable, windows: readonly Window[]) => countLake(db, lake, advance, windows);
    const receipt = await storeLoad(state, change, load, { merge, count });
    change.later(settleFeed(id));
    return { id, receipt };
  };
  try {
    const { id, receipt } = await inChange(state, feedLock(advance), work, commitOnce(state, advance));
    listings.add(id);
    return receipt;
  } catch (error) {
    // Recovery: the next commit compares the files. A process that took our lock may have settled the feed before we wrote our last file.
    const mark = async ({ later }: Change) => later(unsettleFeed(advance));
    await inChange(state, feedLock(advance), mark).catch(() => {});
    throw error;
  }
}
