import type { Instant } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import type { Stamped } from './answer.ts';

/** What was known before the first answer. */
export interface Prior {
  /** The newest event ever seen, unless it was seen to be gone. */
  newestSeen?: Instant | undefined;
  /** An earlier run proved something. */
  isProven?: boolean;
  /** The service refuses every start before this. */
  founded?: Instant | undefined;
  /** Windows that an earlier poll found empty. */
  empty?: readonly Window[];
  /** Short questions have shown that nothing newer than the newest row was there until then. */
  quietThrough?: Instant | undefined;
  /** A question that ended right after a row has shown it; one with an end far ahead has shown rows that one ending now hides. */
  keepsEnds?: boolean;
  reachesAhead?: boolean;
  /** Nothing younger than this is certified: events arrive late. */
  settleMs: number;
}

/** The result of admitting an answer as evidence. */
export type Admission =
  | { kind: 'counts'; sorted: readonly Stamped[] }
  | { kind: 'empty' | 'unordered' | 'foreign' }
  /** Rows between its edges that were seen before are missing. */
  | { kind: 'contradicts'; missing: readonly Stamped[] };
