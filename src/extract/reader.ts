import type { Lane } from '../api/limiter.ts';
import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { Window } from '../model/window.ts';

/**
 * Reads one stream of one source and proves what it read. The argument is in docs/extraction.md; its one rule:
 * a page is a snapshot of neighbours in time, so every row strictly between its oldest and its newest is on it.
 */
export interface Reader {
  /** From the newest event back to `floor`, newest first: what is fresh is delivered before anything is proven. */
  tail(request: TailRequest): AsyncGenerator<Slice, TailEnd>;
  /** A window from its start to its end. Slices cover it in order, without gaps; each can be committed on its own. */
  sweep(request: SweepRequest): AsyncGenerator<Slice, void>;
  profile(): Profile;
  /** The service's clock as of its last answer; ours before that. */
  serverNow(): Instant;
  /** How long the service took for its last answer; 0 before that. */
  answerMs(): number;
}

export interface Attendance {
  lane: Lane;
  signal: AbortSignal;
}

export interface TailRequest extends Attendance {
  /** Everything older than this is proven already; undefined where nothing is. */
  floor: Instant | undefined;
  /** Read back to here even so: events may have come late behind the floor. */
  lookback: Instant | undefined;
  /** The oldest instant that is wanted. */
  since: Instant;
}

export interface TailEnd {
  /** The walk met the floor: everything from there on has been delivered. */
  reached: boolean;
  far: FarEnd;
  /** The service's clock when the newest page was read: what came later may be missing from it. */
  serverNow: Instant;
}

/** What the newest pages said of everything there is. */
export interface FarEnd {
  /** Every row strictly newer than this has been delivered. */
  above: Instant | undefined;
  /** From here on there was no row at all. */
  emptyFrom: Instant | undefined;
}

export interface SweepRequest extends Attendance {
  window: Window;
  /** The oldest instant that may be asked for: what is known from there on shows where the newest page joins. */
  since?: Instant;
  far?: FarEnd;
}

/** Part of a stream, with every row that was found there. */
export interface Slice {
  /** What this slice speaks of; the tail's slices speak of nothing until its end is known. */
  window: Window | undefined;
  /** Proven complete. Never set where it was not proven. */
  certified: boolean;
  /** These rows are all that the service shows of the window now. Not set where some were delivered with other slices. */
  whole?: boolean;
  /** Why it could not be proven, or what was set aside. */
  note?: string;
  rows: readonly Row[];
  rejected: readonly Rejection[];
}

/** Something that could not be read, and why. */
export interface Rejection {
  record: unknown;
  reason: string;
}

/** What was noticed of this server: hints that save requests, never needed for the proof. */
export interface Profile {
  /** `day`: bounds are widened to whole UTC days. */
  granularity: 'exact' | 'day';
  /** The coarsest resolution of timestamps seen, in milliseconds. */
  tickMs: number;
  /** The most rows the service could put on one page. */
  pageRows: number;
}
