import {
  CAUTION,
  CAUTIOUS_MS,
  COLD_MS,
  FIRST_PAUSE_MS,
  GRACE_GAPS,
  LEAST_GRACE_MS,
  LONGEST_PAUSE_MS,
  MARGIN,
  MOST_CHAINS,
  PASSES,
  PROBE_MS,
  RESTORE_MS,
  WIDEN,
  WIDEST,
} from '../api/pace-rules.ts';
import type { Sql } from './sql.ts';

/**
 * The rules of the pace (`api/pace.ts`) on one row per key, each step one statement: the row is locked for its length and
 * never for the length of a round trip, so that a process which is stopped in the middle of it holds up nobody.
 *
 * The clock is the database's. Processes on several machines share no other; theirs may be minutes apart and may jump, and
 * a distance of 250 ms kept by two clocks is no distance. `clock_timestamp()`, since `now()` stands still from the moment at
 * which the statement began to wait for the row. It is read once, after the lock, in `timed`.
 */
const HELD = `
  held as (select * from tributary.budgets where key_hash = $1 for update),
  timed as materialized (select held.*, clock_timestamp() as now from held)`;

const ms = (value: number | string): string => `make_interval(secs => (${value}) / 1000.0)`;
const msOf = (interval: string): string => `(extract(epoch from ${interval}) * 1000)::float8`;
const seconds = (value: string): string => `make_interval(secs => ${value})`;

const CAUTIOUS = `case when widening > 1 and now < paused_until + ${ms(CAUTIOUS_MS)} then ${CAUTION} else 0 end`;
const WIDENING = `
  1 + greatest((widening - 1) * least(greatest(1 - ${msOf('now - paused_until')} / ${RESTORE_MS}, 0), 1), ${CAUTIOUS})`;

export const createBudget = (keyHash: string, perSecond: number): Sql => ({
  text: 'insert into tributary.budgets (key_hash, per_second) values ($1, $2) on conflict do nothing',
  values: [keyHash, perSecond],
});

export interface Asked {
  granted: boolean;
  era: number;
  /** Until it may leave, when it is granted; until it may ask again, when not. */
  wait: number;
  alone: boolean;
  /** Counts the grants of the key. */
  number: number;
  /** How long the statement waited for the row. */
  queued: number;
}

/**
 * A slot is granted so long before it opens: the process has its answer, and a timer, by then. Without it every round trip
 * and every timer that fires late would come out of the budget.
 */
const AHEAD_MS = 25;

/** A rate that nobody has asked with for this long is no longer the most careful one. */
const CAREFUL_MS = 10_000;

