/** When the next request of a key may start. It only keeps the time; the pacer does the waiting. */
export interface Pace {
  /** Zero or less: now. */
  waitMs(): number;
  /** A request starts. Returns the era it belongs to, which its outcome is reported with. */
  started(): number;
  /** The process came round to sending it. */
  sent(): void;
  succeeded(era: number): void;
  /** The service said 429. Without an era it is news from elsewhere. */
  tooMany(afterMs: number | undefined, era?: number): void;
  /** Whether the next request must be answered before another may start. */
  goesAlone(): boolean;
  pauses(): number;
}

/** At 4/s exactly, five requests stand in half of all sliding seconds; 1.5 % more (254 ms) puts none over. */
const MARGIN = 0.015;
const WIDEN = 1.5;
const WIDEST = 4;
/** Twenty answers take back one widening. */
const RESTORE = 0.025;
/** Where the service names no time: the first pause, doubled by each one that brought no success. */
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * An era is the time between two pauses. Requests under way when a pause begins bring their own 429s home later; by their
 * era they are known to belong to that pause, and do not start another.
 */
export function createPace(requestsPerSecond: number, now: () => number = () => performance.now()): Pace {
  const planGapMs = ((1 + MARGIN) / requestsPerSecond) * 1000;
  let widening = 1;
  let era = 0;
  let nextStart = 0;
  let pausedUntil = 0;
  let pausesInVain = 0;
  // The very first request goes alone as well: on a cold connection it arrives late, with the next one close behind it.
  let alone = true;

  return {
    waitMs: () => Math.max(nextStart, pausedUntil) - now(),
    goesAlone: () => alone,
    pauses: () => era,
    started() {
      // Counted from the real start. From the planned one, a start that came late (the process was busy parsing) would
      // have the next one too close behind it.
      nextStart = now() + planGapMs * widening;
      alone = false;
      return era;
    },
    sent() {
      // A request that was started and then waited for a page to be parsed leaves late: the next one waits as long.
      nextStart = Math.max(nextStart, now() + planGapMs * widening);
    },
    succeeded(startedIn) {
      if (startedIn < era) return;
      pausesInVain = 0;
      widening = Math.max(1, widening - RESTORE);
    },
    tooMany(afterMs, startedIn) {
      const paused = now() < pausedUntil;
      if (!paused && startedIn !== undefined && startedIn < era) return;
      if (!paused) {
        era++;
        pausesInVain++;
        widening = Math.min(widening * WIDEN, WIDEST);
        alone = true;
      }
      const pauseMs = afterMs ?? Math.min(FIRST_PAUSE_MS * 2 ** (pausesInVain - 1), LONGEST_PAUSE_MS);
      pausedUntil = Math.max(pausedUntil, now() + pauseMs);
    },
  };
}
