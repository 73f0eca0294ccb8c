import { hash } from 'node:crypto';
import type { Queryable } from '../../cursor/database/index.ts';
import { instantOf } from '../../cursor/database/sql.ts';
import type { Track } from '../../cursor/ledger.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import { DAY_MS, HOUR_MS, startOfDay, type Window } from '../../model/window.ts';
import type { Change } from './change.ts';
import type { Extent, PartitionFile } from './partition-file.ts';

/** The first hour of a partition, counted from 1970. */
export type Partition = number;

/**
 * The index of the file that each event is in, kept in the state as far back as a stream is read again: an event may come again with the time
 * of another day, and must be found where it was first written. Older events are looked for in the file of their day. The files are
 * authoritative; the index only says where to look.
 */

/** How far back a stream is read again: that far, and a day more, an event that moves to another day is found at once. */
export type ReadAgainMs = (source: string, stream: StreamName) => number;

/** A file, as it was last written. */
interface KnownFile {
  partition: Partition;
  identity: string;
}

/** 64 bits of a digest. The file distinguishes events that collide. */
export const keyOf = (id: string): bigint => BigInt.asIntN(64, BigInt(`0x${hash('sha256', id).slice(0, 16)}`));

/**
 * With a mark before any file is replaced, if readers see it at once. It is unsettled if an earlier writer stopped after its mark, or if the
 * track is new: then the files have to be compared with the index.
 */
export async function enterTrack(
  state: Queryable,
  { sink, stream, source }: Track,
  { isMarked }: { isMarked: boolean },
): Promise<{ id: number; isUnsettled: boolean; now: Instant }> {
  const [entered] = await state.query<{ id: number; was: boolean | null; now: Instant }>({
    // The inner select sees the row before this statement changes it.
    text: `
      insert into tributary.lake_tracks as t (sink, stream, source, unsettled) values ($1, $2, $3, true)
      on conflict (sink, stream, source) do update set unsettled = t.unsettled or $4
      returning id, (select unsettled from tributary.lake_tracks before where before.id = t.id) as was, ${instantOf('now()')} as now`,
    values: [sink, stream, source, isMarked],
  });
  if (!entered) throw new Error('the track was written and did not come back');
  return { id: entered.id, isUnsettled: entered.was ?? true, now: entered.now };
}

export async function settleTrack(tx: Queryable, id: number): Promise<void> {
  await tx.query({ text: 'update tributary.lake_tracks set unsettled = false where id = $1', values: [id] });
}

/** Between a commit, `forget` and `maintain`, which may replace the same file. */
export const trackLock = ({ sink, stream, source }: Track): string => `lake ${sink}/${source}/${stream}`;

export async function findTrack(tx: Queryable, { sink, stream, source }: Track): Promise<number | undefined> {
  const [found] = await tx.query<{ id: number }>({
    text: 'select id from tributary.lake_tracks where sink = $1 and stream = $2 and source = $3',
    values: [sink, stream, source],
  });
  return found?.id;
}

export async function sourcesIn(state: Queryable, sink: string, stream: StreamName): Promise<string[]> {
  const found = await state.query<{ source: string }>({
    text: 'select source from tributary.lake_tracks where sink = $1 and stream = $2 order by source',
    values: [sink, stream],
  });
  return found.map(({ source }) => source);
}

/** Removes everything about an erased source. */
export async function dropTrack(tx: Queryable, id: number): Promise<void> {
  for (const table of ['lake_index', 'lake_files']) {
    await tx.query({ text: `delete from tributary.${table} where track = $1`, values: [id] });
  }
  await tx.query({ text: 'delete from tributary.lake_tracks where id = $1', values: [id] });
}

