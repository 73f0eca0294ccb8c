import type { Queryable } from '../../cursor/database/index.ts';
import type { RowChanges } from '../../cursor/holdings/window-rows.ts';
import type { Advance } from '../../cursor/ledger.ts';
import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import { DAY_MS, type Window } from '../../model/window.ts';
import { createSanitizer, UTF8_TEXT } from '../merge-rule.ts';
import { addKeys, databaseNow, dropKeys, findHomes, keyOf } from '../parquet/event-index.ts';
import { readyRows } from '../parquet/merge-batch.ts';
import { bookkeeping, createMergeRule, type MergeRule } from '../parquet/merge-row.ts';
import { columnsOf, createReshape, type LakeRow, unitedColumns } from '../parquet/partition-file.ts';
import { countIn } from '../parquet/read-lake.ts';
import { editsOf, extractMoved, type Findings, type Incoming, rowChanges, survey } from '../parquet/survey.ts';
import { type Receipt, ShapeChanged } from '../sink.ts';
import { editedPieces, openDataFile, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import { type DayRange, type Draft, filesOf, type Table, type TableFile, type Warehouse } from './warehouse.ts';

export interface MergeOptions {
  draft: Draft;
  table: Table;
  /** Of the index. */
  track: number;
  stream: Stream;
  /** In the order they were read. The same event may come twice. */
  rows: readonly Row[];
  advance: Advance;
  /** Called between files and groups: this may take longer than a lease lasts. */
  beat(): Promise<void>;
}

export interface Merged {
  receipt: Receipt;
  /** What it does to the number of rows by time. */
  changes: RowChanges;
  added: DataFile[];
  removed: TableFile[];
}

/**
 * Merges a batch into a table. Files that hold a changed event are rewritten, with untouched row groups copied
 * as they are; new events get a new file for each day. The table does not refer to these files yet.
 */
export async function mergeEvents(tx: Queryable, options: MergeOptions): Promise<Merged> {
  const { draft, table, track, stream, advance, beat } = options;
  const now = await databaseNow(tx);
  checkShape(stream, table);
  const sanitizer = createSanitizer(stream, UTF8_TEXT);
  const reshape = createReshape(columnsOf(stream), table.columns);
  const incoming = readyRows(sanitizer, advance.source, options.rows, bookkeeping(now, advance.runId)).map((one) => ({
    ...one,
    row: reshape(one.row),
  }));
  const rule = createMergeRule(stream, table.columns);
  const wholes = advance.spans.filter((span) => span.whole);
  const { works, stored } = await surveyTable(tx, draft.warehouse, table, {
    ...{ source: advance.source, track, incoming, wholes, rule, beat },
  });

  const [added, removed]: [DataFile[], TableFile[]] = [[], []];
  const news = incoming.filter(({ id }) => !stored.has(id));
  const newRows: LakeRow[] = news.map(({ row }) => row);
  let changed = 0;
  for (const { entry, findings } of works) {
    changed += countOf(findings.changed) + countOf(findings.moved);
    const present = await openDataFile(draft.warehouse, entry.file);
    try {
      newRows.push(...(await extractMoved(present, findings, rule, table.columns)));
      const pieces = editedPieces(present, table.columns, editsOf(findings, rule, table.columns, now));
      const file = await writeDataFile(draft, { table, source: advance.source, day: entry.file.day, beat }, pieces);
      removed.push(entry);
      if (file) added.push(file);
    } finally {
      await present.close();
    }
    const gone = [...findings.moved.values()].flatMap((rows) => [...rows.values()].map(({ key }) => key));
    if (gone.length > 0) await dropKeys(tx, track, partitionOf(entry.file.day ?? 0), gone);
  }
  for (const [day, rows] of byDay(table, newRows)) {
    const file = await writeDataFile(draft, { table, source: advance.source, day, beat }, [{ rows }]);
    if (file) added.push(file);
    const id = placeOf(table, 'event_id');
    await addKeys(
      tx,
      track,
      partitionOf(day),
      rows.map((row) => keyOf(String(row[id]))),
    );
  }
  const receipt = { new: news.length, changed, unchanged: stored.size - changed, sanitized: sanitizer.sanitized() };
  const changes = rowChanges(
    news,
    works.map(({ findings }) => findings),
  );
  return { receipt, changes, added, removed };
}

/** The index counts partitions in hours, as for the lake. */
const partitionOf = (day: number): number => day * 24;
const dayOf = (partition: number): number => Math.floor(partition / 24);

const placeOf = ({ columns }: Table, wanted: string): number => columns.findIndex(({ name }) => name === wanted);

/** Rebuilds the index from the table, for a sink that was renamed or whose state was lost: which day each event is in. */
export async function indexTable(
  tx: Queryable,
  warehouse: Warehouse,
  table: Table,
  track: number,
  source: string,
): Promise<void> {
  for (const { file } of await filesOf(warehouse, table, { source })) {
    const present = await openDataFile(warehouse, file);
    try {
      for (const group of present.file.groups) {
        const keys = (await present.rows(group, ['event_id'])).map(([id]) => keyOf(String(id)));
        await addKeys(tx, track, partitionOf(file.day ?? 0), keys);
      }
    } finally {
      await present.close();
    }
  }
}

/** Throws if the table and the stream have different columns: the stream must be evolved or the table altered first. */
function checkShape(stream: Stream, { columns, design }: Table): void {
  unitedColumns(stream, columns);
  const there = new Set(columns.map(({ name }) => name));
  if (stream.columns.some(({ name }) => !there.has(name))) throw new ShapeChanged(design.name, {});
}

/** The rows of each day, in order of time. */
function byDay(table: Table, rows: readonly LakeRow[]): Map<number, LakeRow[]> {
  const time = placeOf(table, 'timestamp');
  const days = new Map<number, LakeRow[]>();
  for (const row of [...rows].sort((a, b) => Number(a[time]) - Number(b[time]))) {
    const day = Math.floor(Number(row[time]) / DAY_MS);
    const known = days.get(day);
    if (known) known.push(row);
    else days.set(day, [row]);
  }
  return days;
}

export interface Survey {
  source: string;
  track: number;
  incoming: readonly Incoming[];
  wholes: readonly Window[];
  rule: MergeRule;
  beat(): Promise<void>;
}

export interface Surveyed {
  /** Files with a row to change. */
  works: Array<{ entry: TableFile; findings: Findings }>;
  /** Ids of events that are in the table. */
  stored: Set<string>;
}

/** Compares a batch with the rows of the files: known events, and rows missing from windows that were read whole. Changes nothing. */
export async function surveyTable(
  tx: Queryable,
  warehouse: Warehouse,
  table: Table,
  { source, track, incoming, wholes, rule, beat }: Survey,
): Promise<Surveyed> {
  const partitions = await findHomes(
    tx,
    track,
    incoming.map(({ key }) => key),
  );
  const expected = new Map<number, Map<string, Incoming>>();
  for (const one of incoming) {
    for (const partition of partitions.get(one.key) ?? []) {
      const day = dayOf(partition);
      const known = expected.get(day) ?? new Map<string, Incoming>();
      expected.set(day, known.set(one.id, one));
    }
  }
  const days: DayRange[] = [...[...expected.keys()].map((day) => ({ first: day, last: day })), ...wholes.map(daysOf)];
  const found: Surveyed = { works: [], stored: new Set() };
  if (days.length === 0) return found;
  const shown = new Set(incoming.map(({ id }) => id));
  const time = timeIn(table);
  const files = (await filesOf(warehouse, table, { source, days })).map((entry) => {
    const { oldest, newest } = timesOf(entry, time);
    const candidates = [...(expected.get(entry.file.day ?? 0)?.values() ?? [])];
    return { entry, oldest, newest, hits: candidates.filter(({ at }) => at >= oldest && at <= newest).length };
  });
  // Most events come again with an unchanged time: the files that hold those times are read first, and usually suffice.
  for (const { entry, oldest, newest } of files.sort((a, b) => b.hits - a.hits)) {
    await beat();
    const open = wholes.filter(({ start, end }) => start <= newest && end > oldest);
    const here = expected.get(entry.file.day ?? 0) ?? new Map<string, Incoming>();
    if (here.size === 0 && open.length === 0) continue;
    const present = await openDataFile(warehouse, entry.file);
    try {
      const findings = await survey(present, { rule, candidates: [...here.values()], wholes: open, shown });
      for (const id of findings.found) {
        found.stored.add(id);
        here.delete(id);
      }
      if (findings.changed.size + findings.moved.size + findings.missing.size > 0)
        found.works.push({ entry, findings });
    } finally {
      await present.close();
    }
  }
  return found;
}

/** The number of rows in each of these windows, with the files that a commit is about to add and to remove. */
export async function countTable(
  warehouse: Warehouse,
  table: Table,
  {
    source,
    windows,
    added,
    removed,
  }: { source: string; windows: readonly Window[] } & Pick<Merged, 'added' | 'removed'>,
): Promise<number[]> {
  const days = windows.map(daysOf);
  const gone = new Set(removed.map(({ file }) => file.path));
  const listed = (await filesOf(warehouse, table, { source, days })).filter(({ file }) => !gone.has(file.path));
  const counts = windows.map(() => 0);
  for (const { file } of [...listed, ...added.map((made) => ({ file: made }))]) {
    const { oldest, newest } = timesOf({ file }, timeIn(table));
    const touched = windows.flatMap(({ start, end }, i) =>
      start <= newest && end > oldest ? [{ start, end, i }] : [],
    );
    const isWhole = touched.every(({ start, end }) => start <= oldest && end > newest);
    const open = isWhole ? undefined : await openDataFile(warehouse, file);
    try {
      for (const { i, ...window } of touched)
        counts[i] = (counts[i] ?? 0) + (open ? await countIn(open, window) : file.rows);
    } finally {
      await open?.close();
    }
  }
  return counts;
}

const daysOf = ({ start, end }: Window): DayRange => ({
  first: Math.floor(start / DAY_MS),
  last: Math.floor((end - 1) / DAY_MS),
});

const timeIn = (table: Table): number => table.columns[placeOf(table, 'timestamp')]?.fieldIds?.[0] ?? 0;

/** The times of a file's first and last event. */
export function timesOf({ file }: Pick<TableFile, 'file'>, time: number): { oldest: Instant; newest: Instant } {
  const { lower, upper } = file.columns.get(time) ?? {};
  const instant = (bytes: Buffer | undefined, none: number): Instant =>
    bytes ? Number(bytes.readBigInt64LE()) / 1000 : none;
  return { oldest: instant(lower, Number.NEGATIVE_INFINITY), newest: instant(upper, Number.POSITIVE_INFINITY) };
}

const countOf = (notes: Findings['changed']): number => [...notes.values()].reduce((sum, rows) => sum + rows.size, 0);
