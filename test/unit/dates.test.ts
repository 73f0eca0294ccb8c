import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../src/model/instant.ts';
import { describeWindow, holds, parseDate, startOfDay } from '../../src/model/window.ts';

const NOW = Date.UTC(2026, 10, 14, 12);

describe('durations', () => {
  it.each<[string, number]>([
    ['250ms', 250],
    ['90s', 90_000],
    ['15m', 900_000],
    ['1h', 3_600_000],
    ['1.5h', 5_400_000],
    ['1.1h', 3_960_000],
    ['7d', 604_800_000],
    ['2w', 1_209_600_000],
    [' 7 d ', 604_800_000],
    ['0s', 0],
  ])('%s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', 'd', '7', '-7d', '7D', '7 days', '1y', '7d2h', '1e3s', 'Infinityd'])('%j is invalid', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });
});

describe('dates from the command line', () => {
  it.each<[string, number]>([
    ['2026-11-01', Date.UTC(2026, 10, 1)],
    ['2026-11-01T10:00Z', Date.UTC(2026, 10, 1, 10)],
    ['2026-11-01T10:00', Date.UTC(2026, 10, 1, 10)],
    ['2026-11-01T10:00+02:00', Date.UTC(2026, 10, 1, 8)],
    ['7d', NOW - 604_800_000],
    ['now', NOW],
    ['today', Math.floor(NOW / 86_400_000) * 86_400_000],
    ['yesterday', (Math.floor(NOW / 86_400_000) - 1) * 86_400_000],
    [' now ', NOW],
  ])('%s', (text, instant) => {
    expect(parseDate(text, NOW)).toBe(instant);
  });

  it.each([
    ['1mo', '2026-03-31T10:00:00Z', '2026-02-28T10:00:00Z'],
    ['1mo', '2026-01-15T00:00:00Z', '2025-12-15T00:00:00Z'],
    ['13mo', '2026-03-31T10:00:00Z', '2025-02-28T10:00:00Z'],
    ['12 mo', '2024-02-29T10:00:00Z', '2023-02-28T10:00:00Z'],
  ])('%s before %s is a calendar month earlier, or the end of a shorter one', (text, now, then) => {
    expect(parseDate(text, Date.parse(now))).toBe(Date.parse(then));
  });

  it.each(['', 'last week', '1mon', '2026-02-30', '2026-11', '999999999d'])('%j is invalid', (text) => {
    expect(parseDate(text, NOW)).toBeUndefined();
  });
});

describe('windows', () => {
  const window = { start: 10, end: 20 };

  it('include their start and exclude their end', () => {
    expect([9, 10, 19.999, 20].map((at) => holds(window, at))).toEqual([false, true, true, false]);
  });

  it('are shown in ISO', () => {
    expect(describeWindow(window)).toBe('[1970-01-01T00:00:00.010Z, 1970-01-01T00:00:00.020Z)');
  });

  it('begin the day of an instant at midnight UTC, before 1970 too', () => {
    expect(startOfDay(NOW)).toBe(Date.UTC(2026, 10, 14));
    expect(startOfDay(Date.UTC(2026, 10, 14))).toBe(Date.UTC(2026, 10, 14));
    expect(startOfDay(-1)).toBe(-86_400_000);
  });
});
