import type { Database, Transaction } from '../../cursor/database/index.ts';
import { type Finding, findingOf } from '../../model/errors.ts';
import type { Row } from '../../model/flatten.ts';
import { entitiesOf, STREAMS, type Stream, type StreamName } from '../../model/streams.ts';
import { DAY_MS, startOfDay, type Window } from '../../model/window.ts';
import { createSanitizer, UTF8_TEXT } from '../merge-rule.ts';
import { findTrack } from '../parquet/event-index.ts';
import { readyRows } from '../parquet/merge-batch.ts';
import { bookkeeping, createMergeRule } from '../parquet/merge-row.ts';
import { checkLake } from '../parquet/parquet-sink.ts';
import { columnsOf, createReshape, type PartitionFile } from '../parquet/partition-file.ts';
import { rowsInOrder } from '../parquet/read-lake.ts';
import type { Store } from '../parquet/store/store.ts';
import type { Comparison, Difference, SinkWith } from '../sink.ts';
import { openBatch } from './batch.ts';
import { CATALOG, createSqlCatalog, lockTable } from './catalog.ts';
import { changeTable } from './change-table.ts';
import { editedPieces, openDataFile, writeDataFile } from './data-file.ts';
import { erase } from './erase.ts';
import type { DataFile } from './format/manifest.ts';
import { currentSnapshot, presentColumns, withColumns } from './format/metadata.ts';
import { columnsIn, type Design, type Evolved, entityDesign, evolveSchema, streamDesign } from './format/schema.ts';
import { identifyElsewhere, identifyInState } from './heads.ts';
import { attestTable, removeForeign } from './holdings.ts';
import { designs, MAINTENANCE, type Maintenance, maintain } from './maintain.ts';
import { surveyTable } from './merge-events.ts';
import { createRestCatalog, type RestCatalogOptions } from './rest-catalog.ts';
import { openStrangers, replaceStranger } from './strangers.ts';
import {
  type Draft,
  filesOf,
  inDraft,
  loadTable,
  type Table,
  type TableFile,
  type Warehouse,
  warehouseUri,
} from './warehouse.ts';

interface IcebergSinkOptions {
  name: string;
  /** The state database: cursors, and the catalog. */
  state: Database;
  /** A folder, or `s3://bucket/prefix`; `store` reads and writes the same place. */
  warehouse: string;
  store: Store;
  namespace: string;
  maintenance?: Maintenance;
  /** Absent: in the state's own database. */
  rest?: RestCatalogOptions;
}

export type IcebergSink = SinkWith<
  'recover' | 'erase' | 'check' | 'compare' | 'identify' | 'attest' | 'removeForeign' | 'read' | 'maintain'
>;

/** As for the lake: enough for a full row group. */
const BATCH_ROWS = 20_000;

/** A sink of Iceberg tables. With a SQL catalog, catalog, ledger and cursor change in one transaction. */
export function createIcebergSink(options: IcebergSinkOptions): IcebergSink {
  const { name, state, warehouse: path, store, namespace, maintenance = MAINTENANCE, rest } = options;
  const catalog = rest ? createRestCatalog(rest) : createSqlCatalog();
  const warehouse: Warehouse = { name, state, store, namespace, uri: warehouseUri(path), catalog };
  return {
    name,
    place: `Iceberg tables ${namespace}.* in ${warehouse.uri}`,
    batchRows: BATCH_ROWS,
    prepare: (stream) => prepareTables(warehouse, stream),
    open: async (stream) => openBatch(warehouse, stream),
    erase: (erasure) => erase(warehouse, erasure),
    maintain: (options = {}) => maintain(warehouse, maintenance, options),
    check: () => check(warehouse),
    compare: (comparison) => compareTable(warehouse, comparison),
    tableOf: (stream) => `${namespace}.${stream}`,
    isInState: catalog.isInState,
    recover: ({ stream }) => recover(warehouse, stream),
    identify: (db, { stream }) =>
      catalog.isInState ? identifyInState(db, warehouse, CATALOG, stream) : identifyElsewhere(db, warehouse, stream),
    attest: (stream, source, windows) => attestTable(warehouse, stream, source, windows),
    removeForeign: (stream, _source, windows) => removeForeign(warehouse, stream, windows),
    read: (stream, source, window) => readTable(warehouse, stream, source, window),
    close: () => store.close(),
  };
}

const tablesOf = (stream: Stream): Design[] => [streamDesign(stream), ...entitiesOf(stream).map(entityDesign)];

/** A catalog, or a folder, that was restored: it goes on with the newest version of a table that is there. */
async function recover(warehouse: Warehouse, stream: StreamName): Promise<boolean> {
  const { state, catalog } = warehouse;
  let isMoved = false;
  for (const { name } of tablesOf(STREAMS[stream])) {
    if (!(await catalog.isLost?.(state, warehouse, name))) continue;
    await state.transaction(async (tx) => {
      await lockTable(tx, warehouse, name);
      isMoved = (await catalog.recover?.(tx, warehouse, name)) || isMoved;
    });
  }
  return isMoved;
}

