import { type Finding, findingOf } from '../../model/errors.ts';
import type { Row } from '../../model/flatten.ts';
import { entitiesOf, LINKS, STREAMS, type Stream, type StreamName } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { type FileSink, gather } from '../files/commit.ts';
import { findFeed } from '../files/event-index.ts';
import { compareFiles } from '../files/merge.ts';
import { readFiles } from '../files/read.ts';
import { checkStore } from '../files/store/open-store.ts';
import type { Comparison, Difference, Sink } from '../sink.ts';
import { type Design, entityDesign, streamDesign } from '../table-columns.ts';
import { shareCommits } from './batch.ts';
import { createSqlCatalog } from './catalog.ts';
import { erase, refuseUnreachable } from './erase.ts';
import { openForeignFiles } from './foreign-files.ts';
import { createManifestCache } from './format/manifest-cache.ts';
import { presentColumns, withColumns } from './format/metadata.ts';
import { columnsIn, evolveSchema } from './format/schema.ts';
import { identify } from './heads.ts';
import { attestTable, removeForeign, removeMovedRows } from './holdings.ts';
import { designs, MAINTENANCE, type Maintenance, maintain, pruneTable } from './maintain.ts';
import { replaceLinks } from './merge/entities.ts';
import { createRestCatalog, type RestCatalogOptions } from './rest-catalog.ts';
import { eventFiles, openPart, ownFile, partsOf } from './table-files.ts';
import { createTableWriter } from './table-writer.ts';
import { publishProgress } from './upkeep/progress.ts';
import { staleCatalog } from './upkeep/versions.ts';
import {
  type Draft,
  dayRangeOf,
  type EventsOf,
  filesOf,
  inDraft,
  loadTable,
  type Table,
  type TableFile,
  type Warehouse,
  warehouseUri,
} from './warehouse.ts';

interface IcebergSinkOptions extends FileSink {
  /** A folder, or `s3://bucket/prefix`; `store` reads and writes the same place. */
  warehouse: string;
  namespace: string;
  maintenance?: Partial<Maintenance>;
  /** Default: a SQL catalog in the state's database. */
  rest?: RestCatalogOptions;
}

export type IcebergSink = ReturnType<typeof createIcebergSink>;

const BATCH_ROWS = 20_000;

/** A sink of Iceberg tables. A SQL catalog changes in one transaction with ledger and cursor. */
export function createIcebergSink(options: IcebergSinkOptions) {
  const { name, state, readAgainMs, warehouse: path, store, namespace, maintenance, rest } = options;
  const catalog = rest ? createRestCatalog(rest) : createSqlCatalog();
  const manifests = createManifestCache();
  const uri = warehouseUri(path);
  const warehouse: Warehouse = { name, state, readAgainMs, store, namespace, uri, catalog, manifests };
  const commits = shareCommits(warehouse);
  return {
    name,
    place: `Iceberg tables ${namespace}.* in ${warehouse.uri}`,
    batchRows: BATCH_ROWS,
    prepare: (stream) => prepareDesigns(warehouse, tablesOf(stream)),
    open: async (stream) => gather(stream, commits),
    async replaceLinks(snapshot) {
      await prepareDesigns(warehouse, [entityDesign(LINKS)]);
      return replaceLinks(warehouse, snapshot);
    },
    publishProgress: ({ stream }) => publishProgress(warehouse, stream),
    erase: (erasure) => erase(warehouse, erasure),
    checkErasure: (erasure) => refuseUnreachable(warehouse, erasure),
    maintain: (options = {}) => maintain(warehouse, { ...MAINTENANCE, ...maintenance }, options),
    check: () => check(warehouse),
    compare: (comparison) => compareTable(warehouse, comparison),
    tableOf: (stream) => `${namespace}.${stream}`,
    isInState: catalog.isInState,
    recover: ({ stream }) => recover(warehouse, stream),
    identify: (db, { stream }) => identify(db, warehouse, stream),
    attest: (stream, source, windows) => attestTable(warehouse, { stream, source }, windows),
    removeForeign: (stream, _source, windows) => removeForeign(warehouse, stream, windows),
    removeMoved: (stream, source, window) => removeMovedRows(warehouse, { stream, source }, window),
    prune: (stream, source, before) => pruneTable(warehouse, { stream, source }, before),
    read: (stream, source, window) => readTable(warehouse, { stream, source }, window),
    close: () => store.close(),
  } satisfies Sink;
}