/** One turn, or how long to wait for it. `rank` counts the lanes from 1. */
export const askForSlot = (keyHash: string, rank: number, perSecond: number, isCold: boolean): Sql => ({
  text: `
    with ${HELD},
    paced as (
      select timed.*, rate, gap, rival, careful_until <= now or $3 <= per_second as is_careful,
        greatest(gap * ${GRACE_GAPS}, ${ms(LEAST_GRACE_MS)}) as grace,
        greatest(next_at, left_at[chains] + ${seconds(`chains / rate * ${1 + MARGIN} * (1 + ${CAUTIOUS})`)}, paused_until) as opens
      from timed,
        lateral (select case when $3 <= per_second or careful_until <= now then $3 else per_second end as rate) r,
        lateral (select least(greatest(floor(rate), 1), ${MOST_CHAINS})::int as chains) c,
        lateral (select ${seconds(`${1 + MARGIN} / rate * (${WIDENING})`)} as gap) g,
        lateral (
          select max(until) as rival from unnest(waits_until, passed_over) with ordinality as lane(until, passes, rank)
          where rank <> $2 and until > now
            and case when passed_over[$2] >= ${PASSES} then passes >= ${PASSES} and rank < $2
                else passes >= ${PASSES} or rank < $2 end
        ) v
    ),
    decided as (
      select paced.*, case
        when opens - ${ms(AHEAD_MS)} > now then opens - ${ms(AHEAD_MS)}
        when alone_until > now then least(alone_until, now + gap * ${GRACE_GAPS})
        else rival end as come_back
      from paced
    ),
    taken as (
      update tributary.budgets b set
        per_second = rate,
        careful_until = case when is_careful then now + ${ms(CAREFUL_MS)} else d.careful_until end,
        next_at = gap + case when greatest(opens, now) - d.next_at > gap / 2 then greatest(opens, now) else d.next_at end,
        left_at = (greatest(opens, now) || d.left_at)[1:${MOST_CHAINS}],
        grants = d.grants + 1,
        probing = false,
        alone_until = case when d.probing then now + ${ms(PROBE_MS)} when $4 then now + ${ms(COLD_MS)} else d.alone_until end,
        passed_over = array(
          select case when rank = $2 then 0 when rank > $2 and until > now then passes + 1 else passes end
          from unnest(d.waits_until, d.passed_over) with ordinality as lane(until, passes, rank) order by rank)
      from decided d where b.key_hash = d.key_hash and come_back is null
    ),
    counted as (
      insert into tributary.budget_use as u (key_hash, minute, per_second, fresh, repair, backfill)
      select key_hash, date_trunc('minute', now), rate, ($2 = 1)::int, ($2 = 2)::int, ($2 = 3)::int
      from decided where come_back is null
      on conflict (key_hash, minute) do update set per_second = excluded.per_second,
        fresh = u.fresh + excluded.fresh, repair = u.repair + excluded.repair, backfill = u.backfill + excluded.backfill
    ),
    noted as (
      update tributary.budgets b set
        per_second = rate,
        careful_until = case when is_careful then now + ${ms(CAREFUL_MS)} else d.careful_until end,
        waits_until[$2] = greatest(d.waits_until[$2], come_back + grace)
      from decided d
      -- Whoever waits for the same moment in the same lane finds it written.
      where b.key_hash = d.key_hash and come_back is not null
        and (d.waits_until[$2] < come_back + grace or is_careful and d.careful_until < now + ${ms(CAREFUL_MS / 2)})
    )
    select come_back is null as granted, era, ${msOf("greatest(coalesce(come_back, opens) - now, interval '0')")} as wait, probing or $4 as alone,
      grants + 1 as number, ${msOf('now - statement_timestamp()')} as queued
    from decided`,
  values: [keyHash, rank, perSecond, isCold],
});

/** A request left late: the next of its chain is counted from when it really did. */
export const leftLate = (keyHash: string, grantNumber: number): Sql => ({
  text: `
    update tributary.budgets set left_at[(grants - $2)::int + 1] = clock_timestamp()
    where key_hash = $1 and grants - $2 < ${MOST_CHAINS}`,
  values: [keyHash, grantNumber],
});

/** The one that went alone came home: the others may go. */
export const endAlone = (keyHash: string, era: number): Sql => ({
  text: `
    update tributary.budgets set alone_until = 'epoch', pauses_in_vain = 0 where key_hash = $1 and era = $2`,
  values: [keyHash, era],
});

/** One pause for all. A 429 of a request that left in an earlier era belongs to the pause that ended that era. */
export const pauseAll = (keyHash: string, afterMs: number | undefined, era: number | undefined): Sql => ({
  text: `
    with ${HELD},
    judged as (
      select timed.*, ${WIDENING} as width_now, paused_until > now as is_paused,
        paused_until <= now and era <= coalesce($3::int, era) as is_new
      from timed
    ),
    paused as (
      update tributary.budgets b set
        era = j.era + is_new::int,
        pauses_in_vain = j.pauses_in_vain + is_new::int,
        widening = case when is_new then least(width_now * ${WIDEN}, ${WIDEST}) else j.widening end,
        probing = j.probing or is_new,
        alone_until = case when is_new then 'epoch' else j.alone_until end,
        paused_until = greatest(j.paused_until, now + coalesce(${ms('$2::float8')},
          ${ms(`least(${FIRST_PAUSE_MS} * 2 ^ (j.pauses_in_vain + is_new::int - 1), ${LONGEST_PAUSE_MS})`)}))
      from judged j where b.key_hash = j.key_hash and (is_paused or is_new)
    ),
    counted as (
      insert into tributary.budget_use as u (key_hash, minute, per_second, too_many, pauses)
      select key_hash, date_trunc('minute', now), per_second, 1, is_new::int from judged
      on conflict (key_hash, minute) do update set too_many = u.too_many + 1, pauses = u.pauses + excluded.pauses
    )
    select era + is_new::int as era from judged`,
  values: [keyHash, afterMs ?? null, era ?? null],
});
