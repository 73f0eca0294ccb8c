import type { Queryable } from '../../cursor/database/index.ts';
import { storableText } from '../../cursor/database/sql.ts';
import { carryRows } from '../../cursor/holdings/window-rows.ts';
import { ConfigError } from '../../model/errors.ts';
import type { StreamName } from '../../model/streams.ts';
import { eraseIn, type Rework, type Victim, victimOf } from '../files/erase.ts';
import { databaseNow, dropKeys, dropTrack, findTrack } from '../files/event-index.ts';
import type { PartitionFile } from '../files/partition-file.ts';
import { whileOpen } from '../files/store/store.ts';
import { editedPieces } from '../files/write-file.ts';
import type { Erasure } from '../sink.ts';
import { changeIfThere, changeTable } from './change-table.ts';
import { openDataFile, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import type { Design } from './format/schema.ts';
import { designs, referencedFiles } from './maintain.ts';
import { openStrangers, replaceStranger, type Stranger } from './strangers.ts';
import {
  type Draft,
  filesOf,
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
  await refuseUnreachable(warehouse, erasure);
  for (const design of designs()) {
    const victim = victimIn(erasure, design);
    if (victim === undefined) continue;
    const done = await changeIfThere(warehouse, design, async (tx, draft, table) => {
      // While we hold the lock, nobody is about to commit a file of this table: files that no snapshot names afterwards are removed.
      const before = await everyFile(warehouse, design);
      const { rows, removed, added } = await eraseTable(tx, draft, table, erasure, victim);
      const listed = await changeTable(tx, draft, table, {
        operation: added.length === 0 ? 'delete' : 'overwrite',
        added,
        removed,
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

/** Before anything is erased: what we may not rewrite, and what branches and tags keep, could go on naming the person. */
export async function refuseUnreachable(warehouse: Warehouse, erasure: Erasure): Promise<void> {
  const found: string[] = [];
  for (const design of designs()) {
    const victim = victimIn(erasure, design);
    const table = victim && (await loadTable(warehouse.state, warehouse, design));
    if (!victim || !table) continue;
    const place = `${warehouse.namespace}.${design.name}`;
    const refs = Object.entries(table.metadata.refs).filter(([name]) => name !== 'main');
    for (const [name, { type }] of refs) found.push(`the ${type} ${name} of ${place}`);
    if (table.deletes.length > 0) found.push(`delete files of another writer in ${place}`);
    const strangers = await openStrangers(
      warehouse,
      table,
      await filesOf(warehouse, table, { source: erasure.source }),
    );
    for (const stranger of strangers) {
      if (!stranger.isCompaction && (await mayName(stranger, victim, erasure.source)))
        found.push(`${place}/${stranger.by}`);
    }
  }
  if (found.length === 0) return;
  throw new ConfigError(
    `nothing is forgotten yet in the Iceberg tables: ${found.slice(0, 5).join('; ')} may hold it still`,
    {
      where: { source: erasure.source, sink: warehouse.name },
      kept:
        erasure.kind === 'source'
          ? 'everything: tables, cursors and ledger'
          : 'the tables as they are; what comes from now on is left out',
      next: 'drop branches and tags, run `tributary verify --repair` for files of other writers, then forget again',
    },
  );
}

const mayName = async (stranger: Stranger, victim: Victim | 'all', source: string): Promise<boolean> =>
  victim === 'all'
    ? stranger.sources.includes(source) || stranger.theirs.some((row) => (row.source ?? source) === source)
    : stranger.mentions(victim.column, victim.id);

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
  const listed = await filesOf(warehouse, table, { source });
  const files = listed.filter((entry) => entry.source === source);
  // Those that join files of ours; others were refused.
  const strangers = await openStrangers(warehouse, table, listed);
  const track = table.design.isByDay
    ? await findTrack(tx, { sink: warehouse.name, stream: table.design.name as StreamName, source })
    : undefined;
  const done: Erased = { rows: 0, added: [], removed: [] };
  if (victim === 'all') {
    if (track !== undefined) await dropTrack(tx, track);
    for (const stranger of strangers.filter(({ sources }) => sources.includes(source))) {
      done.rows += stranger.times(source).length;
      done.added.push(...(await replaceStranger(draft, table, { ...stranger, sources: others(stranger, source) })));
      done.removed.push(stranger.entry);
    }
    const rows = files.reduce((sum, { file }) => sum + file.rows, done.rows);
    return { ...done, rows, removed: [...done.removed, ...files] };
  }
  const now = await databaseNow(tx);
  const eraseOne = async (
    entry: TableFile,
    present: PartitionFile,
    write: (edits: Rework['edits']) => Promise<DataFile[]>,
  ): Promise<void> => {
    if (!present.file.columns.some(({ name }) => name === victim.column)) return;
    const inTable = { ...present, file: { ...present.file, columns: table.columns } };
    const { rework, rows, deleted } = await eraseIn(inTable, victim, now);
    if (rework === 'leave') return;
    done.rows += rows;
    done.removed.push(entry);
    done.added.push(...(await write(rework.edits)));
    if (table.design.name === 'clicks')
      await carryRows(tx, { sink: warehouse.name, stream: 'clicks', source }, { added: [], removed: deleted });
    const partition = (entry.file.day ?? 0) * 24;
    if (track !== undefined && rework.dropped.length > 0) await dropKeys(tx, track, partition, rework.dropped);
  };
  for (const entry of files)
    await whileOpen(await openDataFile(warehouse, entry.file), (present) =>
      eraseOne(entry, present, (edits) =>
        writeDataFile(draft, { table, source, day: entry.file.day }, editedPieces(present, table.columns, edits)),
      ),
    );
  for (const stranger of strangers)
    await eraseOne(stranger.entry, stranger.of(source), (edits) =>
      replaceStranger(draft, table, stranger, { source, edits }),
    );
  return done;
}

const others = ({ sources }: Stranger, source: string): string[] => sources.filter((one) => one !== source);
