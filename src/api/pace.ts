import {
  CAUTION,
  CAUTIOUS_MS,
  COLD_MS,
  chainsOf,
  FIRST_PAUSE_MS,
  GRACE_GAPS,
  LEAST_GRACE_MS,
  LONGEST_PAUSE_MS,
  MARGIN,
  PASSES,
  PROBE_MS,
  RESTORE_MS,
  WIDEN,
  WIDEST,
} from './pace-rules.ts';
import { type Grant, LANES, type Slots } from './slots.ts';

const NEVER = Number.NEGATIVE_INFINITY;

/**
 * The slots of one process on its own, where there is no database to share them through. The same rules as the shared ones
 * (`cursor/budget-sql.ts`), in the same order; one suite tests both.
 *
 * An era is the time between two pauses. Requests under way when a pause begins bring their own 429s home later; by their
 * era they are known to belong to that pause, and do not start another.
 */
export function createPace(requestsPerSecond: number, now: () => number = () => performance.now()): Slots {
  const chains = chainsOf(requestsPerSecond);
  const chainMs = ((1000 * chains) / requestsPerSecond) * (1 + MARGIN);
  const lanes = LANES.map(() => ({ waitsUntil: NEVER, passedOver: 0 }));
  /** When the last request of each chain left, the next in turn first. */
  let leftAt: { at: number; grant?: Grant }[] = Array.from({ length: chains }, () => ({ at: NEVER }));
  let nextAt = NEVER;
  let pausedUntil = NEVER;
  let aloneUntil = NEVER;
  let widening = 1;
  let era = 0;
  let pausesInVain = 0;
  let isProbing = false;

  const cautionAt = (at: number): number => (widening > 1 && at - pausedUntil < CAUTIOUS_MS ? CAUTION : 0);
  const wideningAt = (at: number): number =>
    1 + Math.max((widening - 1) * Math.min(Math.max(1 - (at - pausedUntil) / RESTORE_MS, 0), 1), cautionAt(at));

  /** Until when a lane that goes before this one is expected. */
  function rivalUntil(rank: number, at: number): number | undefined {
    const isOverdue = (one: number): boolean => (lanes[one]?.passedOver ?? 0) >= PASSES;
    const goesFirst = (one: number): boolean =>
      isOverdue(rank) ? isOverdue(one) && one < rank : isOverdue(one) || one < rank;
    const rivals = lanes.filter(({ waitsUntil }, one) => one !== rank && waitsUntil > at && goesFirst(one));
    return rivals.length > 0 ? Math.max(...rivals.map(({ waitsUntil }) => waitsUntil)) : undefined;
  }

  function comeBackAt(rank: number, at: number, gap: number): number | undefined {
    const opensAt = Math.max(nextAt, (leftAt[0]?.at ?? NEVER) + chainMs * (1 + cautionAt(at)), pausedUntil);
    if (opensAt > at) return opensAt;
    if (aloneUntil > at) return Math.min(aloneUntil, at + gap * GRACE_GAPS);
    return rivalUntil(rank, at);
  }

  function take(rank: number, isCold: boolean, at: number, gap: number): Grant {
    const grant: Grant = { granted: true, era, alone: isProbing || isCold };
    nextAt = (at - nextAt > gap / 2 ? at : nextAt) + gap;
    leftAt = [...leftAt.slice(1), { at, grant }];
    if (isProbing) aloneUntil = at + PROBE_MS;
    else if (isCold) aloneUntil = at + COLD_MS;
    isProbing = false;
    for (const [one, lane] of lanes.entries()) {
      if (one === rank) lane.passedOver = 0;
      else if (one > rank && lane.waitsUntil > at) lane.passedOver++;
    }
    return grant;
  }

  return {
    async ask(lane, isCold) {
      const [rank, at] = [LANES.indexOf(lane), now()];
      const gap = (1000 / requestsPerSecond) * (1 + MARGIN) * wideningAt(at);
      const comeBack = comeBackAt(rank, at, gap);
      if (comeBack === undefined) return take(rank, isCold, at, gap);
      const own = lanes[rank];
      const grace = Math.max(gap * GRACE_GAPS, LEAST_GRACE_MS);
      if (own) own.waitsUntil = Math.max(own.waitsUntil, comeBack + grace);
      return { granted: false, era, waitMs: comeBack - at };
    },
    departed(grant) {
      const own = leftAt.find((one) => one.grant === grant);
      if (own) own.at = now();
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
