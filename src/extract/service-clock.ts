import type { Instant } from '../model/instant.ts';

/** The service's clock as of its last answer: ours is not theirs. */
export interface ServiceClock {
  now(): Instant;
  /** What an answer said, and the times of its events. */
  set(said: Instant, events: readonly Instant[]): void;
}

/** Two clocks that are kept at all are not further apart. */
const APART_MS = 15 * 60_000;

/**
 * How much of the service's word is believed. A Date header that jumps ahead, on one of many machines behind one name perhaps, would
 * have time called complete that has not been yet. So one that is far ahead of us is believed up to the newest event that shows for it.
 * Where it is our clock that is slow, that costs time and no rows: complete is said a little later.
 */
export function believed(said: Instant, ours: Instant, newest: Instant): Instant {
  return said <= ours + APART_MS ? said : Math.max(ours, newest);
}

/** The newest of the events that are not in the service's own future. */
export const newestBy = (said: Instant, events: readonly Instant[]): Instant =>
  events.reduce((newest, at) => (at <= said ? Math.max(newest, at) : newest), Number.NEGATIVE_INFINITY);

/** Our clock, as it would be if nobody had set it back since this process began. */
export const ourNow = (): Instant => Math.max(Date.now(), steadyNow());

/** It never jumps: whoever sets the clock of this machine does not move it. */
const steadyNow = (): Instant => Math.floor(performance.timeOrigin + performance.now());

/** Goes on from what the service last said at the speed of our clock: a sweep may take hours. */
export function createServiceClock({
  steady = steadyNow,
  ours = ourNow,
}: {
  steady?: () => Instant;
  ours?: () => Instant;
} = {}): ServiceClock {
  let skew = 0;
  let newest = Number.NEGATIVE_INFINITY;
  return {
    now: () => steady() + skew,
    set(said, events) {
      newest = Math.max(newest, newestBy(said, events));
      skew = believed(said, ours(), Math.min(said, newest)) - steady();
    },
  };
}
