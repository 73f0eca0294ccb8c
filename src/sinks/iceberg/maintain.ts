import type { Queryable } from '../../cursor/database/index.ts';
import type { Value } from '../../model/columns.ts';
import { ENTITIES, STREAM_NAMES, STREAMS, type StreamName } from '../../model/streams.ts';
import { DAY_MS } from '../../model/window.ts';
import { compareText, fitsSchema, type StoredGroup } from '../parquet/format/index.ts';
import { GROUP_ROWS } from '../parquet/layout.ts';
import { createReshape, type LakeRow, type PartitionFile } from '../parquet/partition-file.ts';
import type { Maintained, MaintainOptions } from '../sink.ts';
import { lockTable } from './catalog.ts';
import { changeTable, provenSummary } from './change-table.ts';
import { openDataFile, type Piece, writeDataFile } from './data-file.ts';
import { decodeManifestList } from './format/manifest-list.ts';
import { type Metadata, type Snapshot, withoutSnapshots } from './format/metadata.ts';
import { type Design, entityDesign, streamDesign } from './format/schema.ts';
import {
  type Draft,
  filesOf,
  inDraft,
  isBelow,
  type Listed,
  loadTable,
  manifestFiles,
  pathOf,
  readBytes,
  type Table,
  type TableFile,
  tableFolder,
  type Warehouse,
} from './warehouse.ts';

const HOUR_MS = 3_600_000;

export interface Maintenance {
  /** How long a snapshot is kept after it was replaced: how far back readers can travel, and how long a query may take. */
  keepMs: number;
  /** Files that no snapshot lists are kept this long: a writer may be about to commit them. */
  orphanMs: number;
  /** More small files than this of one source and the present day are joined. */
  mostSmall: number;
}

/** Every poll leaves a small file. More than this many are joined; a file with this many rows is left alone. */
const MOST_SMALL_FILES = 8;
const FULL_ROWS = 100_000;

export const MAINTENANCE: Maintenance = { keepMs: 24 * HOUR_MS, orphanMs: 24 * HOUR_MS, mostSmall: MOST_SMALL_FILES };

/** Every existing table that Tributary writes. */
export const designs = (): Design[] => [
  ...STREAM_NAMES.map((name) => streamDesign(STREAMS[name])),
  ...ENTITIES.map(entityDesign),
];

/**
 * Joins small files, expires snapshots and removes unreferenced files, a table at a time; or only what is due. It ends early
 * between two steps when it is asked to: each is complete in itself.
 */
export async function maintain(
  warehouse: Warehouse,
  maintenance: Maintenance,
  { isDueOnly = false, signal }: MaintainOptions,
): Promise<Maintained> {
  const { keepMs, orphanMs } = maintenance;
  const done: Maintained = {};
  for (const design of designs()) {
    const table = await loadTable(warehouse.state, warehouse, design);
    if (!table) continue;
    const find = isDueOnly ? dueGroups(maintenance.mostSmall) : smallGroups;
    const { joined, files } = await joinGroups(warehouse, design, find, signal);
    if (signal?.aborted) break;
    // At most once an hour: finding unreferenced files means reading every manifest.
    const isExpiryDue = !isDueOnly || expirable(table.metadata, keepMs + HOUR_MS).length > 0;
    const expired = isExpiryDue ? await expire(warehouse, design, keepMs) : 0;
    const removed = isExpiryDue ? await removeOrphans(warehouse, design, orphanMs) : 0;
    done[`${warehouse.namespace}.${design.name}`] = { joined, expired, removed, files };
  }
  return done;
}

/** Joins one group of files after the other, each in its own transaction: a commit waits for one join, not for all. */
async function joinGroups(
  warehouse: Warehouse,
  design: Design,
  find: FindGroups,
  signal: AbortSignal | undefined,
): Promise<{ joined: number; files: number }> {
  let joined = 0;
  for (;;) {
    const table = await loadTable(warehouse.state, warehouse, design);
    const files = table ? await filesOf(warehouse, table, {}) : [];
    if (find(files).length === 0 || signal?.aborted) return { joined, files: files.length };
    joined += await inDraft(warehouse, async (tx, draft) => {
      await lockTable(tx, warehouse, design.name);
      const now = await loadTable(tx, warehouse, design);
      const [group] = now ? find(await filesOf(warehouse, now, {})) : [];
      if (!now || !group) return 0;
      await joinFiles(tx, draft, now, group, await summaryOf(tx, warehouse, design));
      return group.length;
    });
  }
}

