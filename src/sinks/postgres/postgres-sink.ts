import { lastCommit, recordListing } from '../../cursor/cursors.ts';
import type { Database, Queryable, Transaction } from '../../cursor/database/index.ts';
import { quoteIdent } from '../../cursor/database/sql.ts';
import { carryRows } from '../../cursor/holdings/window-rows.ts';
import { checkFence } from '../../cursor/leases.ts';
import { applyAdvance, readCoverage } from '../../cursor/ledger.ts';
import { ConfigError } from '../../model/errors.ts';
import type { Log } from '../../model/log.ts';
import { ENTITIES, STREAM_NAMES, STREAMS, type Stream, type StreamName } from '../../model/streams.ts';
import { type Abilities, describeColumns, type LinksSnapshot, type Receipt, type SinkWith } from '../sink.ts';
import type { IndexName } from '../views/postgres-indexes.ts';
import { type BatchOptions, openBatch } from './batch.ts';
import { columnsCopy, createDaysDue, daysTable, publishColumns, publishDays } from './beside.ts';
import { findDifferences, readRows } from './compare.ts';
import { erase, prune } from './erase.ts';
import {
  attestTable,
  countRows,
  glanceAt,
  identifyElsewhere,
  identifyTable,
  isMissing,
  releaseKeys,
  removeOthers,
} from './holdings.ts';
import { keepViews, type ViewFault } from './keep-views.ts';
import { historyTable } from './links/history.ts';
import { replaceLinks } from './links/replace.ts';
import { keysTable } from './months.ts';
import { copyCursor, createReceipts, cursorCopy, RECEIPTS, readReceipt, settleReceipt } from './receipts.ts';
import {
  alterTable,
  checkLayout,
  checkWidenable,
  comments,
  createIndexes,
  createTable,
  describeTable,
  entityTable,
  evolvedNames,
  lockSchema,
  type Partition,
  readShape,
  streamTable,
  type Table,
  tableComment,
} from './table.ts';
import { checkPostgres } from './upkeep/check.ts';
import { type Viewed, viewsOf } from './views.ts';

interface PostgresSinkOptions extends Omit<BatchOptions, 'partition' | 'preparation'> {
  name: string;
  partition?: Partition;
  indexes?: readonly IndexName[];
  /** Told of what is not as it should be and stops nothing. */
  log?: Pick<Log, 'warn'>;
}

/** Large enough that a batch loads at full speed, small enough that two of them bound the memory. */
const BATCH_ROWS = 5000;

/** Counted in less than 50 ms of the server: a million rows take 67 polls. */
const COUNTED_ROWS = 15_000;

export type PostgresSink = SinkWith<Exclude<keyof Abilities, 'rewrite' | 'maintain' | 'releaseKeys'>>;

export function createPostgresSink(options: PostgresSinkOptions): PostgresSink {
  const { name, db, schema, state, partition = 'none', indexes = [] } = options;
  const isStateHere = db === state;
  const daysDue = createDaysDue();
  const warehouse = { db, schema, sink: name, isStateHere, partition, indexes };
  /** By stream: the columns that were asked for, and the shape of the whole warehouse that they were found in. */
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
      const track = { source, stream, sink: name };
      const receipt = await readReceipt(db, schema, track);
      // Any other receipt is of tables or of a state that were restored: what the tables hold is counted then.
      if (!receipt?.advance || receipt.follows !== (await lastCommit(state, track))) return false;
      // The data was committed but the state was never told: tell it now, under our own lease.
      const count = countRows(db, { schema, stream: STREAMS[stream], source });
      const rows = { added: [], removed: [], count, isAfterCrash: true };
      const advance = { ...receipt.advance, epoch };
      await state.transaction(async (tx) => applyAdvance(tx, await checkFence(tx, advance), advance, rows));
      return true;
    },
    async publishProgress({ source, stream }, isReopened = false) {
      if (isStateHere && !isReopened && !daysDue.isDue({ source, stream })) return;
      const track = { source, stream, sink: name };
      const [coverage, told] = [await readCoverage(state, track), await lastCommit(state, track)];
      if (!coverage || told === undefined) return;
      try {
        await publishDays(db, schema, state, track);
        daysDue.settle(track);
        if (isStateHere) return;
        await copyCursor(db, schema, coverage);
        await publishColumns(db, schema, state);
        await settleReceipt(db, schema, track, told);
      } catch (error) {
        // Recovery: somebody dropped the tables; the next commit makes them again.
        if (!isMissing(error)) throw error;
      }
    },
    async erase(erasure) {
      const { touched, clicks } = await erase(db, schema, erasure);
      const track = { source: erasure.source, stream: 'clicks', sink: name } as const;
      await state.transaction((tx) => carryRows(tx, track, { added: [], removed: clicks }));
      return touched;
    },
    replaceLinks: (snapshot) => replaceInWarehouse(warehouse, state, snapshot),
    check: () => checkPostgres(warehouse, `sink ${name}`, isStateHere ? 'the state database' : 'its database'),
    compare: (comparison) => findDifferences(db, schema, comparison),
    isInState: isStateHere,
    countedRows: COUNTED_ROWS,
    tableOf: (stream) => `${schema}.${stream}`,
    identify: (tx, { source, stream }, known) =>
      isStateHere
        ? identifyTable(tx, schema, stream)
        : identifyElsewhere(db, schema, { source, stream, sink: name }, known),
    attest: (stream, source, windows) => attestTable(db, { schema, stream, source }, windows),
    ...(partition === 'month' && {
      releaseKeys: (stream, source, windows) => releaseKeys(db, { schema, stream, source }, windows),
    }),
    removeForeign: (stream, source, windows) => removeOthers(db, { schema, stream, source }, windows),
    glance: (stream, source, windows) => glanceAt(db, { schema, stream, source }, windows),
    prune: (stream, source, before) => prune(db, { schema, stream, source }, partition, before),
    read: (stream, source, window) => readRows(db, schema, stream, { source, window }),
    close: async () => {},
  };
}

