import { storableText } from '../../cursor/database/sql.ts';
import type { Value } from '../../model/columns.ts';
import { isEmptied } from '../../model/forgotten.ts';
import type { Instant } from '../../model/instant.ts';
import { BOOKKEEPING, STREAM_NAMES, type StreamName } from '../../model/streams.ts';
import type { Erasure } from '../sink.ts';
import { hideCoverage } from './catalog.ts';
import { databaseNow, dropTrack, findTrack, keyOf, lockTrack } from './event-index.ts';
import type { LakeRow } from './file/columns.ts';
import { META, type PartitionFile } from './file/partition-file.ts';
import type { Edit } from './file/rewrite.ts';
import type { Lake } from './lake.ts';
import { type Rework, visitFiles } from './rework.ts';

/** Rewrites only the partitions that hold it, each at once. Says how many rows of which file were touched. */
export async function erase(lake: Lake, erasure: Erasure): Promise<Record<string, number>> {
  const touched: Record<string, number> = {};
  for (const stream of STREAM_NAMES) {
    const track = { sink: lake.name, stream, source: erasure.source };
    const victim = victimOf(erasure, stream);
    if (victim === undefined) continue;
    // Before the first file goes: should this be cut short, nobody shall be told that the rest is all there is.
    if (victim === 'all') await hideCoverage(lake, track);
    await visitFiles(lake, track, async (file, tx) => {
      if (victim === 'all') {
        touched[file.path] = file.file.rows;
        return 'remove';
      }
      const { rework, rows } = await eraseIn(file, victim, await databaseNow(tx));
      if (rows > 0) touched[file.path] = rows;
      return rework;
    });
    if (victim === 'all') {
      await lake.state.transaction(async (tx) => {
        await lockTrack(tx, track);
        const id = await findTrack(tx, track);
        if (id !== undefined) await dropTrack(tx, id);
      });
    }
  }
  return touched;
}

/** Rows by the value of a column: they lose what `empties` says, or go. */
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

/** Bookkeeping stays, but for what it holds of the service. */
const KEPT: ReadonlySet<string> = new Set(BOOKKEEPING.map(({ name }) => name).filter((name) => name !== '_extra'));

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
  let found = 0;
  for (const [i, group] of at < 0 ? [] : file.groups.entries()) {
    const hits = (await rows(group, [column])).filter(([value]) => isIt(value)).length;
    if (hits > 0) edits.set(i, edit);
    found += hits;
  }
  // Nobody can say what the version before holds that is still in the file: it is made anew without it.
  const isClean = found === 0 && file.metadata[META.before] !== 'yes';
  const dropped = empties ? [] : [keyOf(id)];
  return { rework: isClean ? 'leave' : { columns, edits, dropped }, rows: found };
}
