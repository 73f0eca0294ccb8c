import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { firstStep, nextStep, stepAt } from '../../src/extract/pages/page-steps.ts';

const limits = fc.integer({ min: 1, max: 1000 });

describe('steps of a page number and a limit', () => {
  test('a page covers limit × (page − 1) up to limit × page', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 200_000 }),
        limits,
        fc.integer({ min: 0, max: 100 }),
        (covered, max, overlap) => {
          for (const step of [firstStep(max), stepAt(covered, max), nextStep(covered, overlap, max)]) {
            if (!step) continue;
            expect(step.offset).toBe(step.limit * (step.page - 1));
            expect(step.end).toBe(step.offset + step.limit);
            expect(step.limit).toBeLessThanOrEqual(max);
          }
        },
      ),
    );
  });

  test('the next step overlaps what is covered, advances, and avoids failing rows', () => {
    const places = fc.tuple(fc.integer({ min: 1, max: 100_000 }), fc.integer({ min: 0, max: 100 }), limits, limits);
    fc.assert(
      fc.property(places, ([covered, overlap, max, low]) => {
        const step = nextStep(covered, overlap, max, low);
        if (!step) return;
        expect(step.offset).toBeLessThanOrEqual(covered - overlap);
        expect(step.end).toBeGreaterThan(covered);
        expect(step.offset).toBeGreaterThanOrEqual(low);
      }),
    );
  });

  test('at 1,000 rows a page, reading 100,000 rows costs hardly more than their pages', () => {
    let { end } = firstStep(1000);
    let pages = 1;
    while (end < 100_000) {
      const step = nextStep(end, 6, 1000);
      if (!step) throw new Error(`no step after ${end}`);
      end = step.end;
      pages += 1;
    }
    expect(pages).toBeLessThanOrEqual(105);
  });

  test('a step at a position starts exactly there', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100_000 }), limits, (offset, max) => {
        expect(stepAt(offset, max).offset).toBe(offset);
      }),
    );
  });

  test('there is no next step if the overlap leaves nothing to gain', () => {
    expect(nextStep(10, 10, 10)).toBeUndefined();
    expect(nextStep(1000, 995, 1000)).toBeUndefined();
  });
});
