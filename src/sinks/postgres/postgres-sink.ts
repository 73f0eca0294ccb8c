import { lastCommit, recordListing } from '../../cursor/cursors.ts';
import type { Database, Transaction } from '../../cursor/database/index.ts';
import { carryRows } from '../../cursor/holdings/window-rows.ts';
import { checkFence } from '../../cursor/leases.ts';
import { applyAdvance, readCoverage } from '../../cursor/ledger.ts';
import type { Log } from '../../model/log.ts';
import { STREAM_NAMES, STREAMS, type StreamName } from '../../model/streams.ts';
import { describeColumns, type LinksSnapshot, type Receipt, type Sink } from '../sink.ts';
import type { IndexName } from '../views/postgres-indexes.ts';
import { type BatchOptions, openBatch } from './batch.ts';
import { copyCursor, createDaysDue, publishColumns, publishDays, readReceipt, settleReceipt } from './beside.ts';
import { findDifferences, readRows } from './compare.ts';
import { countErased, erase, prune } from './erase.ts';
import { attestTable, countRows, glanceAt, identifyTable, isMissing, releaseKeys, removeOthers } from './holdings.ts';
import { historyTable, replaceLinks } from './links.ts';
import type { Partition } from './table.ts';
import { checkPostgres } from './upkeep/check.ts';
import { refillEntities } from './upkeep/entities.ts';
import { prepareWarehouse, shapeOf, type Warehouse } from './upkeep/prepare.ts';

interface PostgresSinkOptions extends Omit<BatchOptions, 'partition' | 'preparation'> {
  name: string;
  partition?: Partition;
  indexes?: readonly IndexName[];
  /** Gets warnings about views that could not be brought up to date. */
  log?: Pick<Log, 'warn'>;
}

/** Large enough that a batch loads at full speed, small enough that two of them fit in memory. */
const BATCH_ROWS = 5000;

/** The server counts these in less than 50 ms; a million rows take 67 polls. */
const COUNTED_ROWS = 15_000;

export type PostgresSink = ReturnType<typeof createPostgresSink>;

export function createPostgresSink(options: PostgresSinkOptions) {
  const { name, db, schema, state, partition = 'none', indexes = [] } = options;
  const isStateHere = db === state;
  const daysDue = createDaysDue();
  const warehouse = { db, schema, sink: name, isStateHere, partition, indexes };
  /** By stream: the columns that were prepared, and the resulting shape of the whole warehouse. */
  const prepared = new Map<StreamName, { columns: string; shape: string }>();

  const preparation: BatchOptions['preparation'] = {
    async holds(tx, stream) {
      const known = prepared.get(stream.name);
      if (!known || known.columns !== describeColumns(stream)) return false;
      return (await shapeOf(tx, warehouse)) === known.shape;
    },
    forget: (stream) => void prepared.delete(stream.name),
  };
  return {
    name,
    place: `Postgres schema ${schema} (${[...STREAM_NAMES, 'links', 'customers'].join(', ')})`,
    batchRows: BATCH_ROWS,
    async prepare(stream) {
      const columns = describeColumns(stream);
      if (prepared.get(stream.name)?.columns === columns) return;
      const { shape, faults } = await prepareWarehouse(warehouse, stream);
      prepared.set(stream.name, { columns, shape });
      for (const { view, says, fix } of faults) options.log?.warn({ sink: name, view, fix }, says);
    },
    open: async (stream) => daysDue.watched(openBatch({ db, schema, state, partition, preparation }, stream)),
    async recover({ source, stream, epoch }) {
      if (isStateHere) return false;
      const feed = { source, stream, sink: name };
      const receipt = await readReceipt(db, schema, feed);
      // Any other receipt belongs to restored tables or a restored state: then the rows in the tables are counted.
      if (!receipt?.advance || receipt.follows !== (await lastCommit(state, feed))) return false;
      // The data was committed but the state was not: apply the advance now, under our own lease.
      const count = countRows(db, { schema, stream: STREAMS[stream], source });
      const rows = { added: [], removed: [], count, isAfterCrash: true };
      const advance = { ...receipt.advance, epoch };
      await state.transaction(async (tx) => applyAdvance(tx, await checkFence(tx, advance), advance, rows));
      return true;
    },
    async publishProgress({ source, stream }, isReopened = false) {
      if (isStateHere && !isReopened && !daysDue.isDue({ source, stream })) return;
      const feed = { source, stream, sink: name };
      const [coverage, committed] = [await readCoverage(state, feed), await lastCommit(state, feed)];
      if (!coverage || committed === undefined) return;
      try {
        await publishDays(db, schema, state, feed);
        daysDue.settle(feed);
        if (isStateHere) return;
        await copyCursor(db, schema, coverage);
        await publishColumns(db, schema, state);
        await settleReceipt(db, schema, feed, committed);
      } catch (error) {
        // Recovery: somebody dropped the tables, or the first sync has not created them yet; the next commit does.
        if (!isMissing(error)) throw error;
      }
    },
    async erase(erasure) {
      const { touched, clicks } = await erase(db, schema, erasure);
      const feed = { source: erasure.source, stream: 'clicks', sink: name } as const;
      await state.transaction((tx) => carryRows(tx, feed, { added: [], removed: clicks }));
      return touched;
    },
    countErased: (erasure) => countErased(db, schema, erasure),
    replaceLinks: (snapshot) => replaceInWarehouse(warehouse, state, snapshot),
    check: () => checkPostgres(warehouse, `sink ${name}`, isStateHere ? 'the state database' : 'its database'),
    compare: (comparison) => findDifferences(db, schema, comparison),
    isInState: isStateHere,
    countedRows: COUNTED_ROWS,
    tableOf: (stream) => `${schema}.${stream}`,
    identify: (tx, { source, stream }, known) =>
      identifyTable(isStateHere ? tx : db, warehouse, { source, stream, sink: name }, known),
    attest: (stream, source, windows) => attestTable(db, { schema, stream, source }, windows),
    ...(partition === 'month' && {
      releaseKeys: (stream, source, windows) => releaseKeys(db, { schema, stream, source }, windows),
    }),
    removeForeign: (stream, source, windows) => removeOthers(db, { schema, stream, source }, windows),
    glance: (stream, source, windows) => glanceAt(db, { schema, stream, source }, windows),
    refillEntities: (source, isThorough) => refillEntities(db, schema, source, isThorough),
    prune: (stream, source, before) => prune(db, { schema, stream, source }, partition, before),
    read: (stream, source, window) => readRows(db, { schema, stream, source }, window),
    close: async () => {},
  } satisfies Sink;
}

/** If the state is in another database, the data is committed first: a listing that the state does not know is only repeated. */
async function replaceInWarehouse(warehouse: Warehouse, state: Database, snapshot: LinksSnapshot): Promise<Receipt> {
  const { db, schema, sink, isStateHere } = warehouse;
  const feed = { source: snapshot.source, stream: 'links', sink } as const;
  await prepareWarehouse(warehouse, undefined, snapshot.keepHistory ? [historyTable] : []);
  const store = (tx: Transaction): Promise<Receipt> => replaceLinks(tx, schema, snapshot);
  const receipt = await state.transaction(async (tx) => {
    await checkFence(tx, { ...snapshot, stream: 'links' });
    const stored = isStateHere ? await store(tx) : await db.transaction(store);
    await recordListing(tx, feed, snapshot);
    return stored;
  });
  const coverage = isStateHere ? undefined : await readCoverage(state, feed);
  if (coverage) await copyCursor(db, schema, coverage);
  return receipt;
}
