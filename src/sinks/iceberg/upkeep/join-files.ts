import type { Value } from '../../../model/columns.ts';
import { DAY_MS } from '../../../model/window.ts';
import { groupBy } from '../../files/group-by.ts';
import { GROUP_ROWS } from '../../files/layout.ts';
import { createReshape, type LakeRow, type PartitionFile } from '../../files/partition-file.ts';
import type { Piece } from '../../files/write-file.ts';
import { fitsSchema } from '../../parquet/format/index.ts';
import type { Design } from '../../table-columns.ts';
import { compareValues, orderOf, writeDataFile } from '../data-file.ts';
import { openPart, ownFile } from '../table-files.ts';
import { changeIfThere, type TableWriter } from '../table-writer.ts';
import { filesOf, loadTable, type Table, type TableFile, type Warehouse } from '../warehouse.ts';

/** Every poll adds a small file; the small files of one day and source are joined. A file with this many rows is not small. */
const FULL_ROWS = 100_000;

/** Joins one group of files after the other, taking the lock for each, so that a commit waits for one join, not for all. */
export async function joinGroups(
  warehouse: Warehouse,
  design: Design,
  /** How many small files may stay on the current day; undefined: all are joined. */
  most: number | undefined,
  signal: AbortSignal | undefined,
): Promise<{ joined: number; files: number }> {
  const find = most === undefined ? smallGroups : dueGroups(most);
  let joined = 0;
  for (;;) {
    const table = await loadTable(warehouse, design);
    const files = table ? await filesOf(table, {}) : [];
    if (find(files).length === 0 || signal?.aborted) return { joined, files: files.length };
    const now = await changeIfThere(warehouse, design, async (writer) => {
      const [group = []] = find(await filesOf(writer.table, {}));
      if (group.length > 0) await joinFiles(writer, group);
      return group.length;
    });
    joined += now ?? 0;
  }
}

type FindGroups = (files: readonly TableFile[]) => TableFile[][];

/** Small files by day and source, where there are several. */
const smallGroups: FindGroups = (files) => {
  const small = files.filter(({ source, file }) => source !== undefined && file.rows < FULL_ROWS);
  const groups = groupBy(small, ({ source, file }) => `${file.day} ${source}`);
  return [...groups.values()].filter((group) => group.length > 1);
};

/** Small files of similar size: `most` of them may stay on the current day, one on earlier days. */
const dueGroups =
  (most: number): FindGroups =>
  (files) => {
    const today = Math.floor(Date.now() / DAY_MS);
    const isOver = ([first]: readonly TableFile[]): boolean => (first?.file.day ?? today) < today;
    return smallGroups(files)
      .map(likeSized)
      .filter((group) => group.length > (isOver(group) ? 1 : most));
  };

/** The smallest files, up to one that is more than twice as large as all smaller ones together: rewriting it would gain too little. */
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

/** Joins files of one day and source. The table's rows and older snapshots do not change. */
async function joinFiles(writer: TableWriter, files: readonly TableFile[]): Promise<void> {
  const { draft, table, added, removed, publish } = writer;
  const [first] = files;
  const source = first?.source;
  if (source === undefined) throw new Error('the files to join have no source');
  const open: PartitionFile[] = [];
  try {
    for (const entry of files) open.push(await openPart(ownFile(table, entry, source)));
    const target = { table, source, day: first?.file.day };
    removed.push(...files);
    added.push(...(await writeDataFile(draft, target, joinedPieces(table, open))));
    const rows = files.reduce((sum, { file }) => sum + file.rows, 0);
    const joined = added[0]?.file.rows;
    if (joined !== rows) throw new Error(`${rows} rows were to be joined, and ${joined} were`);
    await publish({ operation: 'replace', sources: [] });
  } finally {
    for (const file of open) await file.close();
  }
}

/** Merges files in order, with only overlapping row groups in memory: a row waits until no later row group can hold a smaller one. */
async function* joinedPieces(table: Table, files: readonly PartitionFile[]): AsyncGenerator<Piece> {
  const { design, columns } = table;
  const index = columns.findIndex(({ name }) => name === design.sortedBy);
  const key = (row: LakeRow): Value => row[index] ?? null;
  const groups = files
    .flatMap((from) =>
      from.file.groups.map((group) => {
        const { min = null, max = null } = group.ranges.get(design.sortedBy) ?? {};
        return { from, group, min, max };
      }),
    )
    .sort((a, b) => compareValues(a.min, b.min));
  let waiting: LakeRow[] = [];
  for (const [i, { from, group, min, max }] of groups.entries()) {
    const next = groups[i + 1];
    const later = waiting.findIndex((row) => !(compareValues(key(row), min) < 0));
    const complete = later < 0 ? waiting.length : later;
    const isAlone = complete === waiting.length && (!next || compareValues(max, next.min) < 0);
    const isCopied = isAlone && group.rows >= GROUP_ROWS / 2 && fitsSchema(from.file, columns);
    if (complete > 0 && (isCopied || complete >= GROUP_ROWS)) {
      yield { rows: waiting.slice(0, complete) };
      waiting = waiting.slice(complete);
    }
    if (isCopied) {
      yield { copy: group, from };
      continue;
    }
    const rows = (await from.rows(group)).map(createReshape(from.file.columns, columns));
    waiting = [...waiting, ...rows].sort(orderOf(table));
  }
  if (waiting.length > 0) yield { rows: waiting };
}
