import type { Queryable } from './database/index.ts';
import { isoOf, sql } from './database/sql.ts';

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
export function readBudgetUse(db: Queryable, options: BudgetUseOptions = {}): Promise<BudgetUse[]> {
  const { keyHash, minutes = 60, step = 1 } = options;
  // Intervals are counted back from the end of this minute.
  return db.query<BudgetUse>(sql`
    with clock as materialized (select clock_timestamp() as now),
    placed as (
      select u.*, now, (extract(epoch from date_trunc('minute', now) - minute) / 60)::int / ${step}::int as bucket
      from tributary.budget_use u, clock
      where minute > now - make_interval(mins => ${minutes}) and key_hash = coalesce(${keyHash}, key_hash)
    ), summed as (
      select key_hash, date_trunc('minute', now) - make_interval(mins => (bucket + 1) * ${step}::int - 1) as from_at,
        max(per_second) as per_second, sum(fresh)::int as fresh, sum(repair)::int as repair, sum(backfill)::int as backfill,
        sum(too_many)::int as too_many, sum(pauses)::int as pauses,
        (${step}::int * 60 - case when bucket = 0 then 60 - extract(second from now) else 0 end)::float8 as seconds
      from placed group by key_hash, bucket, now
    )
    select key_hash as "keyHash", ${isoOf('from_at')} as from, per_second as "perSecond", fresh + repair + backfill as requests,
      jsonb_build_object('fresh', fresh, 'repair', repair, 'backfill', backfill) as "byLane", too_many as "tooManyRequests",
      pauses, (fresh + repair + backfill) / (per_second * seconds) as share
    from summed order by key_hash, from_at`);
}

/** How the budget of a key stands now. */
interface BudgetNow {
  keyHash: string;
  perSecond: number;
  /** Seconds left of the pause; null where there is none. */
  pausedSeconds: number | null;
}

export const readBudgets = (db: Queryable): Promise<BudgetNow[]> =>
  db.query<BudgetNow>(sql`
    select key_hash as "keyHash", per_second as "perSecond",
      case when paused_until > clock_timestamp() then extract(epoch from paused_until - clock_timestamp())::float8 end as "pausedSeconds"
    from tributary.budgets order by key_hash`);
