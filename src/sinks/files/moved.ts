import type { Instant } from '../../model/instant.ts';
import { keyOf } from './event-index.ts';
import type { PartitionFile } from './partition-file.ts';
import { whileOpen } from './store/store.ts';
import type { Edit } from './write-file.ts';

/**
 * Beyond the index, an event that moves to another day is written there like a new one. Its row in the first day is marked as missing when that
 * day is read again, and here it is removed.
 */

type Open = () => Promise<PartitionFile | undefined>;

interface IdRow {
  group: number;
  n: number;
  id: string;
  at: Instant;
  isMarked: boolean;
}

async function idRows({ file, rows }: PartitionFile): Promise<IdRow[]> {
  // A file may be older than the mark, which is the last of them.
  const isThere = file.columns.some(({ name }) => name === '_missing_since');
  const names = ['event_id', 'timestamp', ...(isThere ? ['_missing_since'] : [])];
  const found: IdRow[] = [];
  for (const [group, stored] of file.groups.entries())
    for (const [n, [id, at, mark]] of (await rows(stored, names)).entries())
      found.push({ group, n, id: String(id), at: Number(at), isMarked: (mark ?? null) !== null });
  return found;
}

/** The events that are marked as missing in some of these files, and are in one of all files without a mark. */
export async function findMoved(suspects: readonly Open[], all: readonly Open[]): Promise<Set<string>> {
  const marked = new Set<string>();
  await eachRow(suspects, ({ id, isMarked }) => isMarked && marked.add(id));
  const moved = new Set<string>();
  if (marked.size > 0) await eachRow(all, ({ id, isMarked }) => !isMarked && marked.has(id) && moved.add(id));
  return moved;
}

async function eachRow(files: readonly Open[], visit: (row: IdRow) => unknown): Promise<void> {
  for (const open of files) {
    const file = await open();
    if (file) await whileOpen(file, async () => (await idRows(file)).forEach(visit));
  }
}

/** Removes the marked rows of these events. Also returns their keys and times. */
export async function withoutMoved(file: PartitionFile, moved: ReadonlySet<string>) {
  const gone = (await idRows(file)).filter(({ id, isMarked }) => isMarked && moved.has(id));
  const edits = new Map<number, Edit>();
  for (const group of new Set(gone.map((row) => row.group))) {
    const numbers = new Set(gone.filter((row) => row.group === group).map(({ n }) => n));
    edits.set(group, (rows) => rows.filter((_, n) => !numbers.has(n)));
  }
  return { edits, dropped: gone.map(({ id }) => keyOf(id)), deleted: gone.map(({ at }) => at) };
}
