import type { Queryable } from '../../cursor/database/index.ts';
import { isoOf, raw, sql } from '../../cursor/database/sql.ts';
import { DAY_MS } from '../../model/window.ts';
import { anyStream, count, figure, moment, named, share, z } from '../answers.ts';

/** The progress of running syncs and backfills. It comes from the ledger, because `runs` has it only when they have ended. */

export const Activity = named('Activity', {
  kind: z.enum(['sync', 'backfill']),
  id: z.string().describe('of the run, or of the backfill'),
  source: z.string(),
  stream: anyStream,
  startedAt: moment,
  progress: share.nullable().describe('null if unknown, as for a sync that reads less than a day'),
  rows: count.nullable(),
  rowsPerSecond: figure.nullable(),
  etaSeconds: figure.nullable(),
  paused: z.boolean(),
});
export type Activity = z.infer<typeof Activity>;

export interface Extent {
  /** The part of the time range that was read, and the rest. */
  doneMs: number;
  openMs: number;
  rows: number;
  pricedRows: number | null;
  /** The time spent on it. */
  seconds: number;
}

/** A price is an estimate: beyond this share of its rows, the open time counts as well. */
const TRUSTED = 0.9;

/**
 * From 0 to 1, and never decreasing, because rows grow and open time shrinks. With a price, it is the share of the rows read. If the price
 * was too low, the backfill must not count as done while time is open, so beyond `TRUSTED` the open time counts as well.
 */
function shareOf({ doneMs, openMs, rows, pricedRows }: Omit<Extent, 'seconds'>): number {
  if (openMs <= 0) return 1;
  const open = openMs / (doneMs + openMs);
  if (pricedRows === null || pricedRows === 0) return 1 - open;
  const share = rows / pricedRows;
  return share < TRUSTED ? share : Math.max(TRUSTED, rows / (rows + open * pricedRows));
}

/** The first percent is no basis for an estimate. */
const LEAST_SHARE = 0.01;

/** While paused, there is no pace and no time left. */
export function paceOf({ paused = false, ...extent }: Extent & { paused?: boolean }) {
  const { rows, seconds } = extent;
  const progress = shareOf(extent);
  const hasPace = seconds > 0 && !paused;
  return {
    progress,
    rows,
    rowsPerSecond: hasPace ? Math.round(rows / seconds) : null,
    etaSeconds: hasPace && progress > LEAST_SHARE ? Math.round((seconds * (1 - progress)) / progress) : null,
  };
}

const milliseconds = (from: string, to: string): string =>
  `greatest(0, extract(epoch from ${to} - ${from}) * 1000)::float8`;

/** A window that is being read, or was partly read before it went back to the queue. */
const BEGUN = `(p.state = 'running' or (p.state = 'queued' and p.rows_read > 0))`;

const OPEN_WINDOWS = `tributary.backfill_windows p join tributary.backfills b on b.id = p.backfill_id and b.state in ('queued', 'paused')`;

/**
 * Backfills that have not ended, newest first, without their certified share, which would need the whole ledger. A window that is
 * being read counts as far as every sink has it. A backfill without windows has nothing to do.
 */
