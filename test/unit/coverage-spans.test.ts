import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { coverageBar } from '../../src/cli/coverage-bar.ts';
import { coverageSpans } from '../../src/model/window.ts';

const entry = (start: number, end: number, certified = true) => ({ start, end, certified });
const WHOLE = { start: 0, end: 100 };

describe('the state of a span of time', () => {
  it('is proven, unproven, skipped or not reached', () => {
    expect(coverageSpans([entry(0, 20), entry(20, 40), entry(50, 60, false), entry(60, 80)], WHOLE)).toEqual([
      { start: 0, end: 40, state: 'certified' },
      { start: 40, end: 50, state: 'gap' },
      { start: 50, end: 60, state: 'uncertified' },
      { start: 60, end: 80, state: 'certified' },
      { start: 80, end: 100, state: 'open' },
    ]);
    expect(coverageSpans([], WHOLE)).toEqual([{ ...WHOLE, state: 'open' }]);
    expect(coverageSpans([entry(-10, 200)], WHOLE)).toEqual([{ ...WHOLE, state: 'certified' }]);
  });

  it('has no hole and no overlap, whatever the ledger', () => {
    const ledger = fc
      .uniqueArray(fc.integer({ min: -20, max: 120 }), { maxLength: 12 })
      .chain((cuts) =>
        fc
          .array(fc.constantFrom('certified', 'uncertified', 'none'), { minLength: 12, maxLength: 12 })
          .map((kinds) => ({ cuts: cuts.sort((a, b) => a - b), kinds })),
      )
      .map(({ cuts, kinds }) =>
        cuts
          .slice(1)
          .flatMap((end, i) => (kinds[i] === 'none' ? [] : [entry(cuts[i] ?? 0, end, kinds[i] === 'certified')])),
      );
    fc.assert(
      fc.property(ledger, (entries) => {
        const spans = coverageSpans(entries, WHOLE);
        expect(spans[0]?.start).toBe(WHOLE.start);
        expect(spans.at(-1)?.end).toBe(WHOLE.end);
        for (const [i, span] of spans.slice(1).entries()) {
          expect(span.start).toBe(spans[i]?.end);
          expect(span.state).not.toBe(spans[i]?.state);
        }
        for (const { start, end, certified } of entries) {
          const at = Math.max(start, 0) + 0.5;
          if (at > Math.min(end, 100)) continue;
          expect(spans.find((span) => at > span.start && at < span.end)?.state).toBe(
            certified ? 'certified' : 'uncertified',
          );
        }
      }),
    );
  });
});

describe('the bar', () => {
  const bar = (entries: Parameters<typeof coverageSpans>[0], width = 10) =>
    coverageBar(coverageSpans(entries, WHOLE), width);

  it('shows time from left to right', () => {
    expect(bar([entry(0, 70)])).toBe('███████───');
    expect(bar([])).toBe('──────────');
  });

  it('never hides a gap, however small', () => {
    expect(bar([entry(0, 31), entry(31.2, 100)])).toBe('███·██████');
    expect(bar([entry(0, 31), entry(31, 31.1, false), entry(31.1, 100)])).toBe('███▒██████');
  });

  it('shows the newest minutes, which cannot be proven yet, in proportion', () => {
    expect(bar([entry(0, 99.9)])).toBe('██████████');
  });
});
