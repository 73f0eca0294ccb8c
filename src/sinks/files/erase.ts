import { storableText } from '../../cursor/database/sql.ts';
import type { Value } from '../../model/columns.ts';
import { isEmptied } from '../../model/forgotten.ts';
import type { Instant } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import type { Erasure } from '../sink.ts';
import { KEPT } from '../table-columns.ts';
import { keyOf } from './event-index.ts';
import { type LakeRow, META, type PartitionFile } from './partition-file.ts';
import type { Rework } from './rework.ts';
import type { Edit } from './write-file.ts';

/** Selects rows by the value of a column: the columns of `empties` are cleared, or the rows deleted. */
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

/** Also returns how many rows it found. */
export async function eraseIn(
  { file, rows }: PartitionFile,
  { column, id, empties }: Victim,
  now: Instant,
): Promise<{ rework: Rework | 'leave'; rows: number }> {
  const { columns } = file;
  const place = (name: string): number => columns.findIndex((one) => one.name === name);
  const [at, syncedAt] = [place(column), place('_synced_at')];
  const isGone = columns.map(({ name }) => !KEPT.has(name) && (empties?.(name) ?? false));
  const isIt = (value: Value | undefined): boolean => typeof value === 'string' && storableText(value) === id;
  const edit: Edit = (all) => all.flatMap((row) => (isIt(row[at]) ? (empties ? [emptied(row)] : []) : [row]));
  const emptied = (row: LakeRow): LakeRow => row.map((value, i) => (isGone[i] ? null : i === syncedAt ? now : value));

  const edits = new Map<number, Edit>();
  // The table of customers has no times, and none is needed of it.
  const names = place('timestamp') < 0 ? [column] : [column, 'timestamp'];
  const found: Instant[] = [];
  for (const [i, group] of at < 0 ? [] : file.groups.entries()) {
    const hits = (await rows(group, names)).filter(([value]) => isIt(value));
    if (hits.length > 0) edits.set(i, edit);
    for (const [, time] of hits) found.push(Number(time));
  }
  // The file's previous version may hold anything, so the file is rewritten without it.
  const isClean = found.length === 0 && file.metadata[META.before] !== 'yes';
  const rework = empties ? { edits } : { edits, dropped: [keyOf(id)], deleted: found.filter(Number.isFinite) };
  return { rework: isClean ? 'leave' : rework, rows: found.length };
}
