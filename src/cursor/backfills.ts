import { type Instant, toIso } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import type { Window } from '../model/window.ts';
import type { Database, Queryable } from './database/index.ts';
import { instantOf, raw, sql, storableText } from './database/sql.ts';
import { provenMs } from './ledger.ts';

/** Queued backfills: their requests and the progress of each window. The tables are authoritative; queue jobs are only hints. */

export type BackfillState = 'queued' | 'paused' | 'cancelled' | 'done' | 'failed';

export interface BackfillRequest {
  source: string;
  stream: StreamName;
  window: Window;
  force: boolean;
  /** The estimated number of rows, if somebody requested an estimate. */
  pricedRows?: number | undefined;
  /** The window in chunks, in order. Empty if everything is certified and there is nothing to do. */
  chunks: readonly Window[];
}

export interface Backfill extends Window {
  id: string;
  source: string;
  stream: StreamName;
  force: boolean;
  state: BackfillState;
  createdAt: Instant;
  finishedAt: Instant | null;
  windows: { queued: number; running: number; done: number; failed: number };
  rows: number;
  pricedRows: number | null;
  certified: number;
  message: string | null;
}

/** When a claim expires if its worker stops renewing it. Workers renew several times within that. */
const CLAIMED_UNTIL = raw(`clock_timestamp() + interval '60 seconds'`);

/** Inserts all or none. Only one process inserts at a time, so what `check` finds in the state still holds at the insert. */
export async function insertBackfills(
  db: Database,
  backfills: ReadonlyArray<BackfillRequest & { id: string }>,
  check: (tx: Queryable) => Promise<void> = async () => {},
): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(hashtextextended('new backfills', 0))`);
    await check(tx);
    for (const { id, source, stream, window, force, pricedRows, chunks } of backfills) {
      await tx.query(sql`
        insert into tributary.backfills (id, source, stream, start_at, end_at, force, priced_rows)
        values (${id}, ${source}, ${stream}, ${toIso(window.start)}, ${toIso(window.end)}, ${force}, ${pricedRows})`);
      const windows = JSON.stringify(chunks.map(({ start, end }) => ({ start_at: toIso(start), end_at: toIso(end) })));
      await tx.query(sql`
        insert into tributary.backfill_windows (backfill_id, start_at, end_at)
        select ${id}, w.* from jsonb_to_recordset(${windows}) as w (start_at timestamptz, end_at timestamptz)`);
    }
  });
}

export const readBackfills = (db: Queryable, id?: string): Promise<Backfill[]> =>
  db.query<Backfill>(sql`
    select b.id, b.source, b.stream, b.force, b.state, b.priced_rows as "pricedRows",
      ${instantOf('b.start_at')} as start, ${instantOf('b.end_at')} as "end",
      ${instantOf('b.created_at')} as "createdAt", ${instantOf('b.finished_at')} as "finishedAt",
      coalesce(sum(w.rows_read), 0)::bigint as rows,
      ${raw(PROVEN_MS)} / (extract(epoch from b.end_at - b.start_at)::float8 * 1000) as certified,
      jsonb_build_object(
        'queued', count(*) filter (where w.state = 'queued'), 'running', count(*) filter (where w.state = 'running'),
        'done', count(*) filter (where w.state = 'done'), 'failed', count(*) filter (where w.state = 'failed')) as windows,
      (array_agg(w.message order by w.start_at desc) filter (where w.message is not null))[1] as message
    from tributary.backfills b left join tributary.backfill_windows w on w.backfill_id = b.id
    where ${id}::text is null or b.id = ${id}
    group by b.id order by b.created_at desc`);

const PROVEN_MS = provenMs({
  ...{ source: 'b.source', stream: 'b.stream', start: 'b.start_at', end: 'b.end_at' },
  sinks: 'select sink from tributary.cursors c where (c.source, c.stream) = (b.source, b.stream)',
});

/** An unfinished backfill that covers the whole range of one of these, if any, and the total number of waiting windows. */
export async function readQueuedLike(
  db: Queryable,
  asked: ReadonlyArray<Pick<BackfillRequest, 'source' | 'stream' | 'window' | 'force'>>,
): Promise<{ duplicate: string | undefined; waiting: number }> {
  const rows = asked.map(({ window: { start, end }, ...one }) => ({
    ...one,
    start_at: toIso(start),
    end_at: toIso(end),
  }));
  const [row] = await db.query<{ duplicate: string | null; waiting: number }>(sql`
    select (select id from tributary.backfills b
        join jsonb_to_recordset(${JSON.stringify(rows)})
            as a (source text, stream text, force boolean, start_at timestamptz, end_at timestamptz)
          on (a.source, a.stream) = (b.source, b.stream) and b.start_at <= a.start_at and b.end_at >= a.end_at
            and (b.force or not a.force)
        where state in ('queued', 'paused') limit 1) as duplicate,
      (select count(*) from tributary.backfill_windows w join tributary.backfills b on b.id = w.backfill_id
        where w.state = 'queued' and b.state in ('queued', 'paused')) as waiting`);
  return { duplicate: row?.duplicate ?? undefined, waiting: row?.waiting ?? 0 };
}

/** Returns false if its state is not in `from`. One statement: between two, a worker could finish the backfill again. */
export async function moveBackfill(
  db: Queryable,
  id: string,
  from: readonly BackfillState[],
  to: BackfillState,
): Promise<boolean> {
  const moved = await db.query(sql`
    with moved as (
      update tributary.backfills set state = ${to}, finished_at = case when ${to} in ('queued', 'paused') then null else now() end
      where id = ${id} and state = any(${from}) returning id
    ), requeued as (
      update tributary.backfill_windows w set state = 'queued', tries = 0, message = null
      from moved where w.backfill_id = moved.id and w.state = 'failed' and 'failed' = any(${from}::text[])
    )
    select id from moved`);
  return moved.length > 0;
}

type Claim = (Window & { tries: number }) | 'over' | 'busy';

/** `over`: there is nothing to do, or not now. `busy`: another window of the stream is being read, and only one may be. */
export async function claimWindow(db: Database, id: string, start: Instant): Promise<Claim> {
  return db.transaction(async (tx) => {
    const [backfill] = await tx.query<{ source: string; stream: string; state: BackfillState }>(
      sql`select source, stream, state from tributary.backfills where id = ${id} for share`,
    );
    if (backfill?.state !== 'queued') return 'over';
    // Without this lock, two workers that check at the same time would both find the stream free.
    await tx.query(
      sql`select pg_advisory_xact_lock(hashtextextended(${`backfill ${backfill.source}/${backfill.stream}`}, 0))`,
    );
    const busy = await tx.query(sql`${RUNNING} and c.source = ${backfill.source} and c.stream = ${backfill.stream}`);
    if (busy.length > 0) return 'busy';
    const [taken] = await tx.query<Window & { tries: number }>(sql`
      update tributary.backfill_windows
      set state = 'running', tries = tries + 1, claimed_until = ${CLAIMED_UNTIL}
      where backfill_id = ${id} and start_at = ${toIso(start)} and state in ('queued', 'running')
      returning ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end", tries`);
    return taken ?? 'over';
  });
}

