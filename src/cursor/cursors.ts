import { type Instant, toIso } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import type { Queryable } from './database/index.ts';
import { defined, instantOf, isoOrNull, type Nulled, raw, sql } from './database/sql.ts';
import { ofFeed } from './holdings/window-rows.ts';
import type { AnyFeed, Feed, Feeds } from './ledger.ts';

export interface Cursor {
  since: Instant;
  completeThrough: Instant | undefined;
  newestSeen: Instant | undefined;
  lastCommit?: string | undefined;
}

export async function readCursor(db: Queryable, { sink, ...feed }: AnyFeed): Promise<Cursor | undefined> {
  return (await readCursors(db, { ...feed, sinks: [sink] })).get(sink);
}

async function readCursors(db: Queryable, { source, stream, sinks }: Feeds): Promise<Map<string, Cursor | undefined>> {
  return cursorsOf(sinks, await db.query<CursorRow>({ text: SELECT_CURSORS, values: [source, stream, sinks] }));
}

const CURSOR = `${instantOf('since')} as since, ${instantOf('complete_through')} as "completeThrough",
  ${instantOf('newest_seen')} as "newestSeen", last_commit as "lastCommit"`;

/** Of source $1 and stream $2 in the sinks $3. */
export const SELECT_CURSORS = `
  select sink, ${CURSOR} from tributary.cursors where source = $1 and stream = $2 and sink = any($3)`;

export type CursorRow = Nulled<Cursor> & { sink: string };

export function cursorsOf(sinks: readonly string[], rows: readonly CursorRow[]): Map<string, Cursor | undefined> {
  const found = new Map(rows.map(({ sink, ...cursor }) => [sink, defined<Cursor>(cursor)]));
  return new Map(sinks.map((sink) => [sink, found.get(sink)]));
}

/** Where several sinks stand together: no further than the one that is furthest behind. */
export async function lowestCursor(db: Queryable, feeds: Feeds): Promise<Cursor | undefined> {
  const cursors = [...(await readCursors(db, feeds)).values()];
  const known = cursors.filter((cursor) => cursor !== undefined);
  if (known.length === 0) return undefined;
  return {
    since: Math.min(...known.map((cursor) => cursor.since)),
    completeThrough: lowest(cursors.map((cursor) => cursor?.completeThrough)),
    newestSeen: lowest(cursors.map((cursor) => cursor?.newestSeen)),
  };
}

const lowest = (instants: ReadonlyArray<Instant | undefined>): Instant | undefined =>
  instants.reduce((a, b) => (a === undefined || b === undefined ? undefined : Math.min(a, b)));

/** A listing of all links is in the sink. What it shows is complete as of its beginning, if that is proven. */
export async function recordListing(
  tx: Queryable,
  { source, sink }: Pick<Feed, 'source' | 'sink'>,
  { at, isProven, runId }: { at: Instant; isProven: boolean; runId: string },
): Promise<void> {
  await tx.query(sql`
    insert into tributary.cursors as c (source, stream, sink, since, complete_through, newest_seen, last_commit)
    values (${source}, 'links', ${sink}, ${toIso(at)}, case when ${isProven} then ${toIso(at)}::timestamptz end, ${toIso(at)}, ${runId})
    on conflict (source, stream, sink) do update set
      complete_through = coalesce(excluded.complete_through, c.complete_through), newest_seen = excluded.newest_seen,
      last_commit = excluded.last_commit, updated_at = now()`);
}

export async function hasShownAny(db: Queryable, source: string): Promise<boolean> {
  const found = await db.query(
    sql`select from tributary.cursors where source = ${source} and newest_seen is not null limit 1`,
  );
  return found.length > 0;
}

export async function lastCommit(db: Queryable, feed: AnyFeed): Promise<string | undefined> {
  const [row] = await db.query<{ id: string | null }>(
    sql`select last_commit as id from tributary.cursors where ${ofFeed(feed)}`,
  );
  return row?.id ?? undefined;
}

/**
 * SQL about a cursor `c`: a sync ended well after the window that holds `since` was proven. Nothing is stored for it, so what starts over
 * (other filters, an earlier `since`, a new sink) is a first sync again by itself.
 */
