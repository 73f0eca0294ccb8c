import type { Instant } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import { keyOf } from './event-index.ts';
import type { PartitionFile } from './partition-file.ts';
import type { Counted } from './read.ts';
import type { Rework, Visit } from './rework.ts';
import { whileOpen } from './store/store.ts';
import type { Edit } from './write-file.ts';

/**
 * Beyond the index, an event that moves to another day is written there like a new one. Its row in the first day is marked as missing when that
 * day is read again, and here it is removed.
 *
 * @param all The files of a source.
 * @param rewrite Visits one of them, and does what it is told.
 */
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

/** Without the marked rows of these events. */
async function withoutMoved(file: PartitionFile, moved: ReadonlySet<string>): Promise<Rework | 'leave'> {
  const gone = (await idRows(file)).filter(({ id, isMarked }) => isMarked && moved.has(id));
  if (gone.length === 0) return 'leave';
  const edits = new Map<number, Edit>();
  for (const group of new Set(gone.map((row) => row.group))) {
    const numbers = new Set(gone.filter((row) => row.group === group).map(({ n }) => n));
    edits.set(group, (rows) => rows.filter((_, n) => !numbers.has(n)));
  }
  return { edits, dropped: gone.map(({ id }) => keyOf(id)), deleted: gone.map(({ at }) => at) };
}
