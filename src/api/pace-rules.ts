/**
 * The rules of the pace, for the slots of one process and for those that all processes share.
 *
 * **Never one too many.** The requests of a budget of N a second form N chains: each one belongs to the chain of the N-th
 * before it and leaves a second and `MARGIN` after that one really left. A stretch of one second then holds at most one
 * request of each chain, N in all, however late single ones were and whichever overtook another. Only what nobody sees, the
 * way to the service, can bring two of a chain closer: the margin, 25 ms, is for that. (Measured with four processes on two
 * busy cores: 15 ms was too little now and then.)
 *
 * **Spaced.** A plan with even gaps keeps the chains apart. Lateness of up to half a gap does not move the
 * plan: counting each request from the one right before it would lose N times as much to timers that fire late.
 */
export const MARGIN = 0.025;

/** Of budgets above this, so many requests are chained, and the time between two of a chain is shorter. */
export const MOST_CHAINS = 16;
export const chainsOf = (perSecond: number): number => Math.min(Math.max(Math.floor(perSecond), 1), MOST_CHAINS);

/** After a 429 the gap is so much wider, and back to the plan's own this long after the pause. */
export const WIDEN = 1.5;
export const WIDEST = 4;
export const RESTORE_MS = 30_000;

/**
 * For a while after that, so much more than the margin is kept: the way to this service may vary by more than 25 ms, and back at the old
 * distance the next 429 would follow soon. (Simulated with 50 ms of jitter, against sliding seconds: 19 of them in ten minutes and
 * 0.77 of the budget without, 1 and 0.94 with it. One 429 that had another reason costs 18 seconds' worth of requests.)
 */
export const CAUTION = 0.03;
export const CAUTIOUS_MS = 600_000;

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

/** How long past the moment that it was told a waiting lane is still expected, in gaps: its process may be parsing a page. */
export const GRACE_GAPS = 0.25;
export const LEAST_GRACE_MS = 20;
