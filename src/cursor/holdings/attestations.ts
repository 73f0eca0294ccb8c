import { type Instant, toIso } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import { ifTable, type Queryable } from '../database/index.ts';
import { instantOf, type Sql, sql, storableText } from '../database/sql.ts';
import { SINK_CHANGED } from '../ledger.ts';
import { type CountedWindow, type CountRows, type Feed, ofFeed, recountRows } from './window-rows.ts';

/** What a sink was found to hold. If sink and ledger disagree, the sink is right: the windows are read again. */
export interface Attestation {
  /** The sink's identity as of the last count of its rows, complete or in progress. */
  identity: string;
  /** When its rows were last compared with the whole ledger. */
  countedAt: Instant | undefined;
  /** A count in progress: windows from `at` on are counted, and `rows` rows of the window that contains `at`. */
  next: { at: Instant; rows: number } | undefined;
  /** Events before this were deleted, according to `keep` in the config. */
  prunedTo: Instant | undefined;
}

export interface ForeignRows extends Window {
  what: string;
}

/** Of source $1 and stream $2 in the sinks $3. */
export const SELECT_ATTESTATIONS = `
  select sink, identity, ${instantOf('counted_at')} as "countedAt", ${instantOf('pruned_to')} as "prunedTo",
    case when next_at is not null then json_build_object('at', ${instantOf('next_at')}, 'rows', next_rows) end as next
  from tributary.attestations where source = $1 and stream = $2 and sink = any($3)`;

/** Records the progress of the count; without `next`, the count is complete as of now. */
export async function writeAttestation(
  tx: Queryable,
  { source, stream, sink }: Feed,
  identity: string,
  next: Attestation['next'],
): Promise<void> {
  const at = next && toIso(next.at);
  await tx.query(sql`
    insert into tributary.attestations as a (source, stream, sink, identity, next_at, next_rows, counted_at)
    values (${source}, ${stream}, ${sink}, ${identity}, ${at}, ${next?.rows ?? 0}, case when ${at}::timestamptz is null then now() end)
    on conflict (source, stream, sink) do update set identity = excluded.identity, next_at = excluded.next_at,
      next_rows = excluded.next_rows, counted_at = coalesce(excluded.counted_at, a.counted_at)`);
}

/** Attestations of all streams in a sink, for `doctor`: the last identity, and the first window with rows of other writers. */
export async function readAttested(db: Queryable, sink: string) {
  type Found = Omit<Feed, 'sink'> & { identity: string; last_commit: string | null; foreign: string | null };
  const read = sql`
    select a.source, a.stream, a.identity, c.last_commit, (
      select f.what from tributary.foreign_rows f where (f.source, f.stream, f.sink) = (a.source, a.stream, a.sink)
      order by f.start_at limit 1) as foreign
    from tributary.attestations a left join tributary.cursors c using (source, stream, sink)
    where a.sink = ${sink} order by 1, 2`;
  return ifTable(db, 'attestations', () => db.query<Found>(read));
}

export async function certifiedBefore(
  db: Queryable,
  feed: Feed,
  { before, most }: { before: Instant | undefined; most: number },
): Promise<CountedWindow[]> {
  const end = before === undefined ? 'infinity' : toIso(before);
  return db.query<CountedWindow>(sql`${certifiedOf(feed)} and start_at < ${end} order by start_at desc limit ${most}`);
}

const certifiedOf = (feed: Feed): Sql => sql`
  select ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end", rows
  from tributary.windows where ${ofFeed(feed)} and state = 'certified'`;

/** Returns and locks the certified windows that overlap any of these, so that no commit changes them meanwhile. */
export async function lockCertified(tx: Queryable, feed: Feed, windows: readonly Window[]): Promise<CountedWindow[]> {
  return tx.query<CountedWindow>(sql`
    ${certifiedOf(feed)} and exists (
      select from ${rangesOf(windows)} as t (start_at, end_at)
      where windows.start_at < t.end_at and windows.end_at > t.start_at)
    order by start_at for update`);
}

export interface Reopened extends Window {
  /** The sink's current number of rows; commits that fill the window add to it. */
  rows: number;
  note: string;
}

