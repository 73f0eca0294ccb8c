import { type Grant, LANES, type Slots } from '../api/slots.ts';
import { RetryLater } from '../model/errors.ts';
import { type Asked, askForSlot, createBudget, endAlone, moveNext, pauseAll } from './budget-sql.ts';
import { forgetOldUse, keyHashOf } from './budget-use.ts';
import type { Database } from './database.ts';
import { createLine, type Line } from './line.ts';

/** The budgets that all processes on this state database share: one row per key. */
export interface SharedBudgets {
  slots(apiKey: string, requestsPerSecond: number): Slots;
  close(): Promise<void>;
}

export function openSharedBudgets(db: Database): SharedBudgets {
  const line = explained(createLine(db));
  return {
    slots: (apiKey, requestsPerSecond) => createSharedSlots(line, keyHashOf(apiKey), requestsPerSecond),
    close: () => line.close(),
  };
}

/** Who reads of a database in the middle of a sync wants to know what it has to do with the service. */
const explained = (line: Line): Line => ({
  ...line,
  query: (sql) =>
    line.query(sql).catch((error: unknown) => {
      if (!(error instanceof RetryLater)) throw error;
      throw new RetryLater(`the request budget, which all processes share, cannot be reached: ${error.message}`, {
        kept: 'everything; no request was sent without it',
        cause: error,
        ...(error.next && { next: error.next }),
      });
    }) as never,
});

/** A grant that reached the process later than this after it was made is passed on to the next one as lateness. */
const LATE_MS = 5;
/** At high rates half a gap is less than any process can promise. */
const AWAY_MS = 20;
const HOUR_MS = 3_600_000;

/** A 429 that could not be told to the others yet. */
interface Unsaid {
  afterMs: number | undefined;
  era: number | undefined;
}

function createSharedSlots(line: Line, keyHash: string, requestsPerSecond: number): Slots {
  /** When each grant was asked for and what that usually takes, on our own clock. */
  const asked = new WeakMap<Grant, number>();
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
    sweptAt = performance.now();
  }

  async function tellPause({ afterMs, era: leftIn }: Unsaid): Promise<void> {
    const [row] = await line.query<{ era: number }>(pauseAll(keyHash, afterMs, leftIn));
    if (row) seen(row.era);
  }

  /** What must be done before anything is asked for. */
  async function catchUp(): Promise<void> {
    if (performance.now() - sweptAt > HOUR_MS) await prepare();
    if (!unsaid) return;
    await tellPause(unsaid);
    unsaid = undefined;
  }

  /** Late by how much more than the way from the database usually takes. */
  const latenessOf = (askedAt: number): number => performance.now() - askedAt - usualTrip;

  return {
    async ask(lane, isCold) {
      await catchUp();
      const askedAt = performance.now();
      const sql = askForSlot(keyHash, LANES.indexOf(lane) + 1, requestsPerSecond, isCold);
      const [row] = await line.query<Asked>(sql);
      if (!row) {
        await prepare();
        return { granted: false, era, waitMs: 0 };
      }
      seen(row.era);
      if (!row.granted) return { granted: false, era: row.era, waitMs: row.wait ?? 0 };
      const leftAt = askedAt + row.queued;
      usualTrip = Math.min(performance.now() - leftAt, usualTrip * 1.1);
      // Away for so long that another may have left in the meantime: two would stand too close. One slot is lost.
      if (latenessOf(leftAt) > Math.max(row.gap / 2, AWAY_MS)) return { granted: false, era: row.era, waitMs: 0 };
      const grant: Grant = { granted: true, era: row.era, alone: row.alone, gapMs: row.gap };
      asked.set(grant, leftAt);
      return grant;
    },
    departed(grant) {
      if (latenessOf(asked.get(grant) ?? 0) < LATE_MS) return;
      // Recovery: none needed. The next one may leave a little early, and the margin of the pace takes that.
      line.query(moveNext(keyHash, grant.gapMs)).catch(() => {});
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
