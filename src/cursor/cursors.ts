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

/** The combined cursor of several sinks: that of the sink that is furthest behind. */
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

/** Records that a sink holds a listing of all links. If proven, it is complete as of the time when the listing began. */
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

export const lastCommit = async (db: Queryable, feed: AnyFeed): Promise<string | undefined> =>
  (await readCursor(db, feed))?.lastCommit;

/**
 * SQL condition on a cursor `c`: a sync ended in state `done` after the window that holds `since` was proven. It is derived, not stored,
 * so a stream that starts over (other filters, an earlier `since`, a new sink) is automatically in its first sync again.
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

/** Default for `maxLagMs`: a stream that lags less is not in its first sync, even if its beginning was read again. */
const NEAR_MS = 3_600_000;

/** Whether a first sync is running or still to come: the stream is far behind and has never caught up. */
export const isFirstSync = (
  { caughtUp, lagMs }: { caughtUp: boolean; lagMs: number | null },
  maxLagMs: number = NEAR_MS,
): boolean => !caughtUp && (lagMs === null || lagMs > maxLagMs);

export interface KnownFeed extends Feed, Cursor {
  updatedAt: Instant;
  isFirstSync: boolean;
}

/** All event cursors in the state, even if the config no longer names their source or sink. Cursors of listings cannot be moved. */
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

/** Revokes proofs, so that the next sync reads again. Rows stay where they are. The caller holds the lease. */

/** Everything from `to` on counts as never read. With `to` at `since`, nothing is left proven. */
export async function rewind(tx: Queryable, feed: Feed, to: Instant): Promise<void> {
  const at = toIso(to);
  await tx.query(sql`delete from tributary.windows where ${ofFeed(feed)} and start_at >= ${at}`);
  // The rows of a cut window are estimated by its remaining share of time, until the sink has counted them.
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
