import { createHash } from 'node:crypto';
import { type Budget, type BudgetState, type BudgetStore, createBudget, unused } from '../api/budget.ts';
import { isDoneWithin } from '../api/cancel.ts';
import { Cancelled, RetryLater } from '../model/errors.ts';
import { HOUR_MS } from '../model/window.ts';
import type { Database, Queryable, Session } from './database/index.ts';
import { instantOf, isoOf, raw, type Sql, sql } from './database/sql.ts';

/** The service has separate rate limits: per second for events, per minute for everything else. */
export type BudgetKind = 'analytics' | 'standard';

export type SharedBudgets = ReturnType<typeof openSharedBudgets>;

/** Request budgets shared by all processes on this state database: one row per key and kind. */
export function openSharedBudgets(db: Database) {
  const connection = openBudgetConnection(db);
  return {
    of: (apiKey: string, perSecond: number, kind?: BudgetKind): Budget =>
      createBudget(perSecond, createSharedStore(connection, keyHashOf(apiKey, kind), perSecond)),
    close: () => connection.close(),
  };
}

/** A slot is valid only if our estimate of the database's clock was off by at most this, plus one round trip. */
const CLOCK_TOLERANCE_MS = 50;

/**
 * Optimistic locking: a step computes the next state from the cached row, and the write succeeds only if no other process has changed the
 * row; else the step is retried with the current row. Slots go by the database's clock: by two clocks, no distance of 250 ms would be kept.
 */
