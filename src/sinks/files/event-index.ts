import { hash } from 'node:crypto';
import type { Queryable } from '../../cursor/database/index.ts';
import { instantOf, type Sql, sql } from '../../cursor/database/sql.ts';
import { rangesOf } from '../../cursor/holdings/attestations.ts';
import { type Feed, ofFeed } from '../../cursor/holdings/window-rows.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import { DAY_MS, HOUR_MS, startOfDay, type Window } from '../../model/window.ts';
import type { Change } from './change.ts';
import { groupBy } from './group-by.ts';
import { type Extent, idsIn, type PartitionFile } from './partition-file.ts';

/** The first hour of a partition, in hours since 1970. */
export type Partition = number;

/**
 * The index maps each event to the file that holds it, as far back as a stream is read again: an event may come again with a time on
 * another day. Older events are searched for in the file of their day. The files are authoritative.
 */

/** How far back a stream is read again. The index covers this and one more day, to find events that moved to another day. */
export type ReadAgainMs = (source: string, stream: StreamName) => number;

/** 64 bits of a digest. Collisions are resolved by the ids in the file. */
export const keyOf = (id: string): bigint => BigInt.asIntN(64, BigInt(`0x${hash('sha256', id).slice(0, 16)}`));

/** `isMarked` sets `unsettled` before a file is replaced: after a crash, the next writer has to compare the files with the index. */
export async function enterFeed(state: Queryable, { sink, stream, source }: Feed, isMarked: boolean) {
  // The inner select sees the row as it was before this statement.
  const [entered] = await state.query<{ id: number; isUnsettled: boolean; now: Instant }>(sql`
    insert into tributary.lake_tracks as t (sink, stream, source, unsettled) values (${sink}, ${stream}, ${source}, true)
    on conflict (sink, stream, source) do update set unsettled = t.unsettled or ${isMarked}
    returning id, coalesce((select unsettled from tributary.lake_tracks before where before.id = t.id), true) as "isUnsettled",
      ${instantOf('now()')} as now`);
  if (!entered) throw new Error('the insert of the feed returned no row');
  return entered;
}

export const settleFeed = (id: number): Sql => sql`update tributary.lake_tracks set unsettled = false where id = ${id}`;

export const unsettleFeed = (feed: Feed): Sql =>
  sql`update tributary.lake_tracks set unsettled = true where ${ofFeed(feed)}`;

/** Serializes commits, `forget` and `maintain`, which may replace the same file. */
export const feedLock = ({ sink, stream, source }: Feed): string => `lake ${sink}/${source}/${stream}`;

export async function findFeed(tx: Queryable, feed: Feed): Promise<number | undefined> {
  const [found] = await tx.query<{ id: number }>(sql`select id from tributary.lake_tracks where ${ofFeed(feed)}`);
  return found?.id;
}

export async function sourcesIn(state: Queryable, sink: string, stream: StreamName): Promise<string[]> {
  const found = await state.query<{ source: string }>(
    sql`select source from tributary.lake_tracks where sink = ${sink} and stream = ${stream} order by source`,
  );
  return found.map(({ source }) => source);
}

export const dropFeed = (id: number): Sql => sql`
  with index as (delete from tributary.lake_index where track = ${id}), files as (delete from tributary.lake_files where track = ${id})
  delete from tributary.lake_tracks where id = ${id}`;

export async function knownFiles(tx: Queryable, feedId: number, only?: Partition): Promise<Map<Partition, string>> {
  const files = await tx.query<{ partition: Partition; identity: string }>(sql`
    select partition, identity from tributary.lake_files
    where track = ${feedId} and partition = coalesce(${only ?? null}, partition)`);
  return new Map(files.map(({ partition, identity }) => [partition, identity]));
}

/** Partitions with no recent write whose files still contain their previous version. */
export const quietPartitions = (feedId: number, quietSeconds: number, most: number): Sql => sql`
  select partition from tributary.lake_files
  where track = ${feedId} and holds_before and written_at < now() - make_interval(secs => ${quietSeconds})
  order by written_at limit ${most}`;

interface FileExtent {
  partition: Partition;
  rows: number;
  oldest: Instant;
  newest: Instant;
}

const EXTENT = sql`partition, rows, ${instantOf('oldest')} as oldest, ${instantOf('newest')} as newest`;

/** The files with events in these windows, including files of other days that hold moved events; with row counts and time ranges. */
export async function filesWithin(tx: Queryable, feedId: number, windows: readonly Window[]): Promise<FileExtent[]> {
  if (windows.length === 0) return [];
  return tx.query<FileExtent>(sql`
    select ${EXTENT} from tributary.lake_files f where track = ${feedId} and exists (
      select from ${rangesOf(windows)} as w (start_at, end_at) where f.newest >= w.start_at and f.oldest < w.end_at)`);
}