const tablesOf = (stream: Stream): Design[] => [streamDesign(stream), ...entitiesOf(stream).map(entityDesign)];

/** After a restore of the catalog or of the files: continues with the newest version of each table that exists. */
async function recover(warehouse: Warehouse, stream: StreamName): Promise<boolean> {
  let isMoved = false;
  for (const { name } of tablesOf(STREAMS[stream]))
    if (await warehouse.catalog.recover?.(warehouse, name)) isMoved = true;
  return isMoved;
}

async function check(warehouse: Warehouse): Promise<readonly Finding[]> {
  const subject = `sink ${warehouse.name}`;
  const found = await checkStore(warehouse.store, subject);
  if (found.some(({ level }) => level === 'fault')) return found;
  try {
    for (const { name } of designs()) {
      await warehouse.catalog.load(warehouse, name);
      const newer = await warehouse.catalog.findNewer?.(warehouse, name);
      if (newer) throw staleCatalog(warehouse, name, newer);
    }
    return found;
  } catch (error) {
    return [findingOf(subject, error)];
  }
}

async function prepareDesigns(warehouse: Warehouse, wanted: readonly Design[]): Promise<void> {
  for (const design of wanted) {
    const there = await loadTable(warehouse, design);
    if (there && !evolveSchema(design, presentColumns(there.metadata)).isChanged) continue;
    await inDraft(warehouse, design.name, (draft) => prepareTable(draft, design));
  }
}

async function prepareTable(draft: Draft, design: Design): Promise<void> {
  const { warehouse } = draft;
  const table = await loadTable(warehouse, design);
  if (!table) {
    await warehouse.catalog.create(draft, design);
    return;
  }
  const evolved = evolveSchema(design, presentColumns(table.metadata));
  if (!evolved.isChanged) return;
  const removed = await filesWith(table, evolved.widened);
  if (removed.length === 0) {
    await warehouse.catalog.replace(draft, design.name, table, withColumns(table.metadata, evolved));
    return;
  }
  // A widened column has a new field id: without a rewrite, its values in old files would be read as null.
  const writer = createTableWriter(draft, { ...table, columns: columnsIn(evolved) });
  for (const foreign of await openForeignFiles(table, removed)) await writer.takeOver(foreign);
  for (const entry of removed) {
    const { source } = entry;
    if (source !== undefined) await writer.rework(ownFile(table, entry, source), async () => ({}));
  }
  await writer.publish({ evolved, sources: [] });
}

async function filesWith(table: Table, names: readonly string[]): Promise<TableFile[]> {
  if (names.length === 0) return [];
  const ids = table.columns.flatMap(({ name, fieldIds }) => (names.includes(name) ? (fieldIds ?? []) : []));
  return (await filesOf(table, {})).filter(({ file }) =>
    ids.some((id) => {
      const metrics = file.columns.get(id);
      return metrics !== undefined && metrics.nulls < metrics.values;
    }),
  );
}

async function compareTable(warehouse: Warehouse, comparison: Comparison): Promise<Difference[]> {
  const { stream, source } = comparison;
  const feed = await findFeed(warehouse.state, { sink: warehouse.name, stream: stream.name, source });
  const table = await loadTable(warehouse, streamDesign(stream));
  return compareFiles(comparison, feed === undefined ? undefined : table && eventFiles({ table, feed, source }));
}

async function* readTable(warehouse: Warehouse, { stream, source }: EventsOf, window: Window): AsyncGenerator<Row[]> {
  const table = await loadTable(warehouse, streamDesign(stream));
  if (!table) return;
  yield* readFiles(stream, window, async (day) =>
    (await partsOf(table, { source, days: [dayRangeOf(day)] })).map((part) => ({ open: () => openPart(part) })),
  );
}
