import type { Queryable } from '../../cursor/database/index.ts';
import type { RowChanges } from '../../cursor/holdings/window-rows.ts';
import type { Advance } from '../../cursor/ledger.ts';
import type { Row } from '../../model/flatten.ts';
import type { Stream } from '../../model/streams.ts';
import { DAY_MS, type Window } from '../../model/window.ts';
import { createSanitizer, UTF8_TEXT } from '../merge-rule.ts';
import { addKeys, databaseNow, dropKeys, findHomes, keyOf } from '../parquet/event-index.ts';
import { readyRows } from '../parquet/merge-batch.ts';
import { bookkeeping, createMergeRule, type MergeRule } from '../parquet/merge-row.ts';
import {
  columnsOf,
  createReshape,
  type LakeRow,
  type PartitionFile,
  unitedColumns,
} from '../parquet/partition-file.ts';
import { editsOf, extractMoved, type Findings, type Incoming, rowChanges, survey } from '../parquet/survey.ts';
import { type Receipt, ShapeChanged } from '../sink.ts';
import { editedPieces, openDataFile, openIfThere, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import { openStrangers, replaceStranger, type Stranger } from './strangers.ts';
import {
  type DayRange,
  type Draft,
  daysOf,
  filesOf,
  type Table,
  type TableFile,
  timeIn,
  timesOf,
  type Warehouse,
} from './warehouse.ts';

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
  const { works, stored, gone } = await surveyTable(tx, draft.warehouse, table, {
    ...{ source: advance.source, track, incoming, wholes, rule, beat },
  });

  const [added, removed]: [DataFile[], TableFile[]] = [[], [...gone]];
  const news = incoming.filter(({ id }) => !stored.has(id));
  const newRows: LakeRow[] = news.map(({ row }) => row);
  let changed = 0;
  for (const { entry, findings, open, stranger } of works) {
    changed += countOf(findings.changed) + countOf(findings.moved);
    const present = await open();
    try {
      newRows.push(...(await extractMoved(present, findings, rule, table.columns)));
      const edits = editsOf(findings, rule, table.columns, now);
      removed.push(entry);
      const target = { table, source: advance.source, day: entry.file.day, beat };
      const made = stranger
        ? await replaceStranger(draft, table, stranger, { source: advance.source, edits })
        : [await writeDataFile(draft, target, editedPieces(present, table.columns, edits))];
      added.push(...made.filter((file) => file !== undefined));
    } finally {
      await present.close();
    }
    await dropMoved(tx, track, entry, findings);
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

async function dropMoved(tx: Queryable, track: number, { file }: TableFile, { moved }: Findings): Promise<void> {
  const gone = [...moved.values()].flatMap((rows) => [...rows.values()].map(({ key }) => key));
  if (gone.length > 0) await dropKeys(tx, track, partitionOf(file.day ?? 0), gone);
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
  const files = await filesOf(warehouse, table, { source });
  for (const { file } of files.filter((entry) => entry.source === source)) {
    const present = await openIfThere(warehouse, file);
    if (!present) continue;
    try {
      await indexFile(tx, track, present, file.day);
    } finally {
      await present.close();
    }
  }
  for (const stranger of await openStrangers(warehouse, table, files)) {
    const { day } = stranger.entry.file;
    await indexFile(tx, track, stranger.of(source), day ?? dayAt(stranger.times(source)[0] ?? 0));
  }
}

async function indexFile(tx: Queryable, track: number, present: PartitionFile, day: number | undefined): Promise<void> {
  for (const group of present.file.groups) {
    const keys = (await present.rows(group, ['event_id'])).map(([id]) => keyOf(String(id)));
    await addKeys(tx, track, partitionOf(day ?? 0), keys);
  }
}

const dayAt = (at: number): number => Math.floor(at / DAY_MS);

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
  works: Work[];
  /** Ids of events that are in the table. */
  stored: Set<string>;
  /** Files that the table names and that somebody deleted. */
  gone: TableFile[];
}

interface Work {
  entry: TableFile;
  findings: Findings;
  open(): Promise<PartitionFile>;
  /** Where another program joined files. */
  stranger: Stranger | undefined;
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
  const found: Surveyed = { works: [], stored: new Set(), gone: [] };
  if (days.length === 0) return found;
  const shown = new Set(incoming.map(({ id }) => id));
  const listed = await filesOf(warehouse, table, { source, days });
  const time = timeIn(table);

  const soughtIn = ({ file: { day } }: TableFile): Map<string, Incoming> =>
    day === undefined ? new Map(incoming.map((one) => [one.id, one])) : (expected.get(day) ?? new Map());
  const look = async (entry: TableFile, present: PartitionFile, open: Window[]): Promise<Findings | undefined> => {
    const here = soughtIn(entry);
    const findings = await survey(present, { rule, candidates: [...here.values()], wholes: open, shown });
    for (const id of findings.found) {
      found.stored.add(id);
      here.delete(id);
    }
    return findings.changed.size + findings.moved.size + findings.missing.size > 0 ? findings : undefined;
  };

  const files = listed
    .filter((entry) => entry.source === source)
    .map((entry) => {
      const times = timesOf(entry, time);
      const candidates = [...(expected.get(entry.file.day ?? 0)?.values() ?? [])];
      const isWithin = ({ at }: Incoming): boolean => at >= times.oldest && at <= times.newest;
      return { entry, times, hits: candidates.filter(isWithin).length };
    });
  // Most events come again with an unchanged time: the files that hold those times are read first, and usually suffice.
  for (const { entry, times } of files.sort((a, b) => b.hits - a.hits)) {
    await beat();
    const wanted = wholes.filter(({ start, end }) => start <= times.newest && end > times.oldest);
    if (soughtIn(entry).size === 0 && wanted.length === 0) continue;
    const present = await openIfThere(warehouse, entry.file);
    if (!present) {
      found.gone.push(entry);
      continue;
    }
    try {
      const findings = await look(entry, present, wanted);
      const open = (): Promise<PartitionFile> => openDataFile(warehouse, entry.file);
      if (findings) found.works.push({ entry, findings, open, stranger: undefined });
    } finally {
      await present.close();
    }
  }
  for (const stranger of await openStrangers(warehouse, table, listed)) {
    await beat();
    const { entry, isCompaction } = stranger;
    const present = stranger.of(source);
    const findings = await look(entry, present, [...wholes]);
    // A file with rows that are not ours stays as it is until it is repaired.
    if (findings && isCompaction) found.works.push({ entry, findings, open: async () => present, stranger });
  }
  return found;
}

const countOf = (notes: Findings['changed']): number => [...notes.values()].reduce((sum, rows) => sum + rows.size, 0);
