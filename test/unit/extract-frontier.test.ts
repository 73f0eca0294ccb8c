import { describe, expect, test } from 'vitest';
import { joins, rowsAhead, sameRows, tiesAt } from '../../src/extract/frontier.ts';
import type { Row } from '../../src/model/flatten.ts';

const row = (at: number, id = `e${at}`): Row => ({ id, at, values: [], extra: null, contradictions: [], misfits: [] });
const page = (...instants: number[]): { rows: Row[] } => ({ rows: instants.map((at) => row(at)) });

describe('frontier', () => {
  test('a page joins only if it begins strictly behind: rows of the edge itself may be missing from it', () => {
    expect(joins({ at: 10, inclusive: false }, 9)).toBe(true);
    expect(joins({ at: 10, inclusive: false }, 10)).toBe(false);
    expect(joins({ at: 10, inclusive: false }, 11)).toBe(false);
    expect(joins({ at: 10, inclusive: false }, undefined)).toBe(false);
  });

  test('where the edge itself is known, a page may begin on it', () => {
    expect(joins({ at: 10, inclusive: true }, 10)).toBe(true);
    expect(joins({ at: 10, inclusive: true }, 11)).toBe(false);
  });

  test('rows ahead are those not known yet, up to the end of the window', () => {
    const ats = (inclusive: boolean): number[] =>
      rowsAhead(page(8, 9, 10, 11, 12), { at: 10, inclusive }, 12).map(({ at }) => at);
    expect(ats(false)).toEqual([10, 11]);
    expect(ats(true)).toEqual([11]);
  });

  test('two pages are the same if they show the same events, in any order', () => {
    expect(sameRows(page(1, 2, 3), page(3, 2, 1))).toBe(true);
    expect(sameRows(page(1, 2), page(1, 2, 3))).toBe(false);
    expect(sameRows(page(1, 2), page(1, 3))).toBe(false);
  });

  test('ties are counted at one instant', () => {
    expect(tiesAt({ rows: [row(1), row(2, 'a'), row(2, 'b')] }, 2)).toBe(2);
  });
});