/** The files of these partitions, or of all, as they were last written. */
export async function knownFiles(
  tx: Queryable,
  track: number,
  partitions?: readonly Partition[],
): Promise<Map<Partition, string>> {
  const files = await tx.query<KnownFile>({
    text: `
      select partition, identity from tributary.lake_files
      where track = $1 and ($2::int[] is null or partition = any($2))`,
    values: [track, partitions ?? null],
  });
  return new Map(files.map(({ partition, identity }) => [partition, identity]));
}

/** Partitions that were not written to for a while and whose files still hold a previous version. */
export async function quietPartitions(
  state: Queryable,
  track: number,
  { quietSeconds, most }: { quietSeconds: number; most: number },
): Promise<Partition[]> {
  const found = await state.query<{ partition: Partition }>({
    text: `
      select partition from tributary.lake_files
      where track = $1 and holds_before and written_at < now() - make_interval(secs => $2)
      order by written_at limit $3`,
    values: [track, quietSeconds, most],
  });
  return found.map(({ partition }) => partition);
}

interface FileExtent {
  partition: Partition;
  rows: number;
  oldest: Instant;
  newest: Instant;
}

/** The files that hold events of these windows, also those that were first written elsewhere; with their rows and times. */
export async function filesWithin(tx: Queryable, track: number, windows: readonly Window[]): Promise<FileExtent[]> {
  if (windows.length === 0) return [];
  return tx.query<FileExtent>({
    text: `
      select partition, rows, ${instantOf('oldest')} as oldest, ${instantOf('newest')} as newest
      from tributary.lake_files f where track = $1 and exists (
        select from unnest($2::timestamptz[], $3::timestamptz[]) as w (start_at, end_at)
        where f.newest >= w.start_at and f.oldest < w.end_at)`,
    values: [track, windows.map(({ start }) => toIso(start)), windows.map(({ end }) => toIso(end))],
  });
}

/** Files that are not in the index and may hold events of a window. An event may be in the file of another day than that of its time. */
export async function filesBeforeIndex(
  tx: Queryable,
  track: number,
  from: Partition,
  window: Window,
): Promise<Array<Omit<FileExtent, 'rows'>>> {
  return tx.query<Omit<FileExtent, 'rows'>>({
    text: `
      select partition, ${instantOf('oldest')} as oldest, ${instantOf('newest')} as newest from tributary.lake_files
      where track = $1 and partition < $2::float8
        and (newest >= $3 and oldest <= $4 or to_timestamp(partition * 3600.0) between $3::timestamptz - interval '1 day' and $4)`,
    values: [track, from, toIso(window.start), toIso(window.end)],
  });
}

/** The first partition that the index covers. */
export async function indexedFrom(db: Queryable, track: number): Promise<Partition> {
  const [found] = await db.query<{ from: Partition | null }>({
    text: 'select indexed_from as from from tributary.lake_tracks where id = $1',
    values: [track],
  });
  return found?.from ?? Number.POSITIVE_INFINITY;
}

/** Where the index has to begin now. */
export function indexStart(now: Instant, readAgainMs: ReadAgainMs, of: Pick<Track, 'source' | 'stream'>): Partition {
  return Math.floor(startOfDay(now - readAgainMs(of.source, of.stream) - DAY_MS) / HOUR_MS);
}

/** Bounds what a commit has to wait for; the next one continues. */
const DROPPED_AT_ONCE = 20_000;

/**
 * Moves the beginning of the index. Older events leave it, some at a time; where it has to reach further back, `indexFiles` first adds the events
 * of the partitions before its end.
 */
export async function moveIndex(
  state: Queryable,
  change: Change,
  track: number,
  from: Partition,
  indexFiles: (end: Partition) => Promise<void>,
): Promise<void> {
  const before = await indexedFrom(state, track);
  if (from < before) await indexFiles(before);
  if (from !== before)
    await state.query({
      text: 'update tributary.lake_tracks set indexed_from = $2 where id = $1',
      values: [track, from],
    });
  const dropOlder = {
    text: `
      delete from tributary.lake_index where ctid = any(array(
        select ctid from tributary.lake_index where track = $1 and partition < $2 limit $3))`,
    values: [track, from, DROPPED_AT_ONCE],
  };
  change.later((tx) => tx.query(dropOlder));
}

