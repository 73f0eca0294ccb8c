import type { Queryable } from '../../cursor/database/index.ts';
import type { Advance } from '../../cursor/ledger.ts';
import type { Value } from '../../model/columns.ts';
import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { createSanitizer, newestById, type Sanitizer, UTF8_TEXT } from '../merge-rule.ts';
import type { FileColumn } from '../parquet/format/index.ts';
import type { Comparison, Difference, Stored } from '../sink.ts';
import { findHomes, indexedFrom, keyOf, type Partition } from './event-index.ts';
import { bookkeeping, createMergeRule, type MergeRule } from './merge-row.ts';
import { columnsOf, createReshape, type PartitionFile } from './partition-file.ts';
import { whileOpen } from './store/store.ts';
import { type Changed, type Findings, type Incoming, survey } from './survey.ts';

/**
 * The one way of a batch into files: find the files that may hold its events, look into them, write what is new or different. How files are
 * found and how they are published is the sink's own: by name, or by a commit to a catalog.
 */
export interface Files<F> {
  /** Of the rows that are looked for. */
  readonly columns: readonly FileColumn[];
  /** The files that may hold these events, or any of these windows, which were read completely. Most promising first. */
  find(incoming: readonly Incoming[], wholes: readonly Window[]): Promise<Place<F>[]>;
}

export interface WritableFiles<F> extends Files<F> {
  /** Rewrites files in which something differs, and writes new events. */
  write(changes: Changes<F>): Promise<void>;
}

export interface Place<F> {
  /** As the sink knows it. */
  file: F;
  /** By id. Files that share this map hold an event once: what was found in one is not looked for in the next. */
  sought: Map<string, Incoming>;
  wholes: readonly Window[];
  /** Undefined if it is gone. */
  open(): Promise<PartitionFile | undefined>;
  /** It is looked into, and stays as it is. */
  isFixed?: boolean;
}

/** A file with something to change. */
export interface Work<F> {
  place: Place<F>;
  findings: Findings;
}

export interface Changes<F> {
  works: readonly Work<F>[];
  newEvents: readonly Incoming[];
  /** Files that somebody deleted. */
  gone: readonly F[];
  rule: MergeRule;
  now: Instant;
}

interface Batch {
  stream: Stream;
  /** In the order they were read. The same event may come twice. */
  rows: readonly Row[];
  advance: Advance;
  now: Instant;
}

/** Events that may be in a file, by id. */
type Sought = Map<string, Incoming>;

export interface Homes {
  /** By partition, what the index says. An event that comes again may have the time of another one. */
  sought: Map<Partition, Sought>;
  /** The others are new, or in a file before this partition, whose events are not in the index. */
  others: Incoming[];
  from: Partition;
}

export async function homesOf(db: Queryable, track: number, incoming: readonly Incoming[]): Promise<Homes> {
  const keys = incoming.map(({ key }) => key);
  const from = await indexedFrom(db, track);
  const homes = await findHomes(db, track, from, keys);
  const sought = new Map<Partition, Sought>();
  for (const one of incoming) for (const { partition } of homes.get(one.key) ?? []) seek(sought, partition, [one]);
  return { sought, others: incoming.filter(({ key }) => !homes.has(key)), from };
}

export function seek(sought: Map<Partition, Sought>, partition: Partition, events: readonly Incoming[]): void {
  const there = sought.get(partition) ?? new Map<string, Incoming>();
  for (const one of events) there.set(one.id, one);
  sought.set(partition, there);
}

export async function mergeEvents<F>(batch: Batch, files: WritableFiles<F>): Promise<Stored> {
  const { stream, advance, now } = batch;
  const sanitizer = createSanitizer(stream, UTF8_TEXT);
  const own = bookkeeping(now, advance.runId);
  const incoming = readyRows(files, { stream, source: advance.source, rows: batch.rows, own, sanitizer });
  const wholes = advance.spans.filter((span) => span.whole);
  const rule = createMergeRule(stream, files.columns);
  const { works, stored, newEvents } = await mergeRows(files, { rule, incoming, wholes }, now);
  const moved = works.flatMap(({ findings }) => allOf(findings.moved));
  const changed = moved.length + works.flatMap(({ findings }) => allOf(findings.changed)).length;
  return {
    receipt: { new: newEvents.length, changed, unchanged: stored.size - changed, sanitized: sanitizer.sanitized() },
    added: [...newEvents, ...moved].map(({ at }) => at),
    removed: [
      ...moved.map(({ was }) => was),
      ...works.flatMap(({ findings }) => allOf(findings.doubled)).map(({ at }) => at),
    ],
  };
}

