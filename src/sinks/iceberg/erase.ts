import type { Queryable } from '../../cursor/database/index.ts';
import { storableText } from '../../cursor/database/sql.ts';
import { carryRows } from '../../cursor/holdings/window-rows.ts';
import type { StreamName } from '../../model/streams.ts';
import { databaseNow, dropKeys, dropTrack, findTrack } from '../parquet/event-index.ts';
import { eraseIn, type Victim, victimOf } from '../parquet/maintain.ts';
import type { Erasure } from '../sink.ts';
import { lockTable } from './catalog.ts';
import { changeTable } from './change-table.ts';
import { editedPieces, openDataFile, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import type { Design } from './format/schema.ts';
import { designs, referencedFiles, summaryOf } from './maintain.ts';
import {
  type Draft,
  filesOf,
  inDraft,
  type Listed,
  loadTable,
  type Table,
  type TableFile,
  tableFolder,
  type Warehouse,
} from './warehouse.ts';

/**
 * Erases from the tables and their history: snapshots, manifests with their bounds, files that a killed
 * writer left. Time travel to before this moment is no longer possible. Returns how many rows of which table were touched.
 */
export async function erase(warehouse: Warehouse, erasure: Erasure): Promise<Record<string, number>> {
  const touched: Record<string, number> = {};
  for (const design of designs()) {
    const victim = victimIn(erasure, design);
    if (victim === undefined) continue;
    const done = await inDraft(warehouse, async (tx, draft) => {
      await lockTable(tx, warehouse, design.name);
      const table = await loadTable(tx, warehouse, design);
      if (!table) return undefined;
      // While we hold the lock, nobody is about to commit a file of this table: files that no snapshot names afterwards are removed.
      const before = await everyFile(warehouse, design);
      const { rows, removed, added } = await eraseTable(tx, draft, table, erasure, victim);
      const listed = await changeTable(tx, draft, table, {
        operation: added.length === 0 ? 'delete' : 'overwrite',
        added,
        removed,
        summary: await summaryOf(tx, warehouse, design),
        isExpired: () => true,
      });
      return { rows, before, listed };
    });
    if (!done) continue;
    await removeUnreferenced(warehouse, design, done.before, done.listed);
    touched[`${warehouse.namespace}.${design.name}`] = done.rows;
  }
  return touched;
}

function victimIn(erasure: Erasure, { name, isByDay }: Design): Victim | 'all' | undefined {
  if (isByDay) return victimOf(erasure, name as StreamName);
  if (erasure.kind === 'source') return 'all';
  const isCustomer = name === 'customers' && erasure.kind === 'customer';
  return isCustomer ? { column: 'customer_id', id: storableText(erasure.id), empties: undefined } : undefined;
}

async function everyFile(warehouse: Warehouse, design: Design): Promise<string[]> {
  const folder = tableFolder(warehouse, design.name);
  await warehouse.store.removeLeftovers(folder);
  const paths: string[] = [];
  for await (const { path } of warehouse.store.list(folder)) paths.push(path);
  return paths;
}

async function removeUnreferenced(
  warehouse: Warehouse,
  design: Design,
  paths: readonly string[],
  listed: Listed,
): Promise<void> {
  const named = await referencedFiles(warehouse, listed);
  for (const path of paths) if (!named.has(path)) await warehouse.store.delete(path);
  await warehouse.store.removeLeftovers(tableFolder(warehouse, design.name));
}

interface Erased {
  rows: number;
  added: DataFile[];
  removed: TableFile[];
}

async function eraseTable(
  tx: Queryable,
  draft: Draft,
  table: Table,
  { source }: Erasure,
  victim: Victim | 'all',
): Promise<Erased> {
  const { warehouse } = draft;
  const files = await filesOf(warehouse, table, { source });
  const track = table.design.isByDay
    ? await findTrack(tx, { sink: warehouse.name, stream: table.design.name as StreamName, source })
    : undefined;
  if (victim === 'all') {
    if (track !== undefined) await dropTrack(tx, track);
    return { rows: files.reduce((sum, { file }) => sum + file.rows, 0), added: [], removed: files };
  }
  const now = await databaseNow(tx);
  const done: Erased = { rows: 0, added: [], removed: [] };
  for (const entry of files) {
    const present = await openDataFile(warehouse, entry.file);
    try {
      if (!present.file.columns.some(({ name }) => name === victim.column)) continue;
      const inTable = { ...present, file: { ...present.file, columns: table.columns } };
      const { rework, rows, deleted } = await eraseIn(inTable, victim, now);
      if (rework === 'leave') continue;
      const target = { table, source, day: entry.file.day, beat: async () => {} };
      const file = await writeDataFile(draft, target, editedPieces(present, table.columns, rework.edits));
      done.rows += rows;
      if (table.design.name === 'clicks')
        await carryRows(tx, { sink: warehouse.name, stream: 'clicks', source }, { added: [], removed: deleted });
      done.removed.push(entry);
      if (file) done.added.push(file);
      const partition = (entry.file.day ?? 0) * 24;
      if (track !== undefined && rework.dropped.length > 0) await dropKeys(tx, track, partition, rework.dropped);
    } finally {
      await present.close();
    }
  }
  return done;
}
