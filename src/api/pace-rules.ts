/** The rules of the pace, for the slots of one process and for those that all processes share. */

/**
 * At 4/s exactly, five requests stand in half of all sliding seconds. A budget of N puts N gaps of (1 + margin)/N between a
 * request and the one that must not share its second: whatever N is, the margin times one second is what lateness may take
 * before the service counts one too many. Of these 25 ms, slots themselves may be taken 10 late (`FORGIVEN_MS`, so that
 * timers and round trips cost no budget); 15 are left for the way to the service.
 */
export const MARGIN = 0.025;
export const FORGIVEN_MS = 10;

/** The distance between two requests. */
export const gapMs = (perSecond: number, widening: number): number => ((1 + MARGIN) / perSecond) * 1000 * widening;

/** After a 429 the gap is so much wider, and back to the plan's own this long after the pause. */
export const WIDEN = 1.5;
export const WIDEST = 4;
export const RESTORE_MS = 30_000;

/**
 * Where the service names no time: the first pause, doubled by each one that brought no success. The longest, and the time
 * to restore the gap, end within a minute of the moment at which another client stopped eating the budget.
 */
export const FIRST_PAUSE_MS = 2000;
export const LONGEST_PAUSE_MS = 16_000;

/** How long the others wait for the answer to a probe: its process may be gone. */
export const PROBE_MS = 5000;
/** On a cold connection a request arrives late, with the next one close behind it. The others wait for this handshake only. */
export const COLD_MS = 500;

/** A lane that waits lets so many of the more urgent ones pass, and then goes: with all three lanes full, 3 : 1 : 1. */
export const PASSES = 3;

/** How long past the moment that it was told a waiting lane is still expected: its process may be parsing a page. */
export const graceMs = (gap: number): number => Math.max(gap / 4, 20);