/** Links and customers are as last seen, so no completeness is stated for them. */
export const summaryOf = async (tx: Queryable, { name }: Warehouse, design: Design): Promise<Record<string, string>> =>
  design.isByDay ? provenSummary(tx, { sink: name, stream: design.name as StreamName }) : {};

/**
 * Snapshots that were replaced longer ago than this. Their own age does not count: of a table that rarely changes, somebody may
 * have begun to read an old snapshot in the moment before it was replaced.
 */
function expirable(metadata: Metadata, keepMs: number): Snapshot[] {
  const inOrder = [...metadata.snapshots].sort((a, b) => a['sequence-number'] - b['sequence-number']);
  const replacedAt = new Map(
    inOrder.map((snapshot, i) => [snapshot, inOrder[i + 1]?.['timestamp-ms'] ?? Number.POSITIVE_INFINITY]),
  );
  const isOld = (snapshot: Snapshot): boolean => (replacedAt.get(snapshot) ?? 0) < Date.now() - keepMs;
  const left = new Set(withoutSnapshots(metadata, isOld).snapshots);
  return metadata.snapshots.filter((snapshot) => !left.has(snapshot));
}

async function expire(warehouse: Warehouse, design: Design, keepMs: number): Promise<number> {
  return inDraft(warehouse, async (tx, draft) => {
    await lockTable(tx, warehouse, design.name);
    const table = await loadTable(tx, warehouse, design);
    const gone = table ? expirable(table.metadata, keepMs) : [];
    if (!table || gone.length === 0) return 0;
    const next = withoutSnapshots(table.metadata, (snapshot) => gone.includes(snapshot));
    await warehouse.catalog.replace(tx, draft, design.name, table, next);
    return gone.length;
  });
}

/** Removes a table's unreferenced files once they are old enough. */
async function removeOrphans(warehouse: Warehouse, design: Design, orphanMs: number): Promise<number> {
  const { store } = warehouse;
  const folder = tableFolder(warehouse, design.name);
  await store.removeLeftovers(folder);
  const old: string[] = [];
  for await (const { path, modifiedAt } of store.list(folder)) if (modifiedAt < Date.now() - orphanMs) old.push(path);
  // References are read after the listing, so that a file committed meanwhile is not taken for an orphan.
  const table = await loadTable(warehouse.state, warehouse, design);
  if (!table) return 0;
  const named = await referencedFiles(warehouse, table);
  const orphans = old.filter((path) => !named.has(path));
  for (const path of orphans) await store.delete(path);
  return orphans.length;
}

/** Every file that the metadata refers to. */
export async function referencedFiles(warehouse: Warehouse, { location, metadata }: Listed): Promise<Set<string>> {
  const named = new Set([location, ...metadata['metadata-log'].map((entry) => entry['metadata-file'])]);
  for (const snapshot of metadata.snapshots) {
    const list = snapshot['manifest-list'];
    named.add(list);
    for (const manifest of decodeManifestList(await readBytes(warehouse, list))) {
      if (named.has(manifest.path)) continue;
      named.add(manifest.path);
      for (const { file } of await manifestFiles(warehouse, metadata, manifest)) named.add(file.path);
    }
  }
  return new Set([...named].filter((one) => isBelow(warehouse, one)).map((one) => pathOf(warehouse, one)));
}

/** Groups of files to be joined. */
type FindGroups = (files: readonly TableFile[]) => TableFile[][];

/** Small files by day and source, wherever there are several. */
const smallGroups: FindGroups = (files) => {
  const groups = new Map<string, TableFile[]>();
  for (const entry of files) {
    const { source } = entry;
    if (source === undefined || entry.file.rows >= FULL_ROWS) continue;
    const key = `${entry.file.day} ${source}`;
    groups.set(key, [...(groups.get(key) ?? []), entry]);
  }
  return [...groups.values()].filter((group) => group.length > 1);
};

/** Small files of like size: `most` of them may stay while a day is still written to, one when it is over. */
const dueGroups =
  (most: number): FindGroups =>
  (files) => {
    const today = Math.floor(Date.now() / DAY_MS);
    const isOver = ([first]: readonly TableFile[]): boolean => (first?.file.day ?? today) < today;
    return smallGroups(files)
      .map(likeSized)
      .filter((group) => group.length > (isOver(group) ? 1 : most));
  };

