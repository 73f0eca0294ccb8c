import { entitiesOf, type StreamName } from '../../model/streams.ts';
import { commitOnce, type Load, storeLoad } from '../files/commit.ts';
import { emptyIndex, enterFeed, indexStart, moveIndex, settleFeed } from '../files/event-index.ts';
import { mergeEvents } from '../files/merge.ts';
import type { Held, Receipt } from '../sink.ts';
import { type Design, entityDesign, streamDesign } from '../table-columns.ts';
import { settleHead } from './heads.ts';
import { holdingsOf } from './holdings.ts';
import { mergeEntity } from './merge/entities.ts';
import { checkShape, eventFiles, indexTable } from './table-files.ts';
import { createTableWriter, type TableWriter, writableTable } from './table-writer.ts';
import { type Draft, inDraft, preparedTable, tableLock, type Warehouse } from './warehouse.ts';

interface QueuedLoad extends Load {
  done(receipt: Receipt): void;
  failed(error: unknown): void;
}

/** Most rows of several sources in one commit; a single source's batch may be larger. */
const MOST_ROWS = 20_000;

/** Sources that commit to a table during another commit share its next version, so that many sources do not make many snapshots. */
export function shareCommits(warehouse: Warehouse): (load: Load) => Promise<Receipt> {
  const queues = new Map<StreamName, QueuedLoad[]>();

  const commit = async (loads: readonly QueuedLoad[]): Promise<void> => {
    try {
      const receipts = await commitLoads(warehouse, loads);
      for (const [i, load] of loads.entries()) load.done(receipts[i] as Receipt);
    } catch (error) {
      // Recovery: one of the batches cannot be written, so each is committed alone. The error of a single batch goes to its caller.
      if (loads.length === 1) loads[0]?.failed(error);
      else for (const load of loads) await commit([load]);
    }
  };

  const work = async (queue: QueuedLoad[]): Promise<void> => {
    while (queue.length > 0) {
      let [count, rows] = [0, 0];
      for (const load of queue) {
        rows += load.rows.length;
        if (count > 0 && rows > MOST_ROWS) break;
        count++;
      }
      await commit(queue.slice(0, count));
      queue.splice(0, count);
    }
  };

  return (load) =>
    new Promise((done, failed) => {
      const queue = queues.get(load.stream.name) ?? [];
      queues.set(load.stream.name, queue);
      queue.push({ ...load, done, failed });
      if (queue.length === 1) void work(queue);
    });
}

/** Writes files first, then in one transaction ledger, cursor and finally the catalog. A crash before COMMIT leaves orphan files. */
function commitLoads(warehouse: Warehouse, loads: readonly Load[]): Promise<Receipt[]> {
  const { state } = warehouse;
  const [first] = loads;
  if (!first) throw new Error('a commit needs at least one batch');
  return inDraft<Receipt[]>(
    warehouse,
    first.stream.name,
    async (draft) => {
      const tables = openTables(draft);
      const { table } = await tables.writerOf(streamDesign(first.stream));
      await settleHead(warehouse, table.design.name, table);
      const receipts: Receipt[] = [];
      for (const load of loads) {
        receipts.push(await writeLoad(draft, load, tables));
        await tables.publishShared();
      }
      await tables.publish();
      return receipts;
    },
    commitOnce(state, first.advance),
  );
}

type OpenTables = ReturnType<typeof openTables>;

/** The tables that a commit changes, each published as one version. */
function openTables(draft: Draft) {
  const writers = new Map<Design['name'], TableWriter>();
  return {
    async writerOf(design: Design): Promise<TableWriter> {
      const writer = writers.get(design.name) ?? createTableWriter(draft, await preparedTable(draft.warehouse, design));
      writers.set(design.name, writer);
      return writer;
    },
    /** A file that another program compacted has rows of several sources, so the next source needs the table without it. */
    async publishShared(): Promise<void> {
      for (const [name, writer] of writers)
        if (writer.removed.some(({ source }) => source === undefined))
          writers.set(name, createTableWriter(draft, await writer.publish()));
    },
    /** Publishes the stream's table, which was opened first, last. */
    async publish(): Promise<void> {
      for (const writer of [...writers.values()].reverse()) await writer.publish();
    },
  };
}

async function writeLoad(draft: Draft, load: Load, tables: OpenTables): Promise<Receipt> {
  const { warehouse } = draft;
  const { state } = warehouse;
  const { stream, advance } = load;
  const { source } = advance;
  const writer = await tables.writerOf(streamDesign(stream));
  const { table, added, removed } = writer;
  const { id: feed, isUnsettled, now } = await enterFeed(state, advance, false);
  const counted = new Map<string, readonly Held[]>();
  const receipt = await storeLoad(state, draft, load, {
    async merge(rows) {
      const of = { table, feed, source };
      checkShape(stream, table);
      // After a renamed sink, a lost state, or changes to the table by others.
      if (isUnsettled) await emptyIndex(state, feed);
      const start = indexStart(now, warehouse.readAgainMs, advance);
      await moveIndex(state, draft, feed, start, (end) => indexTable(of, start, end));
      const merged = await mergeEvents({ stream, rows, advance, now }, writableTable(writer, eventFiles(of), of));
      // Locked in a fixed order, after the stream's own table, so that two commits cannot deadlock.
      for (const entity of rows.length === 0 ? [] : entitiesOf(stream)) {
        await draft.lock(tableLock(warehouse, entity.name));
        await mergeEntity(await tables.writerOf(entityDesign(entity)), { entity, stream, source, rows, now });
      }
      return { ...merged, isAfterCrash: isUnsettled };
    },
    // Called in `foresee` and again at commit; the cache avoids reading the files twice.
    async count(_, windows) {
      const asked = JSON.stringify(windows);
      const held = counted.get(asked) ?? (await holdingsOf(table, { source, windows, added, removed }));
      counted.set(asked, held);
      return held.map(({ rows }) => rows);
    },
  });
  draft.later(settleFeed(feed));
  return receipt;
}
