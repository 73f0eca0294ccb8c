import { describe, expect, it } from 'vitest';
import { cronFault, nextRun, periodOf, scheduleText } from '../../src/jobs/schedule.ts';

const at = (iso: string): number => Date.parse(iso);
const iso = (instant: number): string => new Date(instant).toISOString();

describe('an interval', () => {
  const text = scheduleText({ every: 60_000 }, 'main/clicks');

  it('has a fixed offset in the minute, for every process at any time', () => {
    const first = nextRun(text, at('2026-11-15T05:00:00Z'));
    for (const after of [first, first + 1, first + 59_999]) expect(nextRun(text, after)).toBe(first + 60_000);
    expect(nextRun(text, first - 1)).toBe(first);
  });

  it('spreads streams over the minute', () => {
    const places = Array.from({ length: 150 }, (_, i) => {
      const plan = scheduleText({ every: 60_000 }, `source${i}/clicks`);
      return Math.floor((nextRun(plan, 0) % 60_000) / 6000);
    });
    const perTenth = Array.from({ length: 10 }, (_, tenth) => places.filter((place) => place === tenth).length);
    // About fifteen each; without spreading, 150 and nine zeros.
    expect(Math.max(...perTenth)).toBeLessThan(30);
    expect(Math.min(...perTenth)).toBeGreaterThan(3);
  });
});

describe('a cron expression', () => {
  it('keeps its local hour when daylight saving time changes', () => {
    const text = scheduleText({ cron: '0 6 * * *', timezone: 'Europe/Berlin' }, 'x');
    // Summer time ends on 25 October 2026.
    const first = nextRun(text, at('2026-10-24T00:00:00Z'));
    const second = nextRun(text, first);
    expect([iso(first), iso(second)]).toEqual(['2026-10-24T04:00:00.000Z', '2026-10-25T05:00:00.000Z']);
  });

  it('gives the time between two runs', () => {
    expect(periodOf({ cron: '*/10 * * * *', timezone: 'UTC' })).toBe(600_000);
    expect(periodOf({ every: 1234 })).toBe(1234);
  });

  it.each([
    ['0 6 * *', 'must have five fields'],
    ['0 0 6 * * *', 'must have five fields'],
    ['61 6 * * *', 'is not a valid cron expression'],
    ['a b c d e', 'is not a valid cron expression'],
    ['0 0 30 2 *', 'is not a valid cron expression'],
  ])('refuses %s', (cron, why) => {
    expect(cronFault(cron, 'UTC')).toContain(why);
  });

  it('accepts what it can follow', () => {
    expect(cronFault('*/5 6-22 * * 1-5', 'Europe/Berlin')).toBeUndefined();
  });
});
