import { describe, expect, it } from 'vitest';
import { coerce, type Kind, MISMATCH } from '../../src/model/columns.ts';

const INT64_MAX = 2n ** 63n - 1n;

describe('conversion to the kind of a column', () => {
  it.each<[Kind, unknown, unknown]>([
    ['text', 'a\0b', 'a\0b'],
    ['text', 5, '5'],
    ['text', 9_007_199_254_740_993n, '9007199254740993'],
    ['text', true, 'true'],
    ['integer', 5, 5],
    ['integer', '-5', -5],
    ['integer', '9007199254740993', 9_007_199_254_740_993n],
    ['integer', 5n, 5],
    ['integer', INT64_MAX, INT64_MAX],
    ['integer', -INT64_MAX - 1n, -INT64_MAX - 1n],
    ['integer', true, 1],
    ['boolean', true, true],
    ['boolean', 0, false],
    ['boolean', '1', true],
    ['boolean', 'false', false],
    ['timestamp', '2026-11-14T10:00:00Z', Date.UTC(2026, 10, 14, 10)],
    ['timestamp', 1_705_314_600, 1_705_314_600_000],
    ['json', 'text', 'text'],
    ['json', 0, 0],
    ['json', [1], [1]],
  ])('%s: %s', (kind, value, held) => {
    expect(coerce(kind, value)).toEqual(held);
  });

  it.each<[Kind, unknown]>([
    ['text', {}],
    ['text', []],
    ['integer', 1.5],
    ['integer', 1e20],
    ['integer', INT64_MAX + 1n],
    ['integer', -INT64_MAX - 2n],
    ['integer', '99999999999999999999'],
    ['integer', '5 cents'],
    ['integer', {}],
    ['boolean', 2],
    ['boolean', 'yes'],
    ['boolean', []],
    ['timestamp', 'soon'],
    ['timestamp', 0],
    ['timestamp', {}],
  ])('%s: %s does not fit', (kind, value) => {
    expect(coerce(kind, value)).toBe(MISMATCH);
  });

  it.each<Kind>(['text', 'integer', 'boolean', 'timestamp', 'json'])('%s: null, absent and "" are none', (kind) => {
    expect(coerce(kind, null)).toBeNull();
    expect(coerce(kind, undefined)).toBeNull();
    expect(coerce(kind, '')).toBe(kind === 'text' ? '' : null);
  });
});