/** Where rows may be elsewhere than it says: it is built anew by `moveIndex`. */
export async function emptyIndex(state: Queryable, track: number): Promise<void> {
  await state.query({ text: 'update tributary.lake_tracks set indexed_from = null where id = $1', values: [track] });
  await state.query({ text: 'delete from tributary.lake_index where track = $1', values: [track] });
}

/** The partitions that may hold events with these keys. */
export async function findHomes(
  tx: Queryable,
  track: number,
  from: Partition,
  keys: readonly bigint[],
): Promise<Map<bigint, Partition[]>> {
  const homes = new Map<bigint, Partition[]>();
  if (keys.length === 0) return homes;
  const found = await tx.query<{ key: number | bigint; partition: Partition }>({
    text: `
      select key, partition from tributary.lake_index
      where track = $1 and key = any($2::bigint[]) and partition >= $3::float8`,
    values: [track, keys.map(String), from],
  });
  for (const { key, partition } of found) {
    const known = homes.get(BigInt(key));
    if (known) known.push(partition);
    else homes.set(BigInt(key), [partition]);
  }
  return homes;
}

/** Those of a partition that the index does not cover are not added. */
export async function addKeys(
  tx: Queryable,
  track: number,
  partition: Partition,
  keys: readonly bigint[],
): Promise<void> {
  if (keys.length > 0 && partition >= (await indexedFrom(tx, track))) await insertKeys(tx, track, partition, keys);
}

export async function insertKeys(
  tx: Queryable,
  track: number,
  partition: Partition,
  keys: readonly bigint[],
): Promise<void> {
  await tx.query({
    text: `
      insert into tributary.lake_index (track, key, partition)
      select $1, key, $2 from unnest($3::bigint[]) as key order by key on conflict do nothing`,
    values: [track, partition, keys.map(String)],
  });
}

/** Of all its events. */
export async function keysIn({ file, rows }: PartitionFile): Promise<bigint[]> {
  const keys: bigint[] = [];
  for (const group of file.groups) for (const [id] of await rows(group, ['event_id'])) keys.push(keyOf(String(id)));
  return keys;
}

export async function dropKeys(
  tx: Queryable,
  track: number,
  partition: Partition,
  keys: readonly bigint[],
): Promise<void> {
  await tx.query({
    text: 'delete from tributary.lake_index where track = $1 and partition = $2 and key = any($3::bigint[])',
    values: [track, partition, keys.map(String)],
  });
}

export async function recordFile(tx: Queryable, track: number, file: KnownFile & Extent): Promise<void> {
  await tx.query({
    text: `
      insert into tributary.lake_files (track, partition, identity, rows, oldest, newest, holds_before)
      values ($1, $2, $3, $4, $5, $6, $7)
      on conflict (track, partition) do update
        set identity = excluded.identity, rows = excluded.rows, oldest = excluded.oldest, newest = excluded.newest,
          holds_before = excluded.holds_before, written_at = now()`,
    values: [track, file.partition, file.identity, file.rows, isoOf(file.oldest), isoOf(file.newest), file.holdsBefore],
  });
}

export async function dropFile(tx: Queryable, track: number, partition: Partition): Promise<void> {
  for (const table of ['lake_index', 'lake_files']) {
    await tx.query({
      text: `delete from tributary.${table} where track = $1 and partition = $2`,
      values: [track, partition],
    });
  }
}

export async function databaseNow(tx: Queryable): Promise<Instant> {
  const [row] = await tx.query<{ now: Instant }>({ text: `select ${instantOf('now()')} as now` });
  if (!row) throw new Error('the database does not know the time');
  return row.now;
}

const isoOf = (instant: Instant | undefined): string | null => (instant === undefined ? null : toIso(instant));