export const readBackfillExtents = (state: Queryable) =>
  state.query<Extent & Pick<Activity, 'id' | 'source' | 'stream' | 'startedAt' | 'paused'>>(sql`
    select b.id, b.source, b.stream, ${isoOf('b.created_at')} as "startedAt", b.state = 'paused' as paused,
      b.priced_rows as "pricedRows", coalesce(w."doneMs", 0) as "doneMs", coalesce(w."openMs", 0) as "openMs",
      coalesce(w.rows, 0) as rows,
      coalesce((
        select extract(epoch from sum(coalesce(r.finished_at, clock_timestamp()) - r.started_at)) from tributary.runs r
        where (r.source, r.stream, r.kind) = (b.source, b.stream, 'backfill') and r.started_at >= b.created_at
          and (r.finished_at is not null or exists (
            select from tributary.leases l where (l.source, l.stream) = (b.source, b.stream) and l.expires_at > clock_timestamp()))
          and (r.state = 'running' or exists (
            select from tributary.windows v where (v.source, v.stream) = (b.source, b.stream) and v.run_id = r.id
              and v.end_at > b.start_at and v.start_at < b.end_at))
      ), 0)::float8 as seconds
    from tributary.backfills b left join (
      select id, sum(ms - open_ms) as "doneMs", sum(open_ms) as "openMs", sum(rows)::bigint as rows from (
        -- The ledger is read only for windows that were begun; the thousands that wait are two sums for each backfill.
        select id, ms, case when ended then 0 else ms end as open_ms, rows from (
          select b.id, p.state in ('done', 'failed') as ended, sum(p.rows_read) as rows,
            extract(epoch from sum(p.end_at - p.start_at))::float8 * 1000 as ms
          from ${raw(OPEN_WINDOWS)} where not ${raw(BEGUN)} group by 1, 2
        ) resting
        union all
        select b.id, ${raw(milliseconds('p.start_at', 'p.end_at'))} as ms,
          ${raw(milliseconds('p.start_at', 'p.end_at'))} - coalesce(read.ms, 0) as open_ms,
          greatest(p.rows_read + case when p.state = 'running' then coalesce((
            select r.rows_read from tributary.runs r
            where (r.source, r.stream, r.kind, r.state) = (b.source, b.stream, 'backfill', 'running') and r.started_at >= b.created_at
            order by r.started_at desc limit 1
          ), 0) else 0 end, read.rows) as rows
        from ${raw(OPEN_WINDOWS)} left join lateral (
          select min(s.ms) as ms, min(s.rows) as rows from (
            select coalesce(sum(${raw(milliseconds('greatest(v.start_at, p.start_at)', 'least(v.end_at, p.end_at)'))})
                filter (where v.sink is not null), 0) as ms,
              coalesce(sum(v.rows), 0) as rows
            from tributary.cursors c left join tributary.windows v
              on (v.source, v.stream, v.sink) = (c.source, c.stream, c.sink) and v.state = 'certified'
                and v.read_at >= b.created_at and v.end_at > p.start_at and v.start_at < p.end_at
            where (c.source, c.stream) = (b.source, b.stream) group by c.sink
          ) s
        ) read on true
        where ${raw(BEGUN)}) each_window group by id
    ) w on w.id = b.id where b.state in ('queued', 'paused') order by b.created_at desc`);

export async function readBackfillsUnderWay(state: Queryable): Promise<Activity[]> {
  return (await readBackfillExtents(state)).map(({ id, source, stream, startedAt, ...extent }) => ({
    ...{ kind: 'backfill', id, source, stream, startedAt, paused: extent.paused },
    ...paceOf(extent),
  }));
}

/** A poll ends before anybody could read its figures, and shares the window of its day with the polls before it. */
const LEAST_MS = DAY_MS;

/** Syncs that are marked as running, and whose process still holds the lease on the stream. */
export async function readSyncsUnderWay(state: Queryable): Promise<Activity[]> {
  type Found = Pick<Activity, 'id' | 'source' | 'stream'> & Omit<Extent, 'pricedRows'> & { startedAt: string };
  const rows = await state.query<Found>(sql`
    select r.id, r.source, r.stream, ${isoOf('r.started_at')} as "startedAt", w."doneMs", w."openMs", greatest(w.rows, r.rows_read) as rows,
      extract(epoch from clock_timestamp() - r.started_at)::float8 as seconds
    from tributary.runs r left join lateral (
      select min(s.done) as "doneMs", max(s.whole - s.proven) as "openMs", min(s.rows)::bigint as rows from (
        select ${raw(milliseconds('c.since', 'r.started_at'))} as whole,
          coalesce(sum(v.ms), 0) as proven,
          coalesce(sum(v.ms) filter (where v.run_id = r.id), 0) as done,
          coalesce(sum(v.rows) filter (where v.run_id = r.id), 0) as rows
        from tributary.cursors c left join lateral (
          select v.run_id, v.rows,
            ${raw(milliseconds('greatest(v.start_at, c.since)', 'least(v.end_at, r.started_at)'))} as ms
          from tributary.windows v
          where (v.source, v.stream, v.sink) = (c.source, c.stream, c.sink) and v.state = 'certified' and v.end_at > c.since
        ) v on true
        where (c.source, c.stream) = (r.source, r.stream) group by c.sink, c.since
      ) s
    ) w on true
    where r.state = 'running' and r.kind = 'sync' and exists (
      select from tributary.leases l where (l.source, l.stream) = (r.source, r.stream) and l.expires_at > clock_timestamp()
    )
    order by r.started_at, r.id`);
  return rows.map(({ id, source, stream, startedAt, ...extent }) => ({
    ...{ kind: 'sync', id, source, stream, startedAt, paused: false },
    ...(extent.rows !== null && extent.doneMs + extent.openMs > LEAST_MS
      ? paceOf({ ...extent, pricedRows: null })
      : { progress: null, rows: null, rowsPerSecond: null, etaSeconds: null }),
  }));
}
