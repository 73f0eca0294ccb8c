import type { StreamName } from '../../model/streams.ts';
import { DAY_MS } from '../../model/window.ts';
import { editsOf, extractMoved, movedIn } from '../files/compare-rows.ts';
import { addKeys, dropKeys, findFeed } from '../files/event-index.ts';
import { groupBy } from '../files/group-by.ts';
import type { Files, WritableFiles } from '../files/merge.ts';
import type { LakeRow, PartitionFile } from '../files/partition-file.ts';
import { recordRework, type Visit } from '../files/rework.ts';
import { whileOpen } from '../files/store/store.ts';
import { type Edits, editedPieces } from '../files/write-file.ts';
import type { Design } from '../table-columns.ts';
import { type Change, changeTable, type NewFile } from './change-table.ts';
import { orderOf, writeDataFile } from './data-file.ts';
import { type ForeignFile, replaceForeignFile } from './foreign-files.ts';
import { openPart, type Part, partitionOf } from './table-files.ts';
import { type Draft, inDraft, loadTable, type Table, type TableFile, type Warehouse } from './warehouse.ts';

/** Runs `work` under the lock of a table, if the table exists, and publishes its changes at the end. */
export const changeIfThere = <T>(warehouse: Warehouse, design: Design, work: (writer: TableWriter) => Promise<T>) =>
  inDraft(warehouse, design.name, async (draft) => {
    const table = await loadTable(warehouse, design);
    if (!table) return undefined;
    const writer = createTableWriter(draft, table);
    const result = await work(writer);
    await writer.publish();
    return result;
  });

export type TableWriter = ReturnType<typeof createTableWriter>;

/** Collects changes to a table: no snapshot lists the new files before `publish` commits them as one version. */
export function createTableWriter(draft: Draft, table: Table) {
  const [added, removed]: [NewFile[], TableFile[]] = [[], []];
  let isPublished = false;

  /** Removes a foreign file and rewrites our rows of it into files of ours. */
  const takeOver = async (foreign: ForeignFile, edited?: { source: string; edits?: Edits | undefined }) => {
    removed.push(foreign.entry);
    added.push(...(await replaceForeignFile(draft, table, foreign, edited)));
  };

  /** Rewrites the opened part with some row groups edited; the others are copied as bytes. */
  const replace = async (part: Part, present: PartitionFile, edits?: Edits): Promise<void> => {
    const { source, entry, foreign } = part;
    if (foreign) return takeOver(foreign, { source, edits });
    removed.push(entry);
    const pieces = editedPieces(present, table.columns, edits);
    added.push(...(await writeDataFile(draft, { table, source, day: entry.file.day }, pieces)));
  };

  return {
    draft,
    table,
    added,
    removed,
    replace,
    takeOver,
    /** Writes rows, sorted in the table's order, as a new file. */
    async add(source: string, rows: readonly LakeRow[], day?: number): Promise<void> {
      added.push(...(await writeDataFile(draft, { table, source, day }, [{ rows }])));
    },
    /** Opens a part and applies the changes that `visit` returns, in the table and in the state. */
    async rework(part: Part, visit: Visit): Promise<void> {
      const feed = { sink: draft.warehouse.name, stream: table.design.name as StreamName, source: part.source };
      await whileOpen(await openPart(part), async (present) => {
        const decision = await visit(present);
        if (decision === 'leave') return;
        await replace(part, present, decision.edits);
        const id = await findFeed(draft.warehouse.state, feed);
        recordRework(draft, feed, { id, partition: partitionOf(part.entry.file.day ?? 0) }, decision);
      });
    },
    /** Removes a part. Rows of other sources in a foreign file are rewritten into files of ours. */
    async drop({ source, entry, foreign }: Part): Promise<void> {
      if (!foreign) removed.push(entry);
      else await takeOver({ ...foreign, sources: foreign.sources.filter((one) => one !== source) });
    },
    /** Commits one version of the table, once; without `how`, only if files changed. */
    async publish(how?: Omit<Change, 'added' | 'removed'>): Promise<Table> {
      if (isPublished || (!how && added.length + removed.length === 0)) return table;
      isPublished = true;
      return changeTable(draft, table, { added, removed, ...how });
    },
  };
}

/** Rewrites files with changed rows, copying untouched row groups; new rows get a new file for each day. */
export const writableTable = (
  { draft, table, ...writer }: TableWriter,
  files: Files<Part>,
  { source, feed }: { source: string; feed?: number },
): WritableFiles<Part> => ({
  ...files,
  async write({ works, newEvents, gone, rule, now }) {
    for (const part of gone) await writer.drop(part);
    const fresh = [...newEvents];
    const inOrder = orderOf(table);
    for (const { target, findings } of works) {
      const { file } = target;
      await whileOpen(await openPart(file), async (present) => {
        fresh.push(...(await extractMoved(present, findings, rule, table.columns)));
        await writer.replace(file, present, editsOf(findings, rule, table.columns, now));
      });
      const moved = movedIn(findings).map(({ key }) => key);
      if (feed !== undefined && moved.length > 0)
        draft.later(dropKeys(feed, partitionOf(file.entry.file.day ?? 0), moved));
    }
    fresh.sort((a, b) => inOrder(a.row, b.row));
    for (const [day, rows] of groupBy(fresh, ({ at }) =>
      table.design.isByDay ? Math.floor(at / DAY_MS) : undefined,
    )) {
      const [inFile, keys] = [rows.map(({ row }) => row), rows.map(({ key }) => key)];
      await writer.add(source, inFile, day);
      if (feed !== undefined && day !== undefined) draft.later(addKeys(feed, partitionOf(day), keys));
    }
  },
});
