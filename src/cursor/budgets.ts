import { createHash } from 'node:crypto';
import { type Budget, type BudgetState, type BudgetStore, createBudget, unused } from '../api/budget.ts';
import { isDoneWithin } from '../api/cancel.ts';
import { Cancelled, RetryLater } from '../model/errors.ts';
import { HOUR_MS } from '../model/window.ts';
import type { Database, Queryable, Session } from './database/index.ts';
import { instantOf, isoOf, raw, type Sql, sql } from './database/sql.ts';

/** The service counts them apart: events per second, and everything else per minute. */
export type BudgetKind = 'analytics' | 'standard';

export type SharedBudgets = ReturnType<typeof openSharedBudgets>;

/** The budgets that all processes on this state database share: one row per key and kind. */
export function openSharedBudgets(db: Database) {
  const connection = openBudgetConnection(db);
  return {
    of: (apiKey: string, perSecond: number, kind?: BudgetKind): Budget =>
      createBudget(perSecond, createSharedStore(connection, keyHashOf(apiKey, kind), perSecond)),
    close: () => connection.close(),
  };
}

/** How far off our idea of the database's clock may be, beyond the time of a question, for a slot to go by it. */
const CLOCK_OFF_MS = 50;

/**
 * A step decides by the row as it is known here, and writes it back unless another process has changed it; then it is tried again with
 * the row as it is. No lock is held in between, so nobody blocks others. The clock is the database's: two clocks keep no distance of 250 ms.
 */
function createSharedStore(connection: BudgetConnection, keyHash: string, perSecond: number): BudgetStore {
  /** The least that a question and its answer take. What they take above that is lateness. */
  let usualTrip = Number.POSITIVE_INFINITY;
  /** The database's clock minus our own, as of the last answer. */
  let offset = 0;
  let known: BudgetState | undefined;
  let sweptAt = Number.NEGATIVE_INFINITY;

  /** Creates the row where it is missing; and once in a while somebody must take away what is old. */
  async function prepare(): Promise<void> {
    await connection.query(
      sql`insert into tributary.budgets (key_hash, per_second) values (${keyHash}, ${perSecond}) on conflict do nothing`,
    );
    await connection.query(sql`delete from tributary.budget_use where minute < clock_timestamp() - interval '7 days'`);
    sweptAt = performance.now();
  }

  const ourNow = (): number => performance.now() + offset;

  async function ask(sql: Sql): Promise<Row | undefined> {
    const askedAt = performance.now();
    const [row] = await connection.query<Row>(sql);
    usualTrip = Math.min(performance.now() - askedAt, usualTrip * 1.1);
    if (row) offset = row.now - (askedAt + usualTrip);
    known = row && { ...unused(perSecond), ...row.state };
    return row;
  }

  return {
    now: ourNow,
    async change(step, counted) {
      if (performance.now() - sweptAt > HOUR_MS) await prepare();
      let seen: Row | undefined;
      for (;;) {
        if (!known) {
          seen = await ask(readRow(keyHash));
          if (!seen) await prepare();
          continue;
        }
        // A request leaves when the answer to this is here: by a slot that counts from now, each would be late.
        const [before, now] = [known, seen?.now ?? ourNow() + usualTrip];
        const [next, result] = step(before, now);
        const isNothing = next === before && counted !== 'too_many';
        // That there is nothing to do, as while everybody waits, is decided by the row as it is.
        if (isNothing && seen) return result;
        const clock = seen ? undefined : { now, mostMs: usualTrip + CLOCK_OFF_MS };
        seen = await ask(isNothing ? readRow(keyHash) : writeRow(keyHash, before, next, { counted, clock }));
        if (!seen?.saved) continue;
        known = next;
        return result;
      }
    },
  };
}

interface Row {
  state: Partial<BudgetState>;
  now: number;
  saved: boolean;
}

const NOW = instantOf('clock_timestamp()');

const readRow = (keyHash: string): Sql =>
  sql`select state, ${NOW} as now, false as saved from tributary.budgets where key_hash = ${keyHash}`;

interface Writing {
  counted: string | undefined;
  clock: { now: number; mostMs: number } | undefined;
}