/** The smallest files, up to one that is twice as large as all smaller ones together: rewriting it would gain too little. */
function likeSized(files: readonly TableFile[]): TableFile[] {
  const taken: TableFile[] = [];
  let sum = 0;
  for (const entry of [...files].sort((a, b) => a.file.rows - b.file.rows)) {
    if (taken.length > 0 && entry.file.rows > 2 * sum) break;
    taken.push(entry);
    sum += entry.file.rows;
  }
  return taken;
}

/** Joins files of one day and source. The table's rows and older snapshots stay the same. */
async function joinFiles(
  tx: Queryable,
  draft: Draft,
  table: Table,
  files: readonly TableFile[],
  summary: Readonly<Record<string, string>>,
): Promise<Table> {
  const [first] = files;
  const source = first?.source;
  if (source === undefined) throw new Error('files of one source');
  const open: PartitionFile[] = [];
  try {
    for (const { file } of files) open.push(await openDataFile(draft.warehouse, file));
    const target = { table, source, day: first?.file.day, beat: async () => {} };
    const joined = await writeDataFile(draft, target, joinedPieces(table, open));
    const added = joined ? [joined] : [];
    const rows = files.reduce((sum, { file }) => sum + file.rows, 0);
    if (joined?.rows !== rows) throw new Error(`${rows} rows were to be joined, and ${joined?.rows} were`);
    return await changeTable(tx, draft, table, { operation: 'replace', added, removed: files, summary });
  } finally {
    for (const file of open) await file.close();
  }
}

interface Range {
  from: PartitionFile;
  group: StoredGroup;
  min: Value;
  max: Value;
}

/**
 * The rows of several files in order, with no more than a few row groups in memory. Groups that overlap no other are
 * copied as they are; the others are merged, a slice at a time.
 */
async function* joinedPieces(table: Table, files: readonly PartitionFile[]): AsyncGenerator<Piece> {
  const { sortedBy } = table.design;
  const ranges = files
    .flatMap((from) =>
      from.file.groups.map((group): Range => {
        const { min = null, max = null } = group.ranges.get(sortedBy) ?? {};
        return { from, group, min, max };
      }),
    )
    .sort((a, b) => compare(a.min, b.min));
  let waiting: Range[] = [];
  for (const [i, range] of ranges.entries()) {
    const isAlone =
      waiting.every(({ max }) => compare(max, range.min) < 0) &&
      (i + 1 === ranges.length || compare(range.max, (ranges[i + 1] as Range).min) < 0);
    const isCopied = isAlone && range.group.rows >= GROUP_ROWS / 2 && fitsSchema(range.from.file, table.columns);
    if (!isCopied) {
      waiting.push(range);
      continue;
    }
    yield* mergedPieces(table, waiting);
    waiting = [];
    yield { copy: range.group, from: range.from };
  }
  yield* mergedPieces(table, waiting);
}

async function* mergedPieces(table: Table, ranges: readonly Range[]): AsyncGenerator<Piece> {
  const { sortedBy } = table.design;
  const place = table.columns.findIndex(({ name }) => name === sortedBy);
  const values: Value[] = [];
  for (const { from, group } of ranges) {
    for (const [value] of await from.rows(group, [sortedBy])) values.push(value ?? null);
  }
  values.sort(compare);
  const cuts = values.filter((_, i) => i > 0 && i % GROUP_ROWS === 0);
  const decoded = new Map<Range, LakeRow[]>();
  let begin: Value | undefined;
  for (const end of [...cuts, undefined]) {
    const isIn = (value: Value): boolean =>
      (begin === undefined || compare(value, begin) >= 0) && (end === undefined || compare(value, end) < 0);
    const rows: LakeRow[] = [];
    for (const range of ranges) {
      if (end !== undefined && compare(range.min, end) >= 0) continue;
      if (begin !== undefined && compare(range.max, begin) < 0) {
        decoded.delete(range);
        continue;
      }
      const reshape = createReshape(range.from.file.columns, table.columns);
      const all = decoded.get(range) ?? (await range.from.rows(range.group)).map(reshape);
      decoded.set(range, all);
      for (const row of all) if (isIn(row[place] ?? null)) rows.push(row);
    }
    if (rows.length > 0) yield { rows: rows.sort((a, b) => compare(a[place] ?? null, b[place] ?? null)) };
    begin = end;
  }
}

/** Times as numbers, text by its bytes: as Iceberg orders them. */
const compare = (a: Value, b: Value): number =>
  typeof a === 'string' && typeof b === 'string' ? compareText(a, b) : Number(a) - Number(b);
