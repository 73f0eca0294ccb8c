import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DayState } from '../../src/http/api-types.ts';
import { dayRuns } from '../../src/http/routes/coverage.ts';
import { type CoverageSpan, DAY_MS } from '../../src/model/window.ts';

const BEGIN = Date.parse('2026-03-01T00:00:00Z');
const STATES = ['certified', 'uncertified', 'gap', 'open'] as const;

/** Consecutive spans of minutes to days. */
const spans = fc
  .array(fc.record({ ms: fc.integer({ min: 1, max: 4 * DAY_MS }), state: fc.constantFrom(...STATES) }), {
    maxLength: 20,
  })
  .chain((parts) =>
    fc.nat(2 * DAY_MS).map((offset) => {
      let start = BEGIN + offset;
      return parts.map(({ ms, state }): CoverageSpan => {
        const span = { start, end: start + ms, state };
        start = span.end;
        return span;
      });
    }),
  );

describe('days of a coverage', () => {
  it('have the worst state of their spans, and each is listed once', () => {
    fc.assert(
      fc.property(spans, fc.array(fc.nat(40), { maxLength: 5 }), (all, aside) => {
        const setAside = new Set(aside.map((day) => BEGIN + day * DAY_MS));
        const days = new Map<number, DayState>();
        for (const { date, count, state } of dayRuns(all, setAside))
          for (let i = 0; i < count; i++) {
            const day = Date.parse(date) + i * DAY_MS;
            expect(days.has(day)).toBe(false);
            days.set(day, state);
          }
        for (const [day, state] of days) {
          const inside = all.filter(({ start, end }) => start < day + DAY_MS && end > day).map((span) => span.state);
          expect(inside.length).toBeGreaterThan(0);
          const expected = inside.includes('gap')
            ? 'gap'
            : inside.includes('uncertified')
              ? 'uncertified'
              : setAside.has(day)
                ? 'quarantined'
                : inside.includes('open')
                  ? 'open'
                  : 'certified';
          expect(state).toBe(expected);
        }
        const covered =
          all.length === 0 ? 0 : Math.ceil((all.at(-1)?.end ?? 0) / DAY_MS) - Math.floor((all[0]?.start ?? 0) / DAY_MS);
        expect(days.size).toBe(covered);
      }),
    );
  });

  it('merge equal neighbours into one run', () => {
    const years = [{ start: BEGIN, end: BEGIN + 1000 * DAY_MS, state: 'certified' as const }];
    expect(dayRuns(years, new Set())).toEqual([{ date: '2026-03-01', count: 1000, state: 'certified' }]);
  });
});