export const CAUGHT_UP = `(
  (c.stream = 'links' and c.complete_through is not null) or coalesce((
    select r.finished_at from tributary.runs r
    where (r.source, r.stream, r.state) = (c.source, c.stream, 'done') and r.kind in ('sync', 're-sweep')
    order by r.started_at desc limit 1
  ) >= (
    select w.proven_at from tributary.windows w
    where (w.source, w.stream, w.sink) = (c.source, c.stream, c.sink) and w.start_at <= c.since and w.end_at > c.since
  ), false))`;

/** Without a target, a stream that is no further behind than this needs no first sync, whatever was read again of its beginning. */
const NEAR_MS = 3_600_000;

/** A first sync is under way, or is to come: the stream is far behind, and has never been anywhere else. */
export const isFirstSync = (
  { caughtUp, lagMs }: { caughtUp: boolean; lagMs: number | null },
  maxLagMs: number = NEAR_MS,
): boolean => !caughtUp && (lagMs === null || lagMs > maxLagMs);

export interface KnownFeed extends Feed, Cursor {
  updatedAt: Instant;
  isFirstSync: boolean;
}

/** Every cursor of events in the state, whether or not the config still names its source and sink. A listing's cannot be moved. */
export async function knownFeeds(db: Queryable): Promise<KnownFeed[]> {
  type Found = Nulled<Feed & Cursor> & { updatedAt: Instant; caughtUp: boolean; lagMs: number | null };
  const rows = await db.query<Found>(sql`
    select source, stream, sink, ${raw(CURSOR)}, ${instantOf('updated_at')} as "updatedAt", ${raw(CAUGHT_UP)} as "caughtUp",
      extract(epoch from now() - complete_through)::float8 * 1000 as "lagMs"
    from tributary.cursors c where stream <> 'links' order by source, stream, sink`);
  return rows.map(({ caughtUp, lagMs, updatedAt, ...row }) => ({
    ...defined<Feed & Cursor>(row),
    updatedAt,
    isFirstSync: isFirstSync({ caughtUp, lagMs }),
  }));
}

interface FeedChoice {
  source?: string | undefined;
  streams?: readonly StreamName[];
  sink?: string | undefined;
}

export const chooseFeeds = (all: readonly KnownFeed[], { source, streams = [], sink }: FeedChoice): KnownFeed[] =>
  all.filter(
    (feed) =>
      (streams.length === 0 || streams.includes(feed.stream)) &&
      (source === undefined || feed.source === source) &&
      (sink === undefined || feed.sink === sink),
  );

export const reportFeed = ({ source, stream, sink, since, updatedAt, completeThrough, newestSeen }: KnownFeed) => ({
  ...{ source, stream, sink, since: toIso(since), updatedAt: toIso(updatedAt) },
  completeThrough: isoOrNull(completeThrough),
  newestSeen: isoOrNull(newestSeen),
});

/** Takes proofs back, so that the next sync reads again. Rows stay where they are. The caller holds the lease. */

/** Everything from `to` on counts as never read. At the very beginning nothing is left proven. */
export async function rewind(tx: Queryable, feed: Feed, to: Instant): Promise<void> {
  const at = toIso(to);
  await tx.query(sql`delete from tributary.windows where ${ofFeed(feed)} and start_at >= ${at}`);
  // Its share of the time is the best guess of how many rows a piece of a window holds, until the sink has counted them.
  await tx.query(sql`
    update tributary.windows set end_at = ${at},
      rows = round(rows * extract(epoch from ${at}::timestamptz - start_at) / extract(epoch from end_at - start_at))
    where ${ofFeed(feed)} and end_at > ${at}`);
  await tx.query(sql`
    update tributary.cursors
    set complete_through = case when ${at}::timestamptz > since then ${at}::timestamptz end, updated_at = now()
    where ${ofFeed(feed)}`);
}

export async function forgetFeed(tx: Queryable, feed: Feed): Promise<void> {
  for (const table of ['windows', 'cursors', 'attestations', 'foreign_rows'])
    await tx.query(sql`delete from tributary.${raw(table)} where ${ofFeed(feed)}`);
}