/** Writes the row if it is still as the step found it, and `clock`, its time, about right. Brings it as it was. */
function writeRow(keyHash: string, before: BudgetState, after: BudgetState, { counted, clock }: Writing): Sql {
  const column = raw(counted ?? '');
  const books = sql`,
    counted as (
      insert into tributary.budget_use as u (key_hash, minute, per_second, ${column}, pauses)
      select key_hash, date_trunc('minute', clock_timestamp()), ${after.perSecond}::float8, 1, ${after.pauseCount - before.pauseCount}::int from saved
      on conflict (key_hash, minute) do update
      set per_second = excluded.per_second, ${column} = u.${column} + 1, pauses = u.pauses + excluded.pauses
    )`;
  const range = clock && `[${clock.now - CLOCK_OFF_MS},${clock.now + clock.mostMs}]`;
  return sql`
    with saved as (
      update tributary.budgets
      set state = ${JSON.stringify(after)}, per_second = ${after.perSecond}, paused_until = to_timestamp(${after.pausedUntil}::float8 / 1000)
      where key_hash = ${keyHash} and coalesce((state->>'version')::int, 0) = ${before.version}
        and ${NOW}::numeric <@ coalesce(${range}::numrange, numrange(null, null)) returning key_hash
    )${counted ? books : raw('')}
    select state, ${NOW} as now, exists (select from saved) as saved from tributary.budgets where key_hash = ${keyHash}`;
}

/** Identifies a key in the tables. The prefix makes it differ from a plain digest, which others may store too. */
export const keyHashOf = (apiKey: string, kind: BudgetKind = 'analytics'): string =>
  createHash('sha256')
    .update(`tributary ${kind === 'analytics' ? '' : `${kind} `}budget ${apiKey}`)
    .digest('hex')
    .slice(0, 32);

/** A connection of its own: in the pool it would wait behind transactions that load rows, and a late slot is lost. */
type BudgetConnection = ReturnType<typeof openBudgetConnection>;

const LONGEST_ANSWER_MS = 5000;

function openBudgetConnection(db: Database) {
  let session: Promise<Session> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  async function open(): Promise<Session> {
    const opened = await db.session();
    // A crash takes back slots that have passed since. Through a pooler the setting would reach commits of others.
    if (!(await opened.isPooled())) await opened.query(sql`set synchronous_commit = off`);
    return opened;
  }

  /** Without waiting: the end of a connection that hangs never comes. */
  function drop(lost: Promise<Session>): void {
    if (session === lost) session = undefined;
    lost.then((one) => one.close()).catch(() => {}); // It could not be opened, so there is nothing to close.
  }

  return {
    async query<T extends object>(sql: Sql): Promise<T[]> {
      // A request that ends after close would open a connection that nobody closes.
      if (isClosed) throw new Cancelled('the connection to the budget is closed');
      session ??= open();
      const current = session;
      // One query at a time on the connection. Each has its own timeout, however long those before it took.
      const answer = last.then(() => inTime(current.then((one) => one.query<T>(sql))));
      last = answer.catch(() => {}); // Its own caller hears of it.
      try {
        return await answer;
      } catch (error) {
        drop(current);
        if (!(error instanceof RetryLater)) throw error;
        // A person who reads of a database error in the middle of a sync should learn what it has to do with the service.
        throw new RetryLater(`the request budget, which all processes share, cannot be reached: ${error.message}`, {
          kept: 'everything; no request was sent without it',
          cause: error,
          next: error.next ?? 'run again once the state database answers',
        });
      }
    },
    async close(): Promise<void> {
      isClosed = true;
      if (session) await inTime(session.then((one) => one.close())).catch(() => {}); // Lost already: it is closed.
      session = undefined;
    },
  };
}

/** A server that is stopped, or behind a network that swallows packets, never answers. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  if (await isDoneWithin(LONGEST_ANSWER_MS, work)) return work;
  throw new RetryLater(`the state database did not answer within ${LONGEST_ANSWER_MS / 1000} s`, {
    next: 'check the server and the network to it; then run again',
  });
}

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

/** Without a request no row; the last interval is still running. Kept for seven days. `step`: minutes to a row. */
export function readBudgetUse(
  db: Queryable,
  { minutes, step }: Record<'minutes' | 'step', number>,
): Promise<BudgetUse[]> {
  // Intervals are counted back from the end of this minute.
  return db.query<BudgetUse>(sql`
    with clock as materialized (select clock_timestamp() as now),
    placed as (
      select u.*, now, (extract(epoch from date_trunc('minute', now) - minute) / 60)::int / ${step}::int as bucket
      from tributary.budget_use u, clock
      where minute > now - make_interval(mins => ${minutes})
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

/** How the budget of each key stands now. */
export const readBudgets = (db: Queryable) =>
  db.query<{ keyHash: string; perSecond: number; pausedSeconds: number | null }>(sql`
    select key_hash as "keyHash", per_second as "perSecond",
      case when paused_until > clock_timestamp() then extract(epoch from paused_until - clock_timestamp())::float8 end as "pausedSeconds"
    from tributary.budgets order by key_hash`);