/** Where the state is in another database, the data is committed first: a listing that the state does not know of is merely repeated. */
async function replaceInWarehouse(warehouse: Warehouse, state: Database, snapshot: LinksSnapshot): Promise<Receipt> {
  const { db, schema, sink, isStateHere } = warehouse;
  const track = { source: snapshot.source, stream: 'links', sink } as const;
  await prepareWarehouse(warehouse, undefined);
  const store = async (tx: Transaction): Promise<Receipt> => {
    if (snapshot.keepHistory) await bringUpToDate(tx, schema, historyTable);
    return replaceLinks(tx, schema, snapshot);
  };
  const receipt = await state.transaction(async (tx) => {
    await checkFence(tx, { ...snapshot, stream: 'links' });
    const stored = isStateHere ? await store(tx) : await db.transaction(store);
    await recordListing(tx, track, snapshot);
    return stored;
  });
  const coverage = isStateHere ? undefined : await readCoverage(state, track);
  if (coverage) await copyCursor(db, schema, coverage);
  return receipt;
}

interface Warehouse extends Viewed {
  db: Database;
  partition: Partition;
  indexes: readonly IndexName[];
}

/** Of every table and view that the sink needs. */
function shapeOf(tx: Queryable, warehouse: Warehouse): Promise<string> {
  const { schema, partition, isStateHere } = warehouse;
  const keys = partition === 'none' ? [] : STREAM_NAMES.map((name) => keysTable(STREAMS[name]).name);
  const beside = isStateHere ? [daysTable.name] : [daysTable.name, RECEIPTS, cursorCopy.name, columnsCopy.name];
  const others = [...ENTITIES, ...viewsOf(warehouse)].map(({ name }) => name);
  return readShape(tx, schema, [...STREAM_NAMES, ...others, ...keys, ...beside]);
}

/**
 * Makes or brings up to date everything that the sink needs: all tables and views, and the stream's in its present shape. Returns
 * the shape of it all.
 */
function prepareWarehouse(
  warehouse: Warehouse,
  stream: Stream | undefined,
): Promise<{ shape: string; faults: ViewFault[] }> {
  const { db, schema, isStateHere, partition, indexes } = warehouse;
  return db.transaction(async (tx) => {
    await tx.query(lockSchema(schema));
    await ensureSchema(tx, schema);
    if (!isStateHere) {
      await tx.query({ text: createReceipts(schema) });
      for (const copy of [cursorCopy, columnsCopy]) await bringUpToDate(tx, schema, copy);
    }
    await bringUpToDate(tx, schema, daysTable);
    if (stream) await bringUpToDate(tx, schema, streamTable(stream, partition, indexes), evolvedNames(stream));
    // The tables of other streams only have to exist, so that the views find their columns.
    for (const name of STREAM_NAMES.filter((other) => other !== stream?.name)) {
      await ensureTable(tx, schema, streamTable(STREAMS[name], partition, indexes));
    }
    if (partition !== 'none') {
      for (const name of STREAM_NAMES) await bringUpToDate(tx, schema, keysTable(STREAMS[name]));
    }
    for (const entity of ENTITIES) await bringUpToDate(tx, schema, entityTable(entity));
    const faults = await keepViews(tx, schema, viewsOf(warehouse));
    return { shape: await shapeOf(tx, warehouse), faults };
  });
}

/** Not `if not exists`: that asks for the right to create even where an administrator has made the schema for us. */
async function ensureSchema(tx: Queryable, schema: string): Promise<void> {
  const there = await tx.query({ text: 'select 1 from pg_namespace where nspname = $1', values: [schema] });
  if (there.length === 0) await tx.query({ text: `create schema ${quoteIdent(schema)}` });
}

async function bringUpToDate(
  tx: Queryable,
  schema: string,
  table: Table,
  evolved?: ReadonlySet<string>,
): Promise<void> {
  const present = await describeTable(tx, schema, table.name);
  if (present) {
    checkLayout(schema, table, present);
    checkWidenable(table, present, evolved);
  }
  const change = present ? alterTable(schema, table, present) : createTable(schema, table);
  if (change === '' && present?.comment === tableComment(table)) return;
  try {
    await tx.query({ text: [change, createIndexes(schema, table), comments(schema, table)].join('\n') });
  } catch (error) {
    throw /^ *alter column .* type /m.test(change) ? inTheWay(error, schema, table) : error;
  }
}

/**
 * Postgres does not change the type of a column that a view uses. Recognized by the error code: the text is in the language of the
 * server and is only quoted.
 */
function inTheWay(error: unknown, schema: string, { name }: Table): unknown {
  const { code, message, detail } = error as { code?: string; message?: string; detail?: string };
  if (code !== '0A000') return error;
  const [, user, column] = /^(?:rule \S+ on )?(.*) depends on column "(.*)"$/.exec(detail ?? '') ?? [];
  const who = user ?? 'what uses it';
  return new ConfigError(
    `column ${column ?? ''} of ${schema}.${name} must hold more than its type allows, and ${user ?? 'something'} uses it: ${user ? message : detail}`,
    {
      next: `drop ${who}, run again, and create it again; or set unknownFields of the stream to extra, which leaves the columns as they are`,
      cause: error,
    },
  );
}

async function ensureTable(tx: Queryable, schema: string, table: Table): Promise<void> {
  const present = await describeTable(tx, schema, table.name);
  if (!present || alterTable(schema, table, present) !== '') await bringUpToDate(tx, schema, table);
}
