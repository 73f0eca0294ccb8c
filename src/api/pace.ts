import {
  COLD_MS,
  FIRST_PAUSE_MS,
  FORGIVEN_MS,
  gapMs,
  graceMs,
  LONGEST_PAUSE_MS,
  PASSES,
  PROBE_MS,
  RESTORE_MS,
  WIDEN,
  WIDEST,
} from './pace-rules.ts';
import { LANES, type Lane, type Slots } from './slots.ts';

const NEVER = Number.NEGATIVE_INFINITY;

/**
 * The slots of one process on its own, where there is no database to share them through. The same rules as the shared ones
 * (`cursor/budget-sql.ts`), in the same order; one suite tests both.
 *
 * An era is the time between two pauses. Requests under way when a pause begins bring their own 429s home later; by their
 * era they are known to belong to that pause, and do not start another.
 */
export function createPace(requestsPerSecond: number, now: () => number = () => performance.now()): Slots {
  const lanes = LANES.map(() => ({ waitsUntil: NEVER, passedOver: 0 }));
  let nextAt = NEVER;
  let pausedUntil = NEVER;
  let aloneUntil = NEVER;
  let widening = 1;
  let era = 0;
  let pausesInVain = 0;
  let isProbing = false;

  const wideningAt = (at: number): number =>
    1 + (widening - 1) * Math.min(Math.max(1 - (at - pausedUntil) / RESTORE_MS, 0), 1);

  /** Until when a lane that goes before this one is expected. */
  function rivalUntil(rank: number, at: number): number | undefined {
    const isOverdue = (one: number): boolean => (lanes[one]?.passedOver ?? 0) >= PASSES;
    const goesFirst = (one: number): boolean =>
      isOverdue(rank) ? isOverdue(one) && one < rank : isOverdue(one) || one < rank;
    const rivals = lanes.filter(({ waitsUntil }, one) => one !== rank && waitsUntil > at && goesFirst(one));
    return rivals.length > 0 ? Math.max(...rivals.map(({ waitsUntil }) => waitsUntil)) : undefined;
  }

  function comeBackAt(rank: number, at: number, gap: number): number | undefined {
    const opensAt = Math.max(nextAt, pausedUntil);
    if (opensAt > at) return opensAt;
    if (aloneUntil > at) return Math.min(aloneUntil, at + gap / 4);
    return rivalUntil(rank, at);
  }

  function take(rank: number, isCold: boolean, at: number, gap: number): boolean {
    nextAt = Math.max(nextAt, at - FORGIVEN_MS) + gap;
    if (isProbing) aloneUntil = at + PROBE_MS;
    else if (isCold) aloneUntil = at + COLD_MS;
    const isAlone = isProbing || isCold;
    isProbing = false;
    for (const [one, lane] of lanes.entries()) {
      if (one === rank) lane.passedOver = 0;
      else if (one > rank && lane.waitsUntil > at) lane.passedOver++;
    }
    return isAlone;
  }

  return {
    async ask(lane: Lane, isCold) {
      const [rank, at] = [LANES.indexOf(lane), now()];
      const gap = gapMs(requestsPerSecond, wideningAt(at));
      const comeBack = comeBackAt(rank, at, gap);
      if (comeBack === undefined) return { granted: true, era, alone: take(rank, isCold, at, gap), gapMs: gap };
      const own = lanes[rank];
      if (own) own.waitsUntil = Math.max(own.waitsUntil, comeBack + graceMs(gap));
      return { granted: false, era, waitMs: comeBack - at };
    },
    departed({ gapMs: gap }) {
      // A request that was started and then waited for a page to be parsed leaves late: the next one waits as long.
      nextAt = Math.max(nextAt, now() - FORGIVEN_MS + gap);
    },
    settled(grant) {
      if (!grant.alone || grant.era < era) return;
      aloneUntil = NEVER;
      pausesInVain = 0;
    },
    async tooMany(afterMs, grant) {
      const at = now();
      const isPaused = at < pausedUntil;
      if (!isPaused && grant !== undefined && grant.era < era) return;
      if (!isPaused) {
        widening = Math.min(wideningAt(at) * WIDEN, WIDEST);
        era++;
        pausesInVain++;
        isProbing = true;
        aloneUntil = NEVER;
      }
      const pause = afterMs ?? Math.min(FIRST_PAUSE_MS * 2 ** (pausesInVain - 1), LONGEST_PAUSE_MS);
      pausedUntil = Math.max(pausedUntil, at + pause);
    },
    pauses: () => era,
  };
}
