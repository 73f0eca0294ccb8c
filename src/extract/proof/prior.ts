import type { Instant } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import type { Stamped } from './answer.ts';

/** What was known before the first answer came. */
export interface Prior {
  /** The newest event that was ever seen, unless it was seen to be gone. */
  newestSeen?: Instant | undefined;
  /** Something was proven by an earlier run. */
  isProven?: boolean;
  /** The service refuses every start before this. */
  founded?: Instant | undefined;
  /** Windows that an earlier poll found empty. */
  empty?: readonly Window[];
  /** Short questions have shown that nothing newer than the newest row was there until then. */
  quietThrough?: Instant | undefined;
  /** A question that ended right behind a row has shown it; one far ahead has shown what one at the present hides. */
  keepsEnds?: boolean;
  reachesAhead?: boolean;
  /** Nothing younger than this is complete: events arrive late. */
  settleMs: number;
}

/** What became of an answer. */
export type Admission =
  | { kind: 'counts'; sorted: readonly Stamped[] }
  | { kind: 'empty' | 'unordered' | 'foreign' }
  /** Rows that were seen between its edges before are not on it. */
  | { kind: 'contradicts'; missing: readonly Stamped[] };
