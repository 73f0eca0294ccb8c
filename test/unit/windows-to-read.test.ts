import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, type Entry } from '../../src/model/window.ts';
import { joined, resweeps, shared, unproven } from '../../src/sync/windows-to-read.ts';

const HOUR = 3_600_000;
const DAY0 = Date.UTC(2026, 10, 10);
const entry = (start: number, end: number, more: Partial<Entry> = {}): Entry => ({
  start,
  end,
  certified: true,
  rows: 1,
  readAt: end,
  provenAt: end,
  runId: 'run',
  note: undefined,
  ...more,
});
const NOTHING = { start: 0, end: 0 };

describe('unproven windows', () => {
  test('are the windows without a certified entry', () => {
    const ledger = [entry(0, 10), entry(20, 30)];
    expect(unproven(ledger, { start: 0, end: 40 }, NOTHING, 40)).toEqual([
      { start: 10, end: 20 },
      { start: 30, end: 40 },
    ]);
  });

  test('include the lookback although it is proven', () => {
    expect(unproven([entry(0, 30)], { start: 0, end: 40 }, { start: 20, end: 30 }, 40)).toEqual([
      { start: 20, end: 40 },
    ]);
  });
});

describe('resweeps', () => {
  const yesterday = entry(DAY0, DAY0 + DAY_MS, { provenAt: DAY0 + DAY_MS });
  const windows = (now: number, provenAt = yesterday.provenAt): number =>
    resweeps([{ ...yesterday, provenAt }], now, undefined).length;

  test('are due for a day an hour after its end and two days later, once each', () => {
    const dayEnd = DAY0 + DAY_MS;
    expect(windows(dayEnd + HOUR - 1)).toBe(0);
    expect(windows(dayEnd + HOUR)).toBe(1);
    expect(windows(dayEnd + 2 * HOUR, dayEnd + HOUR)).toBe(0);
    expect(windows(dayEnd + 2 * DAY_MS + HOUR, dayEnd + HOUR)).toBe(1);
    expect(windows(dayEnd + 9 * DAY_MS, dayEnd + 2 * DAY_MS + HOUR)).toBe(0);
  });

  test('if configured, are due every night at two for all recent windows', () => {
    const old = entry(DAY0 - 30 * DAY_MS, DAY0 - 29 * DAY_MS, { provenAt: DAY0 + HOUR });
    const due = (now: number, days: number): number => resweeps([old], now, days * DAY_MS).length;
    expect(due(DAY0 + 2 * HOUR - 1, 90)).toBe(0);
    expect(due(DAY0 + 2 * HOUR, 90)).toBe(1);
    expect(due(DAY0 + 2 * HOUR, 7)).toBe(0);
  });

  test('exclude uncertified windows', () => {
    expect(resweeps([{ ...yesterday, certified: false, provenAt: undefined }], DAY0 + 9 * DAY_MS, 90 * DAY_MS)).toEqual(
      [],
    );
  });
});

describe('joined windows', () => {
  test('merge windows that touch or overlap, without gaining or losing an instant', () => {
    const window = fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 1, max: 9 }));
    fc.assert(
      fc.property(fc.array(window), (spans) => {
        const windows = spans.map(([start, length]) => ({ start, end: start + length }));
        const result = joined(windows);
        for (let at = 0; at < 70; at++) {
          const isIn = (list: readonly { start: number; end: number }[]): boolean =>
            list.some(({ start, end }) => at >= start && at < end);
          expect(isIn(result)).toBe(isIn(windows));
        }
        result.forEach((one, i) => {
          expect(one.start).toBeGreaterThan(result[i - 1]?.end ?? -1);
        });
      }),
    );
  });

  test('do not change their inputs', () => {
    const given = [
      { start: 0, end: 5 },
      { start: 3, end: 9 },
    ];
    joined(given);
    expect(given).toEqual([
      { start: 0, end: 5 },
      { start: 3, end: 9 },
    ]);
  });
});

describe('shared windows', () => {
  test('read common windows once, and those of one sink for it alone', () => {
    const shares = shared([
      { sink: 'old', windows: [{ start: 90, end: 100 }] },
      { sink: 'new', windows: [{ start: 0, end: 100 }] },
    ]);
    expect(shares).toEqual([
      { window: { start: 0, end: 90 }, sinks: new Set(['new']) },
      { window: { start: 90, end: 100 }, sinks: new Set(['old', 'new']) },
    ]);
  });

  test('assign every instant to exactly the sinks that need it', () => {
    const windows = fc
      .array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 15 })), { maxLength: 6 })
      .map((list) => list.map(([start, length]) => ({ start, end: start + length })));
    const needs = fc.tuple(windows, windows, windows);
    fc.assert(
      fc.property(needs, (lists) => {
        const all = lists.map((list, i) => ({ sink: `s${i}`, windows: list }));
        const shares = shared(all);
        for (let at = 0; at < 60; at++) {
          const wanted = all.filter(({ windows: list }) => list.some(({ start, end }) => start <= at && at < end));
          const given = shares.filter(({ window }) => window.start <= at && at < window.end);
          expect(given.length).toBeLessThanOrEqual(1);
          expect([...(given[0]?.sinks ?? [])].sort()).toEqual(wanted.map(({ sink }) => sink));
        }
      }),
    );
  });
});