/** Rows of any kind: those that are stored with other values are changed, and the others are added. */
export async function mergeRows<F>(files: WritableFiles<F>, look: Look, now: Instant) {
  const { works, stored, gone } = await lookInto(files, look);
  const newEvents = look.incoming.filter(({ id }) => !stored.has(id));
  await files.write({ works, newEvents, gone, rule: look.rule, now });
  return { works, stored, newEvents };
}

/** Compares rows with the files by the merge rule, and changes nothing. */
export async function compareFiles<F>(comparison: Comparison, files: Files<F>): Promise<Difference[]> {
  const { stream, window, isWhole } = comparison;
  // The sink's own columns do not take part in the comparison.
  const sanitizer = createSanitizer(stream, UTF8_TEXT);
  const incoming = readyRows(files, { ...comparison, own: bookkeeping(0, ''), sanitizer });
  const wholes = isWhole ? [window] : [];
  const rule = createMergeRule(stream, files.columns);
  const { works, stored } = await lookInto(files, { rule, incoming, wholes });
  const all = works.map(({ findings }) => findings);
  const of = (kind: Difference['kind'], rows: ReadonlyArray<Pick<Difference, 'id' | 'at'> & Partial<Changed>>) =>
    rows.map(({ id, at, columns = [] }): Difference => ({ kind, id, at, columns }));
  return [
    ...of(
      'missing',
      incoming.filter(({ id }) => !stored.has(id)).map(({ id, at }) => ({ id, at })),
    ),
    ...all.flatMap((one) => of('different', [...allOf(one.changed), ...allOf(one.moved)])),
    ...all.flatMap((one) => of('extra', [...allOf(one.missing), ...allOf(one.doubled)])),
  ];
}

export const allOf = <T>(notes: ReadonlyMap<number, ReadonlyMap<number, T>>): T[] =>
  [...notes.values()].flatMap((rows) => [...rows.values()]);

interface Look {
  rule: MergeRule;
  incoming: readonly Incoming[];
  wholes: readonly Window[];
}

/** Also returns the ids of events that are in the files. */
async function lookInto<F>(files: Files<F>, { rule, incoming, wholes }: Look) {
  const [works, gone, stored]: [Work<F>[], F[], Set<string>] = [[], [], new Set()];
  for (const place of await files.find(incoming, wholes)) {
    if (place.sought.size === 0 && place.wholes.length === 0) continue;
    const present = await place.open();
    if (!present) {
      gone.push(place.file);
      continue;
    }
    await whileOpen(present, async () => {
      const findings = await survey(present, rule, [...place.sought.values()], place.wholes);
      for (const id of findings.found) {
        stored.add(id);
        place.sought.delete(id);
      }
      const { changed, moved, missing, doubled } = findings;
      const isDifferent = changed.size + moved.size + missing.size + doubled.size > 0;
      if (isDifferent && !place.isFixed) works.push({ place, findings });
    });
  }
  return { works, gone, stored };
}

interface Ready {
  stream: Stream;
  source: string;
  rows: readonly Row[];
  own: readonly Value[];
  sanitizer: Sanitizer;
}

function readyRows<F>({ columns }: Files<F>, { stream, source, rows, own, sanitizer }: Ready): Incoming[] {
  const reshape = createReshape(columnsOf(stream), columns);
  const distinct = newestById(rows);
  const ready: Incoming[] = [];
  const ids = distinct.entries();
  for (const values of sanitizer.all([...distinct.values()], [source])) {
    const [id, { at }] = ids.next().value as [string, Row];
    ready.push({ id, key: keyOf(id), at, row: reshape([...values, ...own]) });
  }
  return ready;
}
