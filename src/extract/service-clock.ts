import type { Instant } from '../model/instant.ts';

/** The service's clock as of its last answer: ours is not theirs. */
export interface ServiceClock {
  now(): Instant;
  /** What an answer said. */
  set(said: Instant): void;
}

/**
 * How much of the service's word is believed. A Date header that is ahead of us, on one of many machines behind one name perhaps, would have
 * time called complete that has not been yet. Where it is our clock that is slow, that costs time and no rows: complete is said a little later.
 */
export const believed = (said: Instant, ours: Instant): Instant => Math.min(said, ours);

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
  let skew: number | undefined;
  return {
    now: () => steady() + (skew ?? 0),
    set(said) {
      const now = believed(said, ours()) - steady();
      // Several machines answer behind one name: the slowest of them may not have seen yet what another calls past.
      skew = skew === undefined ? now : Math.min(skew, now);
    },
  };
}
