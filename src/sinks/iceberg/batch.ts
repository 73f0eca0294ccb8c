import type { Instant } from '../../model/instant.ts';
import { entitiesOf, type StreamName } from '../../model/streams.ts';
import { commitOnce, type Load, storeLoad } from '../files/commit.ts';
import { emptyIndex, enterTrack, indexStart, moveIndex, settleTrack } from '../files/event-index.ts';
import { mergeEvents } from '../files/merge.ts';
import type { Held, Receipt } from '../sink.ts';
import { changeTable } from './change-table.ts';
import type { DataFile } from './format/manifest.ts';
import { type Design, entityDesign, streamDesign } from './format/schema.ts';
import { settleHead } from './heads.ts';
import { holdingsOf } from './holdings.ts';
import { mergeEntity } from './merge/entities.ts';
import { checkShape, createTableWriter, eventFiles, indexTable, type NewFiles, writableTable } from './table-files.ts';
import { type Draft, inDraft, preparedTable, type TableFile, tableLock, type Warehouse } from './warehouse.ts';

interface Waiting extends Load {
  done(receipt: Receipt): void;
  failed(error: unknown): void;
}

/** Rows of several sources that are committed together; a batch of one may be larger. */
const MOST_ROWS = 20_000;

/** Sources that commit to a table while it is being written share the next version of it: many sources do not make many snapshots. */
export function shareCommits(warehouse: Warehouse): (load: Load) => Promise<Receipt> {
  const queues = new Map<StreamName, Waiting[]>();

  const commit = async (loads: readonly Waiting[]): Promise<void> => {
    try {
      const receipts = await commitLoads(warehouse, loads);
      for (const [i, load] of loads.entries()) load.done(receipts[i] as Receipt);
    } catch (error) {
      // Recovery: one of them cannot be written; each is tried by itself. An error of one alone is its caller's.
      if (loads.length === 1) loads[0]?.failed(error);
      else for (const load of loads) await commit([load]);
    }
  };

  const work = async (queue: Waiting[]): Promise<void> => {
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

/**
 * Files first, which readers do not see; then one transaction of the state: ledger and cursor, and last the catalog, which refers to the files.
 * A crash before COMMIT leaves files that no snapshot lists, and nothing else. Without rows, no table changes.
 */
function commitLoads(warehouse: Warehouse, loads: readonly Load[]): Promise<Receipt[]> {
  const { state } = warehouse;
  const [first] = loads;
  if (!first) throw new Error('something is committed');
  return inDraft<Receipt[]>(
    warehouse,
    first.stream.name,
    async (draft) => {
      const table = await openChanges(draft, streamDesign(first.stream));
      await settleHead(warehouse, table.now().design.name, table.now());
      const entities = new Map<string, Changes>();
      const receipts: Receipt[] = [];
      for (const load of loads) receipts.push(await writeLoad(draft, { load, table, entities }));
      for (const one of [...entities.values(), table]) await one.publish();
      return receipts;
    },
    commitOnce(state, first.advance),
  );
}

type Changes = Awaited<ReturnType<typeof openChanges>>;

/** What is to change in a table, published as one version of it. */
async function openChanges(draft: Draft, design: Design) {
  let table = await preparedTable(draft.warehouse, design);
  let [added, removed, sources]: [DataFile[], TableFile[], string[]] = [[], [], []];
  const publish = async (): Promise<void> => {
    if (added.length + removed.length === 0) return;
    const operation = removed.length === 0 ? 'append' : 'overwrite';
    table = await changeTable(draft, table, { operation, added, removed, sources });
    [added, removed, sources] = [[], [], []];
  };
  return {
    now: () => table,
    async add(source: string, change: NewFiles): Promise<void> {
      if (change.added.length + change.removed.length === 0) return;
      added.push(...change.added);
      removed.push(...change.removed);
      sources.push(source);
      // A file that another program joined has rows of several sources: the next one has to see what became of it.
      if (change.removed.some((entry) => entry.source === undefined)) await publish();
    },
    publish,
  };
}

async function writeLoad(
  draft: Draft,
  { load, table, entities }: { load: Load; table: Changes; entities: Map<string, Changes> },
): Promise<Receipt> {
  const { warehouse } = draft;
  const { state } = warehouse;
  const { stream, advance } = load;
  const { source } = advance;
  const before = table.now();
  const { id: track, isUnsettled, now } = await enterTrack(state, advance, { isMarked: false });
  let files: NewFiles = { added: [], removed: [] };
  const counted = new Map<string, readonly Held[]>();
  const receipt = await storeLoad(state, draft, load, {
    async merge(rows) {
      const of = { table: before, track, source };
      checkShape(stream, before);
      // A sink that was renamed, a state that was lost, a table that others changed.
      if (isUnsettled) await emptyIndex(state, track);
      const start = indexStart(now, warehouse.readAgainMs, advance);
      await moveIndex(state, draft, track, start, (end) => indexTable(of, start, end));
      const writer = createTableWriter(draft, before, source);
      const writable = writableTable(draft, eventFiles(of), { table: before, track, writer });
      const merged = await mergeEvents({ stream, rows, advance, now }, writable);
      files = writer;
      await storeEntities(draft, { stream, source, rows, now, entities });
      return { ...merged, isAfterCrash: isUnsettled };
    },
    // Asked for again when what was foreseen is written: files are read once.
    async count(_, windows) {
      const asked = JSON.stringify(windows);
      const held = counted.get(asked) ?? (await holdingsOf(before, { source, windows, ...files }));
      counted.set(asked, held);
      return held.map(({ rows }) => rows);
    },
  });
  await table.add(source, files);
  draft.later(settleTrack(track));
  return receipt;
}

interface EntityLoad extends Pick<Load, 'stream' | 'rows'> {
  source: string;
  now: Instant;
  entities: Map<string, Changes>;
}

async function storeEntities(draft: Draft, { entities, ...load }: EntityLoad): Promise<void> {
  if (load.rows.length === 0) return;
  const { warehouse } = draft;
  // Always in the same order, after the stream's own table, so that two commits cannot deadlock.
  for (const entity of entitiesOf(load.stream)) {
    await draft.lock(tableLock(warehouse, entity.name));
    const changes = entities.get(entity.name) ?? (await openChanges(draft, entityDesign(entity)));
    entities.set(entity.name, changes);
    await changes.add(load.source, await mergeEntity({ draft, table: changes.now(), entity, ...load }));
  }
}
