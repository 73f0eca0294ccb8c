import { type Budget, type BudgetState, type BudgetStore, createBudget, unused } from '../api/budget.ts';
import { RetryLater } from '../model/errors.ts';
import { forgetOldUse, keyHashOf } from './budget-use.ts';
import type { Database } from './database.ts';
import { createLine, type Line } from './line.ts';
import type { Sql } from './sql.ts';

/** The budgets that all processes on this state database share: one row per key. */
export interface SharedBudgets {
  of(apiKey: string, requestsPerSecond: number): Budget;
  close(): Promise<void>;
}

export function openSharedBudgets(db: Database): SharedBudgets {
  const line = explained(createLine(db));
  return {
    of: (apiKey, perSecond) => createBudget(perSecond, createSharedStore(line, keyHashOf(apiKey), perSecond)),
    close: () => line.close(),
  };
}

/** Who reads of a database in the middle of a sync wants to know what it has to do with the service. */
const explained = (line: Line): Line => ({
  ...line,
  async query<T extends object>(sql: Sql) {
    try {
      return await line.query<T>(sql);
    } catch (error) {
      if (!(error instanceof RetryLater)) throw error;
      throw new RetryLater(`the request budget, which all processes share, cannot be reached: ${error.message}`, {
        kept: 'everything; no request was sent without it',
        cause: error,
        next: error.next ?? 'run again once the state database answers',
      });
    }
  },
});

const HOUR_MS = 3_600_000;

/**
 * A step reads the row, decides, and writes it back if nobody else has in the meantime; else it begins again. No lock is held
 * from one statement to the next: a process that parses a page, or is stopped, between the two holds up nobody.
 *
 * The clock is the database's. Processes on several machines share no other; theirs may be minutes apart and may jump, and
 * a distance of 250 ms kept by two clocks is no distance.
 */
function createSharedStore(line: Line, keyHash: string, perSecond: number): BudgetStore {
  /** The least that a question and its answer take. What they take above that is lateness. */
  let usualTrip = Number.POSITIVE_INFINITY;
  /** The database's clock minus our own, as of the last answer. */
  let offset = 0;
  let sweptAt = Number.NEGATIVE_INFINITY;

  /** Creates the row where it is missing; and once in a while somebody must take away what is old. */
  async function prepare(): Promise<void> {
    await line.query(createRow(keyHash, perSecond));
    await line.query(forgetOldUse);
    sweptAt = performance.now();
  }

  async function read(): Promise<Row | undefined> {
    const askedAt = performance.now();
    const [row] = await line.query<Row>(readRow(keyHash));
    usualTrip = Math.min(performance.now() - askedAt, usualTrip * 1.1);
    if (row) offset = row.now - (askedAt + usualTrip);
    return row;
  }

  return {
    now: () => performance.now() + offset,
    async change(step, counted) {
      if (performance.now() - sweptAt > HOUR_MS) await prepare();
      for (;;) {
        const row = await read();
        if (!row) {
          await prepare();
          continue;
        }
        const state = { ...unused(perSecond), ...row.state };
        const [next, result] = step(state, row.now);
        if (next === state && counted !== 'too_many') return result;
        const [saved] = await line.query<object>(writeRow(keyHash, state, next, counted));
        if (saved) return result;
      }
    },
  };
}

interface Row {
  state: Partial<BudgetState>;
  now: number;
}

const createRow = (keyHash: string, perSecond: number): Sql => ({
  text: 'insert into tributary.budgets (key_hash, per_second) values ($1, $2) on conflict do nothing',
  values: [keyHash, perSecond],
});

const readRow = (keyHash: string): Sql => ({
  text: `
    select state, (extract(epoch from clock_timestamp()) * 1000)::float8 as now
    from tributary.budgets where key_hash = $1`,
  values: [keyHash],
});

/** With the books: a slot of a lane or a 429, and a pause that it began. */
function writeRow(keyHash: string, before: BudgetState, after: BudgetState, counted: string | undefined): Sql {
  const books = `,
    counted as (
      insert into tributary.budget_use as u (key_hash, minute, per_second, ${counted}, pauses)
      select key_hash, date_trunc('minute', clock_timestamp()), $4, 1, $6::int from saved
      on conflict (key_hash, minute) do update
      set per_second = excluded.per_second, ${counted} = u.${counted} + 1, pauses = u.pauses + excluded.pauses
    )`;
  return {
    text: `
      with saved as (
        update tributary.budgets set state = $3, per_second = $4, paused_until = to_timestamp($5::float8 / 1000)
        where key_hash = $1 and coalesce((state->>'version')::int, 0) = $2 returning key_hash
      )${counted ? books : ''}
      select 1 from saved`,
    values: [
      ...[keyHash, before.version, JSON.stringify(after), after.perSecond, after.pausedUntil],
      ...(counted ? [after.era - before.era] : []),
    ],
  };
}