/** Whether files can be written, and whether the catalog names versions of the tables that are there. */
async function check(warehouse: Warehouse): Promise<readonly Finding[]> {
  const subject = `sink ${warehouse.name}`;
  const found = await checkLake(warehouse.store, subject);
  if (found.some(({ level }) => level === 'fault')) return found;
  try {
    for (const { name } of designs()) await warehouse.catalog.load(warehouse.state, warehouse, name);
    return found;
  } catch (error) {
    return [findingOf(subject, error)];
  }
}

/** Creates the tables that a stream needs, or adds missing columns. */
async function prepareTables(warehouse: Warehouse, stream: Stream): Promise<void> {
  for (const design of tablesOf(stream)) {
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

/** A widened column has a new field id: without a rewrite, its values in old files would be read as null. */
async function widenFiles(
  draft: Draft,
  table: Table,
  evolved: Evolved,
  files: readonly TableFile[],
): Promise<DataFile[]> {
  const wider = { ...table, columns: columnsIn(evolved) };
  const added: DataFile[] = [];
  for (const stranger of await openStrangers(draft.warehouse, table, files))
    added.push(...(await replaceStranger(draft, wider, stranger)));
  for (const { file, source } of files) {
    if (source === undefined) continue;
    const present = await openDataFile(draft.warehouse, file);
    try {
      const target = { table: wider, source, day: file.day, beat: async () => {} };
      const made = await writeDataFile(draft, target, editedPieces(present, wider.columns, new Map()));
      if (made) added.push(made);
    } finally {
      await present.close();
    }
  }
  return added;
}

/** Compares rows with the table by the merge rule, and changes nothing. */
async function compareTable(warehouse: Warehouse, comparison: Comparison): Promise<Difference[]> {
  const { stream, source, window, rows, isWhole } = comparison;
  const missing = (from: ReadonlyArray<{ id: string; at: number }>): Difference[] =>
    from.map(({ id, at }) => ({ kind: 'missing', id, at, columns: [] }));
  // The sink's own columns do not take part in the comparison.
  const incoming = readyRows(createSanitizer(stream, UTF8_TEXT), source, rows, bookkeeping(0, ''));
  const track = await findTrack(warehouse.state, { sink: warehouse.name, stream: stream.name, source });
  const table = await loadTable(warehouse.state, warehouse, streamDesign(stream));
  if (track === undefined || !table) return missing(incoming);
  const reshape = createReshape(columnsOf(stream), table.columns);
  const { works, stored } = await surveyTable(warehouse.state, warehouse, table, {
    source,
    track,
    incoming: incoming.map((one) => ({ ...one, row: reshape(one.row) })),
    wholes: isWhole ? [window] : [],
    rule: createMergeRule(stream, table.columns),
    beat: async () => {},
  });
  const differences: Difference[] = [];
  for (const { open, findings } of works) {
    for (const group of [...findings.changed.values(), ...findings.moved.values()]) {
      for (const { id, at, columns } of group.values()) differences.push({ kind: 'different', id, at, columns });
    }
    if (findings.missing.size === 0) continue;
    const file = await open();
    try {
      differences.push(...(await extra(file, findings.missing)));
    } finally {
      await file.close();
    }
  }
  return [...missing(incoming.filter(({ id }) => !stored.has(id))), ...differences];
}

async function extra(file: PartitionFile, rows: ReadonlyMap<number, ReadonlySet<number>>): Promise<Difference[]> {
  const found: Difference[] = [];
  for (const [number, places] of rows) {
    const group = file.file.groups[number];
    if (!group) throw new Error('a group that was looked into');
    const all = await file.rows(group, ['event_id', 'timestamp']);
    for (const place of places) {
      const [id, at] = all[place] ?? [];
      found.push({ kind: 'extra', id: String(id), at: Number(at), columns: [] });
    }
  }
  return found;
}

/** Rows without the sink's own columns, in order of time, a day's files at a time. */
async function* readTable(warehouse: Warehouse, stream: Stream, source: string, window: Window): AsyncGenerator<Row[]> {
  const table = await loadTable(warehouse.state, warehouse, streamDesign(stream));
  if (!table) return;
  for (let start = startOfDay(window.start); start < window.end; start += DAY_MS) {
    const part = { start: Math.max(window.start, start), end: Math.min(window.end, start + DAY_MS) };
    const day = start / DAY_MS;
    const files: PartitionFile[] = [];
    try {
      const listed = await filesOf(warehouse, table, { source, days: [{ first: day, last: day }] });
      for (const entry of listed) if (entry.source === source) files.push(await openDataFile(warehouse, entry.file));
      for (const stranger of await openStrangers(warehouse, table, listed)) files.push(stranger.of(source, day));
      yield* rowsInOrder(files, stream, part);
    } finally {
      for (const file of files) await file.close();
    }
  }
}
