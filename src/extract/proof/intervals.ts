import type { Instant } from '../../model/instant.ts';
import type { Interval } from './answer.ts';

/** The resolution of an instant. */
export const CLOSED_MS = 0.001;

/** RULE overlap. Intervals join where they overlap. Two that only touch leave the instant between them open. */
export function withInterval(intervals: readonly Interval[], { after, before }: Interval): Interval[] {
  const apart = intervals.filter((each) => each.before <= after || each.after >= before);
  const overlapping = intervals.filter((each) => each.before > after && each.after < before);
  const joined = {
    after: Math.min(after, ...overlapping.map((each) => each.after)),
    before: Math.max(before, ...overlapping.map((each) => each.before)),
  };
  return [...apart, joined].sort((a, b) => a.after - b.after);
}

/** Every row of an instant is known: joins the intervals on both sides of it. */
export function withInstant(intervals: readonly Interval[], at: Instant): Interval[] {
  const left = intervals.find(({ before }) => before === at);
  const right = intervals.find(({ after }) => after === at);
  const apart = intervals.filter((each) => each !== left && each !== right);
  const closed = { after: left?.after ?? at - CLOSED_MS, before: right?.before ?? at + CLOSED_MS };
  return [...apart, closed].sort((a, b) => a.after - b.after);
}

/** The time in which every row is known: intervals in order, none touching another. */
export class KnownTime {
  protected intervals: readonly Interval[] = [];

  /** How far every row from `start` on is known; undefined if none is. */
  through = (start: Instant): Instant | undefined => this.around(start)?.before;

  /** The interval that an instant lies in. */
  around = (at: Instant): Interval | undefined => this.intervals.find(({ after, before }) => after < at && at < before);

  /** The nearest interval that begins at or after an instant: reaching it closes a walk from there. */
  nextFrom = (at: Instant): Instant | undefined => this.intervals.find(({ after }) => after >= at)?.after;

  /** The interval that ends at an instant. */
  endingAt = (at: Instant): Interval | undefined => this.intervals.find(({ before }) => before === at);
}
