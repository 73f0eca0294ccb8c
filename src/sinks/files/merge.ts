import type { Queryable } from '../../cursor/database/index.ts';
import type { Value } from '../../model/columns.ts';
import type { Instant } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import { createSanitizer, newestById, UTF8_TEXT } from '../merge-rule.ts';
import type { FileColumn } from '../parquet/format/index.ts';
import type { Comparison, Difference, Stored } from '../sink.ts';
import type { Load } from './commit.ts';
import { compareRows, type Findings, type Incoming, movedIn } from './compare-rows.ts';
import { findPartitions, indexedFrom, keyOf, type Partition } from './event-index.ts';
import { bookkeeping, createMergeRule, type MergeRule } from './merge-row.ts';
import { columnsOf, createReshape, type PartitionFile } from './partition-file.ts';
import { whileOpen } from './store/store.ts';

/** How a sink finds and publishes files: by name, or by a commit to a catalog. */
export interface Files<F> {
  readonly columns: readonly FileColumn[];
  /** The files that may hold these events, or rows of these completely read windows; the most likely ones first. */
  find(incoming: readonly Incoming[], fullWindows: readonly Window[]): Promise<SearchTarget<F>[]>;
}

export interface WritableFiles<F> extends Files<F> {
  /** Rewrites the files in which rows differ, and writes new events. */
  write(changes: Changes<F>): Promise<void>;
}

export interface SearchTarget<F> {
  file: F;
  /** By id. Files may share this map: an event that is found in one is not searched for in the next. */
  sought: Map<string, Incoming>;
  fullWindows: readonly Window[];
  /** Undefined if the file is gone. */
  open(): Promise<PartitionFile | undefined>;
  /** The file is searched but not rewritten. */
  isFixed?: boolean;
}

export interface Work<F> {
  target: SearchTarget<F>;
  findings: Findings;
}

export interface Changes<F> {
  works: readonly Work<F>[];
  newEvents: readonly Incoming[];
  gone: readonly F[];
  rule: MergeRule;
  now: Instant;
}

/** The rows are in the order they were read. The same event may come twice. */
type Batch = Pick<Load, 'stream' | 'rows' | 'advance'> & { now: Instant };

export interface Located {
  /** By the partition that the index names: an event that comes again may have a time in another partition. */
  sought: Map<Partition, Map<string, Incoming>>;
  /** Events that are not in the index: new ones, or in a file before `from`, where the index starts. */
  others: Incoming[];
  from: Partition;
}

export async function locateEvents(db: Queryable, feedId: number, incoming: readonly Incoming[]): Promise<Located> {
  const keys = incoming.map(({ key }) => key);
  const from = await indexedFrom(db, feedId);
  const located = await findPartitions(db, feedId, from, keys);
  const sought: Located['sought'] = new Map();
  for (const one of incoming)
    for (const { partition } of located.get(one.key) ?? []) addSought(sought, partition, [one]);
  return { sought, others: incoming.filter(({ key }) => !located.has(key)), from };
}

export function addSought(sought: Located['sought'], partition: Partition, events: readonly Incoming[]): void {
  const there = sought.get(partition) ?? new Map<string, Incoming>();
  for (const one of events) there.set(one.id, one);
  sought.set(partition, there);
}

export async function mergeEvents<F>({ stream, rows, advance, now }: Batch, files: WritableFiles<F>): Promise<Stored> {
  const { source, runId, spans } = advance;
  const fullWindows = spans.filter((span) => span.whole);
  const { search, sanitized } = searchOf(files, { stream, source, rows, fullWindows }, bookkeeping(now, runId));
  const { works, stored, newEvents } = await mergeRows(files, search, now);
  const moved = works.flatMap(({ findings }) => movedIn(findings));
  const notes = works.flatMap(({ findings }) => findings.notes);
  const changed = notes.filter(({ kind }) => kind === 'changed' || kind === 'moved').length;
  return {
    receipt: { new: newEvents.length, changed, unchanged: stored.size - changed, sanitized },
    added: [...newEvents, ...moved].map(({ at }) => at),
    removed: [...moved.map(({ was }) => was), ...notes.filter(({ kind }) => kind === 'doubled').map(({ at }) => at)],
  };
}

/** Merges events, links or customers: updates stored rows that differ and adds the others. */
export async function mergeRows<F>(files: WritableFiles<F>, search: Search, now: Instant) {
  const { works, stored, gone } = await searchFiles(files, search);
  const newEvents = search.incoming.filter(({ id }) => !stored.has(id));
  await files.write({ works, newEvents, gone, rule: search.rule, now });
  return { works, stored, newEvents };
}

/** Compares rows with the files by the merge rule, without changing anything. */
export async function compareFiles<F>(comparison: Comparison, present?: Files<F>): Promise<Difference[]> {
  const { stream, window, isWhole } = comparison;
  const files = present ?? { columns: columnsOf(stream), find: async () => [] };
  // The sink's own columns do not take part in the comparison.
  const { search } = searchOf(files, { ...comparison, fullWindows: isWhole ? [window] : [] }, bookkeeping(0, ''));
  const { works, stored } = await searchFiles(files, search);
  const notes = works.flatMap(({ findings }) => findings.notes);
  const missing = search.incoming.filter(({ id }) => !stored.has(id));
  const [different, extra]: [Difference[], Difference[]] = [[], []];
  for (const note of notes)
    if ('columns' in note) different.push({ kind: 'different', id: note.id, at: note.at, columns: note.columns });
    else extra.push({ kind: 'extra', id: note.id, at: note.at, columns: [] });
  return [
    ...missing.map(({ id, at }): Difference => ({ kind: 'missing', id, at, columns: [] })),
    ...different,
    ...extra,
  ];
}

interface Search {
  rule: MergeRule;
  incoming: readonly Incoming[];
  fullWindows: readonly Window[];
}

async function searchFiles<F>(files: Files<F>, { rule, incoming, fullWindows }: Search) {
  const [works, gone, stored]: [Work<F>[], F[], Set<string>] = [[], [], new Set()];
  for (const target of await files.find(incoming, fullWindows)) {
    if (target.sought.size === 0 && target.fullWindows.length === 0) continue;
    const present = await target.open();
    if (!present) {
      gone.push(target.file);
      continue;
    }
    await whileOpen(present, async () => {
      const findings = await compareRows(present, rule, [...target.sought.values()], target.fullWindows);
      for (const id of findings.found) {
        stored.add(id);
        target.sought.delete(id);
      }
      if (findings.notes.length > 0 && !target.isFixed) works.push({ target, findings });
    });
  }
  return { works, gone, stored };
}

interface Expected extends Pick<Comparison, 'stream' | 'source' | 'rows'> {
  fullWindows: readonly Window[];
}

/** The rows to search for, with the values of our own columns appended; and how many rows had to be sanitized. */
function searchOf<F>({ columns }: Files<F>, { stream, source, rows, fullWindows }: Expected, own: readonly Value[]) {
  const sanitizer = createSanitizer(stream, UTF8_TEXT);
  const reshape = createReshape(columnsOf(stream), columns);
  const incoming = [...newestById(rows)].map(([id, row]): Incoming => {
    const values = [...sanitizer.one(row, [source]), ...own];
    return { id, key: keyOf(id), at: row.at, row: reshape(values) };
  });
  const search: Search = { rule: createMergeRule(stream, columns), incoming, fullWindows };
  return { search, sanitized: sanitizer.sanitized() };
}
