import type { Queryable } from '../../../cursor/database/index.ts';
import type { Value } from '../../../model/columns.ts';
import { DAY_MS } from '../../../model/window.ts';
import { GROUP_ROWS } from '../../files/layout.ts';
import { createReshape, type LakeRow, type PartitionFile } from '../../files/partition-file.ts';
import type { Piece } from '../../files/write-file.ts';
import { compareText, fitsSchema, type StoredGroup } from '../../parquet/format/index.ts';
import { changeTable } from '../change-table.ts';
import { openDataFile, writeDataFile } from '../data-file.ts';
import type { Design } from '../format/schema.ts';
import {
  type Draft,
  filesOf,
  inDraft,
  loadTable,
  lockTable,
  type Table,
  type TableFile,
  type Warehouse,
} from '../warehouse.ts';

/** Every poll leaves a small file; those of one day and source are joined. A file with this many rows is left alone. */
const FULL_ROWS = 100_000;

/** Joins one group of files after the other, each in its own transaction: a commit waits for one join, not for all. */
export async function joinGroups(
  warehouse: Warehouse,
  design: Design,
  /** So many small files may stay on the present day; without it, all are joined. */
  most: number | undefined,
  signal: AbortSignal | undefined,
): Promise<{ joined: number; files: number }> {
  const find = most === undefined ? smallGroups : dueGroups(most);
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
      await joinFiles(tx, draft, now, group);
      return group.length;
    });
  }
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
async function joinFiles(tx: Queryable, draft: Draft, table: Table, files: readonly TableFile[]): Promise<Table> {
  const [first] = files;
  const source = first?.source;
  if (source === undefined) throw new Error('files of one source');
  const open: PartitionFile[] = [];
  try {
    for (const { file } of files) open.push(await openDataFile(draft.warehouse, file));
    const target = { table, source, day: first?.file.day };
    const added = await writeDataFile(draft, target, joinedPieces(table, open));
    const rows = files.reduce((sum, { file }) => sum + file.rows, 0);
    if (added[0]?.rows !== rows) throw new Error(`${rows} rows were to be joined, and ${added[0]?.rows} were`);
    return await changeTable(tx, draft, table, { operation: 'replace', added, removed: files });
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
