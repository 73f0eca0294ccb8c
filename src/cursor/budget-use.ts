import type { Queryable } from './database/index.ts';
import { type Sql, sql } from './database/sql.ts';

/** How the budget of a key was used by all processes, in one interval. */
interface BudgetUse {
  keyHash: string;
  /** When the interval begins, ISO in UTC. */
  from: string;
  perSecond: number;
  requests: number;
  byLane: { fresh: number; repair: number; backfill: number };
  tooManyRequests: number;
  pauses: number;
  /** Requests as a share of what the budget would have allowed in the whole interval, work or none. */
  share: number;
}

interface BudgetUseOptions {
  /** All keys, unless one is named. */
  keyHash?: string;
  /** How far back, in minutes; 60 unless told. Seven days are kept. */
  minutes?: number;
  /** Minutes to a row: 1 for a curve, as many as `minutes` for one figure. */
  step?: number;
}

/** Intervals without a request have no row. The last one is still running: its share is of what has passed. */
export async function readBudgetUse(db: Queryable, options: BudgetUseOptions = {}): Promise<BudgetUse[]> {
  const { keyHash, minutes = 60, step = 1 } = options;
  const rows = await db.query<UseRow>(selectUse(keyHash, minutes, step));
  return rows.map((row) => ({
    keyHash: row.key_hash,
    from: row.from_at.toISOString(),
    perSecond: row.per_second,
    requests: row.fresh + row.repair + row.backfill,
    byLane: { fresh: row.fresh, repair: row.repair, backfill: row.backfill },
    tooManyRequests: row.too_many,
    pauses: row.pauses,
    share: (row.fresh + row.repair + row.backfill) / (row.per_second * row.seconds),
  }));
}

/** How the budget of a key stands now. */
interface BudgetNow {
  keyHash: string;
  perSecond: number;
  /** Seconds left of the pause; null where there is none. */
  pausedSeconds: number | null;
}

export async function readBudgets(db: Queryable): Promise<BudgetNow[]> {
  const rows = await db.query<{ key_hash: string; per_second: number; paused: number }>(sql`
    select key_hash, per_second, extract(epoch from paused_until - clock_timestamp())::float8 as paused
    from tributary.budgets order by key_hash`);
  return rows.map(({ key_hash, per_second, paused }) => ({
    keyHash: key_hash,
    perSecond: per_second,
    pausedSeconds: paused > 0 ? paused : null,
  }));
}

interface UseRow {
  key_hash: string;
  from_at: Date;
  per_second: number;
  fresh: number;
  repair: number;
  backfill: number;
  too_many: number;
  pauses: number;
  seconds: number;
}

/** Intervals are counted back from the end of this minute. */
const selectUse = (keyHash: string | undefined, minutes: number, step: number): Sql => sql`
  with clock as materialized (select clock_timestamp() as now),
  placed as (
    select u.*, now, (extract(epoch from date_trunc('minute', now) - minute) / 60)::int / ${step}::int as bucket
    from tributary.budget_use u, clock
    where minute > now - make_interval(mins => ${minutes}) and key_hash = coalesce(${keyHash}, key_hash)
  )
  select key_hash, date_trunc('minute', now) - make_interval(mins => (bucket + 1) * ${step} - 1) as from_at,
    max(per_second) as per_second, sum(fresh)::int as fresh, sum(repair)::int as repair, sum(backfill)::int as backfill,
    sum(too_many)::int as too_many, sum(pauses)::int as pauses,
    (${step} * 60 - case when bucket = 0 then 60 - extract(second from now) else 0 end)::float8 as seconds
  from placed group by key_hash, bucket, now order by key_hash, bucket desc`;