/** Revokes the certificates of these windows and moves the watermark back accordingly, as if they had never been read. */
export async function reopen(tx: Queryable, feed: Feed, windows: readonly Reopened[]): Promise<void> {
  const starts = windows.map(({ start }) => toIso(start));
  const rows = windows.map((window) => window.rows);
  const notes = windows.map(({ note }) => storableText(`${SINK_CHANGED}${note}`));
  const ranges = sql`${rangesOf(windows)} r (start_at, end_at)`;
  await tx.query(sql`
    update tributary.windows w
    set state = 'uncertified', rows = r.rows, note = r.note, proven_at = null, read_at = 'epoch', tries = 0
    from unnest(${starts}::timestamptz[], ${rows}::bigint[], ${notes}::text[]) as r (start_at, rows, note)
    where ${ofFeed(feed)} and w.start_at = r.start_at`);
  await tx.query(sql`
    update tributary.cursors c set updated_at = now(), complete_through = (
      select nullif(min(greatest(r.start_at, c.since)), c.since) from ${ranges} where r.end_at > c.since)
    where ${ofFeed(feed)}
      and exists (select from ${ranges} where r.end_at > c.since and r.start_at < c.complete_through)`);
}

export const rangesOf = (windows: readonly Window[]): Sql => sql`unnest(
  ${windows.map(({ start }) => toIso(start))}::timestamptz[], ${windows.map(({ end }) => toIso(end))}::timestamptz[])`;

/** Makes uncertified windows due again: the next run reads them instead of waiting for their next try. */
export async function retryNow(tx: Queryable, feed: Feed, windows: readonly Window[]): Promise<void> {
  await tx.query(sql`
    update tributary.windows w set read_at = 'epoch', tries = 0 from ${rangesOf(windows)} as r (start_at, end_at)
    where ${ofFeed(feed)} and w.state <> 'certified' and w.start_at < r.end_at and w.end_at > r.start_at`);
}

export async function writeForeign(
  tx: Queryable,
  feed: Feed,
  windows: readonly Window[],
  found: readonly ForeignRows[],
): Promise<void> {
  await tx.query(sql`
    delete from tributary.foreign_rows f using ${rangesOf(windows)} as w (start_at, end_at)
    where ${ofFeed(feed)} and f.start_at < w.end_at and f.end_at > w.start_at`);
  if (found.length === 0) return;
  const { source, stream, sink } = feed;
  await tx.query(sql`
    insert into tributary.foreign_rows (source, stream, sink, start_at, end_at, what)
    select ${source}, ${stream}, ${sink}, f.start_at, f.end_at, w.what from ${rangesOf(found)} with ordinality as f (start_at, end_at, place)
    join unnest(${found.map(({ what }) => storableText(what))}::text[]) with ordinality as w (what, place) using (place)
    on conflict (source, stream, sink, start_at) do update set end_at = excluded.end_at, what = excluded.what`);
}

/** For `keep`: moves the start of the coverage to `before`. Done before rows are deleted, so that no deleted row counts as complete. */
export async function forgetBefore(tx: Queryable, feed: Feed, before: Instant, count: CountRows): Promise<void> {
  const [isOfFeed, at] = [ofFeed(feed), toIso(before)];
  await tx.query(sql`delete from tributary.windows where ${isOfFeed} and end_at <= ${at}`);
  await tx.query(sql`delete from tributary.foreign_rows where ${isOfFeed} and end_at <= ${at}`);
  const cut = await tx.query(
    sql`update tributary.windows set start_at = ${at} where ${isOfFeed} and start_at < ${at} returning 1`,
  );
  if (cut.length > 0) await recountRows(tx, feed, { start: before, end: before + 1 }, count);
  await tx.query(sql`
    update tributary.cursors set since = ${at}, updated_at = now(),
      complete_through = case when complete_through > ${at} then complete_through end
    where ${isOfFeed} and since < ${at}`);
}

export async function writePruned(db: Queryable, { source, stream, sink }: Feed, before: Instant): Promise<void> {
  await db.query(sql`
    insert into tributary.attestations (source, stream, sink, identity, pruned_to)
    values (${source}, ${stream}, ${sink}, '', ${toIso(before)})
    on conflict (source, stream, sink) do update set pruned_to = excluded.pruned_to`);
}
