import { storableText } from '../../cursor/database/sql.ts';
import { carryRows } from '../../cursor/holdings/window-rows.ts';
import type { Feed } from '../../cursor/ledger.ts';
import type { Value } from '../../model/columns.ts';
import { isEmptied } from '../../model/forgotten.ts';
import type { Instant } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import type { FileColumn } from '../parquet/format/index.ts';
import type { Erasure } from '../sink.ts';
import { KEPT } from '../table-columns.ts';
import type { Change } from './change.ts';
import { dropKeys, keyOf, type Partition } from './event-index.ts';
import { groupBy } from './group-by.ts';
import { type LakeRow, META, type PartitionFile } from './partition-file.ts';
import type { Counted } from './read.ts';
import { whileOpen } from './store/store.ts';
import type { Edit, Edits } from './write-file.ts';

export interface Rework {
  /** Default: the file's own columns. */
  columns?: readonly FileColumn[];
  edits?: Edits;
  /** Index keys of the events that are removed from the file. */
  dropped?: readonly bigint[];
  /** Times of removed events that the ledger counts. */
  deleted?: readonly Instant[];
}

export type Visit<Decision = Rework> = (file: PartitionFile) => Promise<Decision | 'leave'>;

/** A crash before this leaves a correct index: it only says where to search, and no event is new. */
export function recordRework(
  change: Change,
  feed: Feed,
  { id, partition }: { id: number | undefined; partition: Partition },
  { dropped = [], deleted = [] }: Rework,
): void {
  if (deleted.length > 0) change.later((tx) => carryRows(tx, feed, { added: [], removed: deleted }));
  if (id !== undefined && dropped.length > 0) change.later(dropKeys(id, partition, dropped));
}

/** The rows to erase, by the value of a column: `empties` says which columns to clear; without it, rows are deleted. */
export interface Victim {
  column: string;
  id: string;
  empties: ((column: string) => boolean) | undefined;
}

export function victimOf(erasure: Erasure, stream: StreamName): Victim | 'all' | undefined {
  if (erasure.kind === 'source') return 'all';
  const { kind } = erasure;
  const id = storableText(erasure.id);
  if (stream !== 'clicks') return { column: `${kind}_id`, id, empties: isEmptied(kind, stream) };
  return kind === 'click' ? { column: 'event_id', id, empties: undefined } : undefined;
}

export async function eraseIn({ file, rows }: PartitionFile, { column, id, empties }: Victim, now: Instant) {
  const { columns } = file;
  const indexOf = (name: string): number => columns.findIndex((one) => one.name === name);
  const [at, syncedAt] = [indexOf(column), indexOf('_synced_at')];
  const isGone = columns.map(({ name }) => !KEPT.has(name) && (empties?.(name) ?? false));
  const isIt = (value: Value | undefined): boolean => typeof value === 'string' && storableText(value) === id;
  const edit: Edit = (all) => all.flatMap((row) => (isIt(row[at]) ? (empties ? [emptied(row)] : []) : [row]));
  const emptied = (row: LakeRow): LakeRow => row.map((value, i) => (isGone[i] ? null : i === syncedAt ? now : value));

  const edits = new Map<number, Edit>();
  // The table of customers has no times and needs none.
  const names = indexOf('timestamp') < 0 ? [column] : [column, 'timestamp'];
  const found: Instant[] = [];
  for (const [i, group] of at < 0 ? [] : file.groups.entries()) {
    const hits = (await rows(group, names)).filter(([value]) => isIt(value));
    if (hits.length > 0) edits.set(i, edit);
    for (const [, time] of hits) found.push(Number(time));
  }
  // The file's previous version may hold the erased values, so the file is rewritten without it.
  const isClean = found.length === 0 && file.metadata[META.before] !== 'yes';
  const rework: Rework = empties ? { edits } : { edits, dropped: [keyOf(id)], deleted: found.filter(Number.isFinite) };
  return { rework: isClean ? ('leave' as const) : rework, rows: found.length };
}

/** An event older than the index that moves to another day is written as a new one. Removes its old row, by then marked as missing. */
export async function removeMoved<F extends Counted>(
  all: readonly F[],
  window: Window,
  rewrite: (file: F, visit: Visit) => Promise<void>,
): Promise<void> {
  const suspects = all.filter(({ oldest, newest }) => oldest < window.end && newest >= window.start);
  const marked = new Set<string>();
  await eachRow(suspects, ({ id, isMarked }) => isMarked && marked.add(id));
  if (marked.size === 0) return;
  const moved = new Set<string>();
  await eachRow(all, ({ id, isMarked }) => !isMarked && marked.has(id) && moved.add(id));
  for (const file of moved.size === 0 ? [] : suspects)
    await rewrite(file, (partition) => withoutMoved(partition, moved));
}

async function eachRow(files: readonly Counted[], look: (row: IdRow) => unknown): Promise<void> {
  for (const { open } of files)
    await whileOpen(await open(), async (file) => (file ? await idRows(file) : []).forEach(look));
}

type IdRow = Awaited<ReturnType<typeof idRows>>[number];

async function idRows({ file, rows }: PartitionFile) {
  // An old file may lack `_missing_since`, which comes last.
  const isThere = file.columns.some(({ name }) => name === '_missing_since');
  const names = ['event_id', 'timestamp', ...(isThere ? ['_missing_since'] : [])];
  const found = [];
  for (const [group, stored] of file.groups.entries())
    for (const [n, [id, at, mark]] of (await rows(stored, names)).entries())
      found.push({ group, n, id: String(id), at: Number(at), isMarked: (mark ?? null) !== null });
  return found;
}

async function withoutMoved(file: PartitionFile, moved: ReadonlySet<string>): Promise<Rework | 'leave'> {
  const gone = (await idRows(file)).filter(({ id, isMarked }) => isMarked && moved.has(id));
  if (gone.length === 0) return 'leave';
  const edits = new Map<number, Edit>();
  for (const [group, inGroup] of groupBy(gone, (row) => row.group)) {
    const numbers = new Set(inGroup.map(({ n }) => n));
    edits.set(group, (rows) => rows.filter((_, n) => !numbers.has(n)));
  }
  return { edits, dropped: gone.map(({ id }) => keyOf(id)), deleted: gone.map(({ at }) => at) };
}
