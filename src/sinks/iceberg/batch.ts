import { lastCommit } from '../../cursor/cursors.ts';
import type { Transaction } from '../../cursor/database/index.ts';
import { withoutForgotten } from '../../cursor/forgotten.ts';
import type { CountRows } from '../../cursor/holdings/window-rows.ts';
import { checkFence } from '../../cursor/leases.ts';
import { type Advance, applyAdvance } from '../../cursor/ledger.ts';
import { quarantine } from '../../cursor/quarantine.ts';
import { isNone, type Value } from '../../model/columns.ts';
import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';
import { type Entity, entitiesOf, type Stream } from '../../model/streams.ts';
import { createSanitizer, newestEntities, UTF8_TEXT } from '../merge-rule.ts';
import { databaseNow, enterTrack, settleTrack } from '../parquet/event-index.ts';
import { createReshape, type LakeRow, type PartitionFile } from '../parquet/partition-file.ts';
import { type Batch, type Receipt, resolveInDoubt, ShapeChanged } from '../sink.ts';
import { lockTable } from './catalog.ts';
import { COMMIT, changeTable, provenSummary, statesSame } from './change-table.ts';
import { editedPieces, openIfThere, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import { currentSnapshot } from './format/metadata.ts';
import { type Design, entityDesign, streamDesign } from './format/schema.ts';
import { holdingsOf } from './holdings.ts';
import { indexTable, mergeEvents } from './merge-events.ts';
import { openStrangers, replaceStranger } from './strangers.ts';
import { type Draft, filesOf, inDraft, loadTable, type Table, type TableFile, type Warehouse } from './warehouse.ts';

/**
 * Rows are gathered and written in one transaction of the state: files first, which readers do not see; then ledger and cursor; last the
 * catalog, which refers to them. A crash before COMMIT leaves files that no snapshot lists, and nothing else.
 */
export function openBatch(warehouse: Warehouse, stream: Stream): Batch {
  const { state } = warehouse;
  const rows: Row[] = [];

  const write = async (tx: Transaction, draft: Draft, advance: Advance, rejected: Parameters<typeof quarantine>[2]) => {
    // Before the fence: a process that waits for a long commit can keep renewing its lease meanwhile.
    await lockTable(tx, warehouse, stream.name);
    const fence = await checkFence(tx, advance);
    const kept = await withoutForgotten(tx, advance.source, stream, rows);
    const table = await preparedTable(tx, warehouse, streamDesign(stream));
    const { id: track, isUnsettled: isNew } = await enterTrack(tx, advance);
    const isBehind = !warehouse.catalog.isInState && lastCommitOf(table, advance) !== (await lastCommit(tx, advance));
    if (isNew || isBehind) await indexTable(tx, warehouse, table, track, advance.source);
    const { receipt, changes, added, removed } = await mergeEvents(tx, {
      ...{ draft, table, track, stream, rows: kept, advance, beat: fence.renew },
    });
    await storeEntities(tx, { draft, stream, source: advance.source, rows: kept, beat: fence.renew });
    await quarantine(tx, advance, rejected);
    const { source } = advance;
    const count: CountRows = async (windows) =>
      (await holdingsOf(warehouse, table, { source, windows, added, removed })).map(({ rows }) => rows);
    await applyAdvance(tx, fence, advance, { ...changes, count, isAfterCrash: isNew || isBehind });
    const summary = await provenSummary(tx, advance);
    const isSame = statesSame(currentSnapshot(table.metadata)?.summary ?? {}, summary);
    // In other catalogs every snapshot names its commit, so that recovery sees whether a table is ahead of the state.
    if (added.length + removed.length > 0 || !isSame || !warehouse.catalog.isInState) {
      const operation = removed.length === 0 ? 'append' : 'overwrite';
      const summaryWithCommit = { ...summary, [`${COMMIT}${advance.source}`]: advance.commitId };
      await changeTable(tx, draft, table, { operation, added, removed, summary: summaryWithCommit });
    }
    await settleTrack(tx, track);
    return receipt;
  };

  return {
    async write(more) {
      rows.push(...more);
    },
    async commit(advance, rejected = []) {
      const isThere = async (): Promise<boolean> => (await lastCommit(state, advance)) === advance.commitId;
      return inDraft<Receipt>(
        warehouse,
        (tx, draft) => write(tx, draft, advance, rejected),
        (attempt) => resolveInDoubt(attempt, (again) => state.transaction(again), isThere),
      );
    },
    async abort() {
      rows.length = 0;
    },
  };
}

const lastCommitOf = ({ metadata }: Table, { source }: Advance): string | undefined =>
  currentSnapshot(metadata)?.summary[`${COMMIT}${source}`];

async function preparedTable(tx: Transaction, warehouse: Warehouse, design: Design): Promise<Table> {
  const table = await loadTable(tx, warehouse, design);
  if (!table) throw new ShapeChanged(`${warehouse.namespace}.${design.name}`, {});
  return table;
}

async function storeEntities(
  tx: Transaction,
  {
    draft,
    stream,
    ...rest
  }: { draft: Draft; stream: Stream; source: string; rows: readonly Row[]; beat(): Promise<void> },
): Promise<void> {
  if (rest.rows.length === 0) return;
  const now = await databaseNow(tx);
  // Always in the same order, after the stream's own table, so that two commits cannot deadlock.
  for (const entity of entitiesOf(stream)) {
    await lockTable(tx, draft.warehouse, entity.name);
    const table = await preparedTable(tx, draft.warehouse, entityDesign(entity));
    const { added, removed } = await mergeEntity({ draft, table, entity, stream, now, ...rest });
    if (added.length + removed.length === 0) continue;
    const operation = removed.length === 0 ? 'append' : 'overwrite';
    await changeTable(tx, draft, table, { operation, added, removed, summary: {} });
  }
}

interface EntityMerge {
  draft: Draft;
  table: Table;
  entity: Entity;
  stream: Stream;
  source: string;
  rows: readonly Row[];
  now: Instant;
  beat(): Promise<void>;
}

/**
 * Links and customers as last seen: the newest reading wins, an unchanged row is left alone, and an empty reading never
 * overwrites a full one. `postgres/merge.ts` states the same rule in SQL.
 */
async function mergeEntity(options: EntityMerge): Promise<{ added: DataFile[]; removed: TableFile[] }> {
  const { draft, table, entity, source, beat } = options;
  const sought = readings(options);
  const [added, removed]: [DataFile[], TableFile[]] = [[], []];
  if (sought.size === 0) return { added, removed };
  const files = await filesOf(draft.warehouse, table, { source });
  for (const entry of files.filter((one) => one.source === source)) {
    await beat();
    if (sought.size === 0) break;
    const present = await openIfThere(draft.warehouse, entry.file);
    try {
      const edits = present ? await newReadings(present, options, sought) : NO_EDITS;
      if (present && edits.size === 0) continue;
      removed.push(entry);
      if (!present) continue;
      const pieces = editedPieces(present, table.columns, edits);
      const file = await writeDataFile(draft, { table, source, day: undefined, beat }, pieces);
      if (file) added.push(file);
    } finally {
      await present?.close();
    }
  }
  for (const stranger of await openStrangers(draft.warehouse, table, files)) {
    await beat();
    const edits = await newReadings(stranger.of(source), options, sought);
    if (edits.size === 0) continue;
    removed.push(stranger.entry);
    added.push(...(await replaceStranger(draft, table, stranger, { source, edits })));
  }
  const key = table.columns.findIndex(({ name }) => name === entity.key);
  const rows = [...sought.values()].sort((a, b) => Buffer.compare(bytesOf(a[key]), bytesOf(b[key])));
  const file = await writeDataFile(draft, { table, source, day: undefined, beat }, rows.length > 0 ? [{ rows }] : []);
  if (file) added.push(file);
  return { added, removed };
}

type Edits = Map<number, (rows: readonly LakeRow[]) => LakeRow[]>;
const NO_EDITS: Edits = new Map();

/** What a file holds of the entities sought, which are then no longer sought, and where it has to change. */
async function newReadings(
  present: PartitionFile,
  { table, entity }: EntityMerge,
  sought: Map<string, LakeRow>,
): Promise<Edits> {
  const key = table.columns.findIndex(({ name }) => name === entity.key);
  const isChanged = createIsChanged(table, entity);
  const reshape = createReshape(present.file.columns, table.columns);
  const edits: Edits = new Map();
  for (const [i, group] of present.file.groups.entries()) {
    const ids = await present.rows(group, [entity.key]);
    if (!ids.some(([id]) => sought.has(String(id)))) continue;
    const news = new Map<number, LakeRow>();
    for (const [n, stored] of (await present.rows(group)).map(reshape).entries()) {
      const read = sought.get(String(stored[key]));
      if (!read) continue;
      sought.delete(String(stored[key]));
      if (isChanged(stored, read)) news.set(n, read);
    }
    if (news.size > 0) edits.set(i, (rows) => rows.map((row, n) => news.get(n) ?? row));
  }
  return edits;
}

/** Iceberg orders text by its bytes. */
const bytesOf = (value: Value | undefined): Buffer => Buffer.from(String(value));

/** The entities of a batch by id, as rows of the table. */
function readings({ table, entity, stream, source, rows, now }: EntityMerge): Map<string, LakeRow> {
  const newest = newestEntities(entity, stream, rows, UTF8_TEXT);
  const places = table.columns.map(({ name }) => stream.columns.findIndex((column) => column.name === name));
  const own = { _source: source, _observed_at: now } as Record<string, Value>;
  const found = new Map<string, LakeRow>();
  const key = table.columns.findIndex(({ name }) => name === entity.key);
  for (const values of createSanitizer(stream, UTF8_TEXT).all(newest)) {
    const row = places.map((at, i) => (at < 0 ? (own[table.columns[i]?.name ?? ''] ?? null) : (values[at] ?? null)));
    found.set(String(row[key]), row);
  }
  return found;
}

function createIsChanged({ columns }: Table, entity: Entity): (stored: LakeRow, read: LakeRow) => boolean {
  const knowledge = entity.knowledge.map((name) => columns.findIndex((column) => column.name === name));
  const knows = (row: LakeRow): boolean => knowledge.some((i) => !isNone(row[i] ?? null));
  const compared = columns.flatMap(({ name, kind }, i) => (name === '_observed_at' ? [] : [{ i, kind }]));
  const isSame = (kind: string, a: Value, b: Value): boolean =>
    a === b || (kind === 'timestamp' && a !== null && b !== null && micros(a) === micros(b));
  return (stored, read) =>
    (knows(read) || !knows(stored)) &&
    compared.some(({ i, kind }) => !isSame(kind, stored[i] ?? null, read[i] ?? null));
}

const micros = (instant: Value): number => Math.round(Number(instant) * 1000);
