import { setTimeout as sleep } from 'node:timers/promises';
import { type Grant, LANES, type Slots } from '../api/slots.ts';
import { RetryLater } from '../model/errors.ts';
import { type Asked, askForSlot, createBudget, endAlone, leftLate, pauseAll } from './budget-sql.ts';
import { forgetOldUse, keyHashOf } from './budget-use.ts';
import type { Database } from './database.ts';
import { createLine, type Line } from './line.ts';
import type { Sql } from './sql.ts';

/** The budgets that all processes on this state database share: one row per key. */
export interface SharedBudgets {
  slots(apiKey: string, requestsPerSecond: number): Slots;
  close(): Promise<void>;
}

/** The clock is this process's own, for what it measures of itself; slots are counted on the database's. */
export function openSharedBudgets(db: Database, clock: () => number = () => performance.now()): SharedBudgets {
  const line = explained(createLine(db));
  return {
    slots: (apiKey, requestsPerSecond) => createSharedSlots(line, keyHashOf(apiKey), requestsPerSecond, clock),
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

/** A request that leaves later than this is reported late. */
const LATE_MS = 5;
/** Later than this, the next of its chain may have got its turn before the report comes: better not to leave at all. */
const AWAY_MS = 500;
const HOUR_MS = 3_600_000;

/** A 429 that could not be told to the others yet. */
interface Unsaid {
  afterMs: number | undefined;
  era: number | undefined;
}

function createSharedSlots(line: Line, keyHash: string, requestsPerSecond: number, clock: () => number): Slots {
  /** When each granted request should leave, on our own clock. */
  const granted = new WeakMap<Grant, { number: number; due: number }>();
  /** The least that a question and its answer take. What they take above that is lateness. */
  let usualTrip = Number.POSITIVE_INFINITY;
  let firstEra: number | undefined;
  let era = 0;
  let unsaid: Unsaid | undefined;
  let sweptAt = Number.NEGATIVE_INFINITY;

  function seen(now: number): void {
    firstEra ??= now;
    era = Math.max(era, now);
  }

  /** Creates the row where it is missing; and once in a while somebody must take away what is old. */
  async function prepare(): Promise<void> {
    await line.query(createBudget(keyHash, requestsPerSecond));
    await line.query(forgetOldUse);
    sweptAt = clock();
  }

  async function tellPause({ afterMs, era: leftIn }: Unsaid): Promise<void> {
    const [row] = await line.query<{ era: number }>(pauseAll(keyHash, afterMs, leftIn));
    if (row) seen(row.era);
  }

  /** What must be done before anything is asked for. */
  async function catchUp(): Promise<void> {
    if (clock() - sweptAt > HOUR_MS) await prepare();
    if (!unsaid) return;
    await tellPause(unsaid);
    unsaid = undefined;
  }

  return {
    async ask(lane, isCold) {
      await catchUp();
      const askedAt = clock();
      const sql = askForSlot(keyHash, LANES.indexOf(lane) + 1, requestsPerSecond, isCold);
      const [row] = await line.query<Asked>(sql);
      if (!row) {
        await prepare();
        return { granted: false, era, waitMs: 0 };
      }
      seen(row.era);
      usualTrip = Math.min(clock() - askedAt - row.queued, usualTrip * 1.1);
      if (!row.granted) return { granted: false, era: row.era, waitMs: row.wait };
      // The rest is slept on our own clock, from the moment at which the answer came.
      if (row.wait > 0) await sleep(Math.round(row.wait));
      const due = askedAt + row.queued + usualTrip + row.wait;
      // Recovery: ask again. One slot is lost.
      if (clock() - due > AWAY_MS) return { granted: false, era: row.era, waitMs: 0 };
      const grant: Grant = { granted: true, era: row.era, alone: row.alone };
      granted.set(grant, { number: row.number, due });
      return grant;
    },
    departed(grant) {
      const known = granted.get(grant);
      if (!known || clock() - known.due < LATE_MS) return;
      // Recovery: none needed. The next of its chain leaves a little early, and the margin is for that.
      line.query(leftLate(keyHash, known.number)).catch(() => {});
    },
    settled(grant) {
      // Recovery: the others wait until its time has passed.
      if (grant.alone) line.query(endAlone(keyHash, grant.era)).catch(() => {});
    },
    async tooMany(afterMs, grant) {
      const news = { afterMs, era: grant?.era };
      try {
        await tellPause(news);
      } catch {
        // Recovery: it is told before anything else is asked for. Until then nobody of this process gets a turn.
        unsaid = news;
      }
    },
    pauses: () => era - (firstEra ?? era),
  };
}
