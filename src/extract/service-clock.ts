import type { Instant } from '../model/instant.ts';

/** The service's clock as of its last answer; it may differ from ours. */
export interface ServiceClock {
  now(): Instant;
  /** Records the time that an answer reported. */
  set(said: Instant): void;
}

/**
 * Never trusts a service's clock that is ahead of ours: such a Date header, perhaps of one machine among many behind one name, would
 * certify time that is not over. If instead our clock is slow, this only delays certification; no rows are lost.
 */
export const notAhead = (said: Instant, ours: Instant): Instant => Math.min(said, ours);

/** Our clock, ignoring any time that it was set back since this process began. */
export const ourNow = (): Instant => Math.max(Date.now(), steadyNow());

/** A monotonic clock: setting the clock of this machine does not move it. */
const steadyNow = (): Instant => Math.floor(performance.timeOrigin + performance.now());

/** Advances the service's last reported time at the speed of our clock: a sweep may take hours. */
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
      const now = notAhead(said, ours()) - steady();
      // Several machines may answer behind one name: the slowest may not have seen yet what another considers past.
      skew = skew === undefined ? now : Math.min(skew, now);
    },
  };
}