function createSharedStore(connection: BudgetConnection, keyHash: string, perSecond: number): BudgetStore {
  /** The lowest recent round trip. Anything above it is a delay. */
  let roundTripMs = Number.POSITIVE_INFINITY;
  /** The database's clock minus our own, as of the last answer. */
  let clockOffset = 0;
  let cached: BudgetState | undefined;
  let preparedAt = Number.NEGATIVE_INFINITY;

  /** Creates the row if it is missing, and deletes old usage: no other job does. */
  async function prepare(): Promise<void> {
    await connection.query(
      sql`insert into tributary.budgets (key_hash, per_second) values (${keyHash}, ${perSecond}) on conflict do nothing`,
    );
    await connection.query(sql`delete from tributary.budget_use where minute < clock_timestamp() - interval '7 days'`);
    preparedAt = performance.now();
  }

  const databaseNow = (): number => performance.now() + clockOffset;

  async function execute(sql: Sql): Promise<Row | undefined> {
    const sentAt = performance.now();
    const [row] = await connection.query<Row>(sql);
    roundTripMs = Math.min(performance.now() - sentAt, roundTripMs * 1.1);
    if (row) clockOffset = row.now - (sentAt + roundTripMs);
    cached = row && { ...unused(perSecond), ...row.state };
    return row;
  }

  return {
    now: databaseNow,
    async change(step, counted) {
      if (performance.now() - preparedAt > HOUR_MS) await prepare();
      let current: Row | undefined;
      for (;;) {
        if (!cached) {
          current = await execute(readRow(keyHash));
          if (!current) await prepare();
          continue;
        }
        // A request is sent once this query is answered, so slots count from then: counted from now, each would be late.
        const [before, now] = [cached, current?.now ?? databaseNow() + roundTripMs];
        const [next, result] = step(before, now);
        const isUnchanged = next === before && counted !== 'too_many';
        // Only the current row, not the cached one, can tell that there is nothing to do, as when all slots are taken.
        if (isUnchanged && current) return result;
        const clock = current ? undefined : { now, mostMs: roundTripMs + CLOCK_TOLERANCE_MS };
        current = await execute(isUnchanged ? readRow(keyHash) : writeRow(keyHash, before, next, { counted, clock }));
        if (!current?.saved) continue;
        cached = next;
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

interface WriteOptions {
  counted: string | undefined;
  clock: { now: number; mostMs: number } | undefined;
}

/** Writes the row if its version is unchanged and the time that the step assumed is about right. Returns the row as it was before. */
function writeRow(keyHash: string, before: BudgetState, after: BudgetState, { counted, clock }: WriteOptions): Sql {
  const column = raw(counted ?? '');
  const countUse = sql`,
    counted as (
      insert into tributary.budget_use as u (key_hash, minute, per_second, ${column}, pauses)
      select key_hash, date_trunc('minute', clock_timestamp()), ${after.perSecond}::float8, 1, ${after.pauseCount - before.pauseCount}::int from saved
      on conflict (key_hash, minute) do update
      set per_second = excluded.per_second, ${column} = u.${column} + 1, pauses = u.pauses + excluded.pauses
    )`;
  const range = clock && `[${clock.now - CLOCK_TOLERANCE_MS},${clock.now + clock.mostMs}]`;
  return sql`
    with saved as (
      update tributary.budgets
      set state = ${JSON.stringify(after)}, per_second = ${after.perSecond}, paused_until = to_timestamp(${after.pausedUntil}::float8 / 1000)
      where key_hash = ${keyHash} and coalesce((state->>'version')::int, 0) = ${before.version}
        and ${NOW}::numeric <@ coalesce(${range}::numrange, numrange(null, null)) returning key_hash
    )${counted ? countUse : raw('')}
    select state, ${NOW} as now, exists (select from saved) as saved from tributary.budgets where key_hash = ${keyHash}`;
}

/** Identifies a key in the tables. The prefix makes it differ from a plain digest of the key, which other systems may store. */
export const keyHashOf = (apiKey: string, kind: BudgetKind = 'analytics'): string =>
  createHash('sha256')
    .update(`tributary ${kind === 'analytics' ? '' : `${kind} `}budget ${apiKey}`)
    .digest('hex')
    .slice(0, 32);

/** A dedicated connection: in the pool, queries would wait behind transactions that load rows, and a late slot is lost. */
type BudgetConnection = ReturnType<typeof openBudgetConnection>;

const LONGEST_ANSWER_MS = 5000;

function openBudgetConnection(db: Database) {
  let session: Promise<Session> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  async function open(): Promise<Session> {
    const opened = await db.session();
    // A crash of the server loses only slots that have passed by then. Through a pooler, the setting would affect other clients.
    if (!(await opened.isPooled())) await opened.query(sql`set synchronous_commit = off`);
    return opened;
  }

  /** Does not wait for the close: a hanging connection never confirms it. */
  function discard(lost: Promise<Session>): void {
    if (session === lost) session = undefined;
    lost.then((one) => one.close()).catch(() => {}); // It could not be opened, so there is nothing to close.
  }

  return {
    async query<T extends object>(sql: Sql): Promise<T[]> {
      // A request that ends after close() would open a connection that nobody closes.
      if (isClosed) throw new Cancelled('the connection to the budget is closed');
      session ??= open();
      const current = session;
      // One query at a time on the connection. Each has its own timeout, which starts when the query before it has ended.
      const answer = last.then(() => withTimeout(current.then((one) => one.query<T>(sql))));
      last = answer.catch(() => {}); // The caller of that query handles the error.
      try {
        return await answer;
      } catch (error) {
        discard(current);
        if (!(error instanceof RetryLater)) throw error;
        // The message explains to the user why a database error stops requests to the service.
        throw new RetryLater(`the request budget, which all processes share, cannot be reached: ${error.message}`, {
          kept: 'everything; no request was sent without it',
          cause: error,
          next: error.next ?? 'run again once the state database answers',
        });
      }
    },
    async close(): Promise<void> {
      isClosed = true;
      if (session) await withTimeout(session.then((one) => one.close())).catch(() => {}); // Lost already: it is closed.
      session = undefined;
    },
  };
}

/** A stopped server, or one behind a network that drops packets, never answers. */
async function withTimeout<T>(work: Promise<T>): Promise<T> {
  if (await isDoneWithin(LONGEST_ANSWER_MS, work)) return work;
  throw new RetryLater(`the state database did not answer within ${LONGEST_ANSWER_MS / 1000} s`, {
    next: 'check the server and the network to it; then run again',
  });
}

interface BudgetUse {
  keyHash: string;
  /** Start of the interval, ISO in UTC. */
  from: string;
  perSecond: number;
  requests: number;
  byLane: { fresh: number; repair: number; backfill: number };
  tooManyRequests: number;
  pauses: number;
  /** Requests as a share of what the budget would have allowed in the whole interval, idle time included. */
  share: number;
}

/** Intervals without requests have no row; the last interval is still running. Kept for seven days. `step`: minutes per row. */
export function readBudgetUse(
  db: Queryable,
  { minutes, step }: Record<'minutes' | 'step', number>,
): Promise<BudgetUse[]> {
  // Intervals are counted backwards from the end of the current minute.
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

export const readBudgets = (db: Queryable) =>
  db.query<{ keyHash: string; perSecond: number; pausedSeconds: number | null }>(sql`
    select key_hash as "keyHash", per_second as "perSecond",
      case when paused_until > clock_timestamp() then extract(epoch from paused_until - clock_timestamp())::float8 end as "pausedSeconds"
    from tributary.budgets order by key_hash`);