/** Files older than the index that may hold events of a window. The file of an event may be that of another day than its time. */
export function filesBeforeIndex(tx: Queryable, feedId: number, from: Partition, window: Window) {
  const [start, end] = [toIso(window.start), toIso(window.end)];
  return tx.query<FileExtent>(sql`
    select ${EXTENT} from tributary.lake_files
    where track = ${feedId} and partition < ${from}::float8 and (newest >= ${start} and oldest <= ${end}
      or to_timestamp(partition * 3600.0) between ${start}::timestamptz - interval '1 day' and ${end})`);
}

export async function indexedFrom(db: Queryable, feedId: number): Promise<Partition> {
  const [found] = await db.query<{ from: Partition | null }>(
    sql`select indexed_from as from from tributary.lake_tracks where id = ${feedId}`,
  );
  return found?.from ?? Number.POSITIVE_INFINITY;
}

export const indexStart = (now: Instant, readAgainMs: ReadAgainMs, { source, stream }: Feed): Partition =>
  Math.floor(startOfDay(now - readAgainMs(source, stream) - DAY_MS) / HOUR_MS);

/** Bounds how long a commit waits for deletes; the next commit continues. */
const DROPPED_AT_ONCE = 20_000;

/** Moves the start of the index. Events before it are deleted in steps; if it moves back, `indexFiles` adds the earlier events. */
export async function moveIndex(
  state: Queryable,
  change: Change,
  feedId: number,
  from: Partition,
  indexFiles: (end: Partition) => Promise<void>,
): Promise<void> {
  const before = await indexedFrom(state, feedId);
  if (from < before) await indexFiles(before);
  if (from !== before)
    await state.query(sql`update tributary.lake_tracks set indexed_from = ${from} where id = ${feedId}`);
  change.later(sql`
    delete from tributary.lake_index where ctid = any(array(
      select ctid from tributary.lake_index where track = ${feedId} and partition < ${from} limit ${DROPPED_AT_ONCE}))`);
}

/** For when the index may be wrong: `moveIndex` then rebuilds it. */
export async function emptyIndex(state: Queryable, feedId: number): Promise<void> {
  await state.query(sql`update tributary.lake_tracks set indexed_from = null where id = ${feedId}`);
  await state.query(sql`delete from tributary.lake_index where track = ${feedId}`);
}

export async function findPartitions(tx: Queryable, feedId: number, from: Partition, keys: readonly bigint[]) {
  const found = await tx.query<{ key: number | bigint; partition: Partition }>(sql`
    select key, partition from tributary.lake_index
    where track = ${feedId} and key = any(${keys.map(String)}::bigint[]) and partition >= ${from}::float8`);
  return groupBy(found, ({ key }) => BigInt(key));
}

/** Does nothing for a partition that is older than the index. */
export const addKeys = (feedId: number, partition: Partition, keys: readonly bigint[]): Sql => sql`
  insert into tributary.lake_index (track, key, partition)
  select id, key, ${partition} from tributary.lake_tracks, unnest(${keys.map(String)}::bigint[]) as key
  where id = ${feedId} and indexed_from <= ${partition} order by key on conflict do nothing`;

export const insertKeys = (feedId: number, partition: Partition, keys: readonly bigint[]): Sql => sql`
  insert into tributary.lake_index (track, key, partition)
  select ${feedId}, key, ${partition} from unnest(${keys.map(String)}::bigint[]) as key order by key on conflict do nothing`;

export const keysIn = async (file: PartitionFile): Promise<bigint[]> => (await idsIn(file)).map(keyOf);

export const dropKeys = (feedId: number, partition: Partition, keys: readonly bigint[]): Sql => sql`
  delete from tributary.lake_index
  where track = ${feedId} and partition = ${partition} and key = any(${keys.map(String)}::bigint[])`;

type Recorded = Extent & { partition: Partition; identity: string };

export function recordFile(feedId: number, { partition, identity, ...extent }: Recorded): Sql {
  const [oldest, newest] = [extent.oldest, extent.newest].map((at) => (at === undefined ? null : toIso(at)));
  return sql`
    insert into tributary.lake_files (track, partition, identity, rows, oldest, newest, holds_before)
    values (${feedId}, ${partition}, ${identity}, ${extent.rows}, ${oldest}, ${newest}, ${extent.holdsBefore})
    on conflict (track, partition) do update
      set identity = excluded.identity, rows = excluded.rows, oldest = excluded.oldest, newest = excluded.newest,
        holds_before = excluded.holds_before, written_at = now()`;
}

export const dropFile = (feedId: number, partition: Partition): Sql => sql`
  with index as (delete from tributary.lake_index where track = ${feedId} and partition = ${partition})
  delete from tributary.lake_files where track = ${feedId} and partition = ${partition}`;

export async function databaseNow(tx: Queryable): Promise<Instant> {
  const [row] = await tx.query<{ now: Instant }>(sql`select ${instantOf('now()')} as now`);
  if (!row) throw new Error('select now() returned no row');
  return row.now;
}
