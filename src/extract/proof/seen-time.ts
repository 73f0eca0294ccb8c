import type { Instant } from '../../model/instant.ts';
import { KnownTime } from './intervals.ts';
import type { SeenRows } from './seen-rows.ts';

/** The time in which every row is known, and a few of the rows that were shown. */
export class SeenTime extends KnownTime {
  protected readonly rows: SeenRows;
  protected newestSeen: Instant | undefined;

  constructor(rows: SeenRows, newestSeen: Instant | undefined) {
    super();
    this.rows = rows;
    this.newestSeen = newestSeen;
  }

  /** The longest range whose answers are whole, as far as is known. */
  wholeMs = (): number => this.rows.wholeMs;

  /** The newest row ever seen, if it is newer than that. */
  newerSeen = (newest: Instant): Instant | undefined =>
    this.newestSeen !== undefined && this.newestSeen > newest ? this.newestSeen : undefined;

  /** Times of all remembered rows between two instants, oldest first. */
  timesShown = (after: Instant, before: Instant): Instant[] => this.rows.timesShown(after, before);

  /** Times of a few seen rows before or after an instant, nearest first. */
  seenBefore = (at: Instant): Instant[] => this.rows.times((row) => row.at < at).sort((a, b) => b - a);
  seenAfter = (at: Instant): Instant[] => this.rows.times((row) => row.at > at).sort((a, b) => a - b);
}
