import type { Transaction } from '../../cursor/database/index.ts';
import { entitiesOf, type Stream } from '../../model/streams.ts';
import { lockTable } from './catalog.ts';
import { changeTable } from './change-table.ts';
import { editedPieces, openDataFile, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import { currentSnapshot, presentColumns, withColumns } from './format/metadata.ts';
import { columnsIn, type Design, type Evolved, entityDesign, evolveSchema, streamDesign } from './format/schema.ts';
import { filesOf, loadTable, sourceOf, type Table, type TableFile } from './table.ts';
import { type Draft, inDraft, type Warehouse } from './warehouse.ts';

/** Makes the tables that a stream needs, or gives them the columns that they lack. */
export async function prepareTables(warehouse: Warehouse, stream: Stream): Promise<void> {
  for (const design of [streamDesign(stream), ...entitiesOf(stream).map(entityDesign)]) {
    const there = await loadTable(warehouse.state, warehouse, design);
    if (there && !evolveSchema(design, presentColumns(there.metadata)).isChanged) continue;
    await inDraft(warehouse, async (tx, draft) => {
      await lockTable(tx, warehouse, design.name);
      await prepareTable(tx, draft, design);
    });
  }
}

async function prepareTable(tx: Transaction, draft: Draft, design: Design): Promise<void> {
  const { warehouse } = draft;
  const table = await loadTable(tx, warehouse, design);
  if (!table) {
    await warehouse.catalog.create(tx, draft, design);
    return;
  }
  const evolved = evolveSchema(design, presentColumns(table.metadata));
  if (!evolved.isChanged) return;
  const removed = await filesWith(warehouse, table, evolved.widened);
  if (removed.length === 0) {
    await warehouse.catalog.replace(tx, draft, design.name, table, withColumns(table.metadata, evolved));
    return;
  }
  const summary = currentSnapshot(table.metadata)?.summary ?? {};
  const added = await widenFiles(draft, table, evolved, removed);
  await changeTable(tx, draft, table, { operation: 'overwrite', added, removed, summary, evolved });
}

/** Files that hold a value of one of these columns. */
async function filesWith(warehouse: Warehouse, table: Table, names: readonly string[]): Promise<TableFile[]> {
  if (names.length === 0) return [];
  const ids = table.columns.flatMap(({ name, fieldIds }) => (names.includes(name) ? (fieldIds ?? []) : []));
  return (await filesOf(warehouse, table, {})).filter(({ file }) =>
    ids.some((id) => {
      const metrics = file.columns.get(id);
      return metrics !== undefined && metrics.nulls < metrics.values;
    }),
  );
}

/** A column that holds more has a number of its own: what old files have under the old one would be read as nothing. */
async function widenFiles(
  draft: Draft,
  table: Table,
  evolved: Evolved,
  files: readonly TableFile[],
): Promise<DataFile[]> {
  const wider = { ...table, columns: columnsIn(evolved) };
  const added: DataFile[] = [];
  for (const { file } of files) {
    const present = await openDataFile(draft.warehouse, file);
    try {
      const target = { table: wider, source: sourceOf(file) ?? 'unknown', day: file.day, beat: async () => {} };
      const made = await writeDataFile(draft, target, editedPieces(present, wider.columns, new Map()));
      if (made) added.push(made);
    } finally {
      await present.close();
    }
  }
  return added;
}
