import { describe, expect, it } from 'vitest';
import { createPace } from '../../src/api/pace.ts';

function clocked(requestsPerSecond = 4) {
  let now = 1000;
  const pace = createPace(requestsPerSecond, () => now);
  return {
    pace,
    tick: (ms: number) => {
      now += ms;
    },
    /** Waits until the next start is allowed, starts, and returns how long that took. */
    next: () => {
      const waited = Math.max(0, pace.waitMs());
      now += waited;
      return { waited, era: pace.started() };
    },
  };
}

describe('the pace of a key', () => {
  it.each([2, 4, 8])('at %d per second: no more than that in any sliding second, and little less', (perSecond) => {
    const { pace, next } = clocked(perSecond);
    expect(pace.waitMs()).toBeLessThanOrEqual(0);
    const gaps = Array.from({ length: 20 }, next).map(({ waited }) => waited);
    for (const gap of gaps.slice(1)) {
      expect(gap * perSecond).toBeGreaterThan(1010);
      expect(gap * perSecond).toBeLessThan(1020);
    }
  });

  it('keeps the distance from a start that came late', () => {
    const { pace, next, tick } = clocked();
    next();
    tick(400);
    next();
    expect(pace.waitMs()).toBeGreaterThan(250);
  });

  it('keeps the distance from a request that was sent late, because the process was busy', () => {
    const { pace, next, tick } = clocked();
    next();
    tick(120);
    expect(pace.waitMs()).toBeLessThan(140);
    pace.sent();
    expect(pace.waitMs()).toBeGreaterThan(250);
  });

  it('is paused once by all the 429s of requests that were under way', () => {
    const { pace, next, tick } = clocked();
    const eras = [next().era, next().era, next().era];
    pace.tooMany(3000, eras[0]);
    tick(100);
    pace.tooMany(3000, eras[1]);
    expect(pace.pauses()).toBe(1);
    expect(pace.waitMs()).toBe(3000);
    // The third comes home long after the pause, when the probe has gone and succeeded.
    const probe = next();
    expect(probe.waited).toBe(3000);
    pace.succeeded(probe.era);
    tick(500);
    pace.tooMany(3000, eras[2]);
    expect(pace.pauses()).toBe(1);
    expect(pace.waitMs()).toBeLessThan(500);
  });

  it('goes alone with the first request and with the probe after a pause', () => {
    const { pace, next } = clocked();
    expect(pace.goesAlone()).toBe(true);
    const { era } = next();
    expect(pace.goesAlone()).toBe(false);
    pace.tooMany(1000, era);
    expect(pace.goesAlone()).toBe(true);
    next();
    expect(pace.goesAlone()).toBe(false);
  });

  it('widens the gap after a pause and restores it over successes', () => {
    const { pace, next } = clocked();
    next();
    const plan = next().waited;
    pace.tooMany(1000, 0);
    const probe = next();
    const widened = next().waited;
    expect(widened / plan).toBeCloseTo(1.5, 5);
    for (let i = 0; i < 10; i++) pace.succeeded(probe.era);
    next();
    expect(next().waited / plan).toBeCloseTo(1.25, 5);
    for (let i = 0; i < 100; i++) pace.succeeded(probe.era);
    next();
    expect(next().waited / plan).toBeCloseTo(1, 5);
  });

  it('without a time from the service, pauses longer with each probe that fails, within bounds', () => {
    const { pace, next } = clocked();
    const waits = Array.from({ length: 8 }, () => {
      pace.tooMany(undefined, next().era);
      return Math.round(pace.waitMs());
    });
    expect(waits).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    pace.succeeded(next().era);
    const { era } = next();
    pace.tooMany(undefined, era);
    expect(pace.waitMs()).toBe(2000);
  });
});
