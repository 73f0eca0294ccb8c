import { storableText } from '../../cursor/database/sql.ts';
import { ConfigError } from '../../model/errors.ts';
import type { StreamName } from '../../model/streams.ts';
import { databaseNow, dropFeed, findFeed } from '../files/event-index.ts';
import { eraseIn, type Victim, victimOf } from '../files/rework.ts';
import type { Erasure } from '../sink.ts';
import type { Design } from '../table-columns.ts';
import type { ForeignFile } from './foreign-files.ts';
import { designs, removeUnnamed, storedFiles } from './maintain.ts';
import { partsOf } from './table-files.ts';
import { changeIfThere, type TableWriter } from './table-writer.ts';
import { loadTable, tableFolder, type Warehouse } from './warehouse.ts';

/** Erases from the history, too: time travel to earlier snapshots ends. Returns the number of affected rows by table. */
export async function erase(warehouse: Warehouse, erasure: Erasure): Promise<Record<string, number>> {
  const touched: Record<string, number> = {};
  await refuseUnreachable(warehouse, erasure);
  for (const design of designs()) {
    const victim = victimIn(erasure, design);
    if (victim === undefined) continue;
    const done = await changeIfThere(warehouse, design, async (writer) => {
      // While we hold the lock, nobody is about to commit files to this table, so every file without a snapshot afterwards is removed.
      const before = await storedFiles(warehouse, design);
      const rows = await eraseTable(writer, erasure, victim);
      return { rows, before, listed: await writer.publish({ sources: [], isExpired: () => true }) };
    });
    if (!done) continue;
    await removeUnnamed(warehouse, done.listed, done.before);
    await warehouse.store.removeLeftovers(tableFolder(warehouse, design.name));
    touched[`${warehouse.namespace}.${design.name}`] = done.rows;
  }
  return touched;
}

/** Throws before anything is erased if branches, tags or foreign files, which we may not rewrite, could still name the person. */
export async function refuseUnreachable(warehouse: Warehouse, erasure: Erasure): Promise<void> {
  const found: string[] = [];
  for (const design of designs()) {
    const victim = victimIn(erasure, design);
    const table = victim && (await loadTable(warehouse, design));
    if (!victim || !table) continue;
    const place = `${warehouse.namespace}.${design.name}`;
    const refs = Object.entries(table.metadata.refs).filter(([name]) => name !== 'main');
    for (const [name, { type }] of refs) found.push(`the ${type} ${name} of ${place}`);
    if (table.deletes.length > 0) found.push(`delete files of another writer in ${place}`);
    for (const { foreign } of await partsOf(table, erasure)) {
      if (foreign && !foreign.isCompaction && (await mayName(foreign, victim, erasure.source)))
        found.push(`${place}/${foreign.by}`);
    }
  }
  if (found.length === 0) return;
  throw new ConfigError(
    `nothing is forgotten yet in the Iceberg tables: ${found.slice(0, 5).join('; ')} may still hold it`,
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

const mayName = async (foreign: ForeignFile, victim: Victim | 'all', source: string): Promise<boolean> =>
  victim === 'all'
    ? foreign.sources.includes(source) || foreign.theirs.some((row) => (row.source ?? source) === source)
    : foreign.mentions(victim.column, victim.id);

function victimIn(erasure: Erasure, { name, isByDay }: Design): Victim | 'all' | undefined {
  if (isByDay) return victimOf(erasure, name as StreamName);
  if (erasure.kind === 'source') return 'all';
  const isCustomer = name === 'customers' && erasure.kind === 'customer';
  return isCustomer ? { column: 'customer_id', id: storableText(erasure.id), empties: undefined } : undefined;
}

async function eraseTable(writer: TableWriter, { source }: Erasure, victim: Victim | 'all'): Promise<number> {
  const { draft, table } = writer;
  const { name: sink, state } = draft.warehouse;
  const feed = await findFeed(state, { sink, stream: table.design.name as StreamName, source });
  const now = await databaseNow(state);
  let rows = 0;
  if (victim === 'all' && feed !== undefined) draft.later(dropFeed(feed));
  // `refuseUnreachable` leaves only foreign files that are compactions of ours.
  for (const part of await partsOf(table, { source })) {
    if (part.rows === 0) continue;
    if (victim === 'all') {
      rows += part.rows;
      await writer.drop(part);
      continue;
    }
    await writer.rework(part, async (present) => {
      if (!present.file.columns.some((column) => column.name === victim.column)) return 'leave';
      const erased = await eraseIn({ ...present, file: { ...present.file, columns: table.columns } }, victim, now);
      rows += erased.rows;
      return erased.rework;
    });
  }
  return rows;
}
