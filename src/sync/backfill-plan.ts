import type { Instant } from '../model/instant.ts';
import { DAY_MS, startOfDay, type Window } from '../model/window.ts';

/** How a long window is shared out: among chains, and among jobs of a queue. Pure: from what was seen of the service. */

/** Rows a job of the queue holds: some minutes of work on any plan, so that a lost worker loses little. */
const ROWS_A_CHUNK = 100_000;
const MOST_CHUNKS = 400;

/** A chain waits for each answer, and then for its rows to be taken, before it can ask on: two keep each other's turns filled. */
const LEAST_SIDE_BY_SIDE = 2;
const MOST_SIDE_BY_SIDE = 8;
/** Room for answers that are slower than the one that was measured. */
const ROOM = 2;

/** Latency times budget: so many requests must be under way for the budget to be used up. */
export const sideBySide = (answerMs: number, requestsPerSecond: number): number =>
  Math.min(MOST_SIDE_BY_SIDE, Math.max(LEAST_SIDE_BY_SIDE, Math.ceil((answerMs / 1000) * requestsPerSecond * ROOM)));

/** Chunks for a queue: whole days, whatever was proven of them already. */
export function chunksOf(window: Window, density: number): Window[] {
  const days = Math.ceil((window.end - window.start) / DAY_MS);
  return cut(window, Math.max(daysFor(ROWS_A_CHUNK, density), Math.ceil(days / MOST_CHUNKS)));
}

/** A stream without rows is cut into months: a handful of requests each. */
const LONGEST_DAYS = 31;

const daysFor = (rows: number, density: number): number =>
  Math.min(LONGEST_DAYS, Math.max(1, Math.floor(rows / (density * DAY_MS))));

function cut({ start, end }: Window, days: number): Window[] {
  const pieces: Window[] = [];
  for (let at: Instant = start; at < end; ) {
    const next = Math.min(end, startOfDay(at) + days * DAY_MS);
    pieces.push({ start: at, end: next });
    at = next;
  }
  return pieces;
}