/** Renews the claim, and returns whether the window is still to be read: the backfill may be paused or cancelled. */
export async function keepWindow(db: Queryable, id: string, start: Instant): Promise<boolean> {
  const [row] = await db.query<{ state: BackfillState }>(sql`
    update tributary.backfill_windows w set claimed_until = ${CLAIMED_UNTIL} from tributary.backfills b
    where b.id = w.backfill_id and w.backfill_id = ${id} and w.start_at = ${toIso(start)} and w.state = 'running'
    returning b.state`);
  return row?.state === 'queued';
}

export interface WindowEnd {
  state: 'queued' | 'done' | 'failed';
  rows: number;
  message?: string | undefined;
  /** Whether this counts as a try: an interruption does not. */
  tried: boolean;
}

export async function endWindow(db: Queryable, id: string, start: Instant, end: WindowEnd): Promise<void> {
  await db.query(sql`
    update tributary.backfill_windows
    set state = ${end.state}, rows_read = rows_read + ${end.rows}, claimed_until = null,
      message = ${end.message && storableText(end.message)},
      tries = tries - case when ${end.tried}::boolean then 0 else 1 end
    where backfill_id = ${id} and start_at = ${toIso(start)} and state = 'running'`);
}

/** Ends backfills whose windows are all done or failed, and returns them. */
export async function finishBackfills(db: Queryable): Promise<Array<{ id: string; state: BackfillState }>> {
  return db.query(sql`
    update tributary.backfills b
    set finished_at = now(), state = case when exists (
      select from tributary.backfill_windows w where w.backfill_id = b.id and w.state = 'failed') then 'failed' else 'done' end
    where b.state = 'queued' and not exists (
      select from tributary.backfill_windows w where w.backfill_id = b.id and w.state in ('queued', 'running'))
    returning id, state`);
}

/** The windows that a worker could claim: the next one of each stream of which no window is being read. */
export const nextWindows = (db: Queryable) =>
  db.query<Window & { id: string; tries: number }>(sql`
    select distinct on (b.source, b.stream) b.id, w.tries,
      ${instantOf('w.start_at')} as start, ${instantOf('w.end_at')} as "end"
    from tributary.backfills b join tributary.backfill_windows w on w.backfill_id = b.id
    where b.state = 'queued' and (w.state = 'queued' or (w.state = 'running' and w.claimed_until <= clock_timestamp()))
      and not exists (${RUNNING} and (c.source, c.stream) = (b.source, b.stream))
    order by b.source, b.stream, w.tries, b.created_at, w.start_at`);

const RUNNING = sql`
  select from tributary.backfill_windows r join tributary.backfills c on c.id = r.backfill_id
  where r.state = 'running' and r.claimed_until > clock_timestamp()`;
