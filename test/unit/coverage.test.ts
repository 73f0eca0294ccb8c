import { describe, expect, it } from 'vitest';
import { DAY_MS, type Entry, overlay } from '../../src/model/window.ts';

/** Examples of the rules; test/property/coverage.test.ts compares `completeThrough` and `gaps` with counting hour by hour. */

const entry = (start: number, end: number, more: Partial<Entry> = {}): Entry => {
  const certified = more.certified ?? true;
  return {
    start,
    end,
    certified,
    rows: 10,
    readAt: 1,
    provenAt: certified ? 1 : undefined,
    runId: 'r1',
    note: undefined,
    ...more,
  };
};
const spans = (entries: readonly Entry[]): [number, number, boolean][] =>
  entries.map(({ start, end, certified }) => [start, end, certified]);

describe('overlay', () => {
  it('merges neighbours of one day and one state', () => {
    const result = overlay([entry(0, 5, { rows: 7 })], entry(5, 9, { rows: 4, readAt: 2, provenAt: 2, runId: 'r2' }));
    expect(result).toEqual([entry(0, 9, { rows: 11, readAt: 2, provenAt: 1, runId: 'r2' })]);
  });

  it('keeps neighbours apart that differ in note, state or day', () => {
    expect(overlay([entry(0, 5)], entry(5, 9, { note: 'slow' }))).toHaveLength(2);
    expect(overlay([entry(0, 5)], entry(5, 9, { certified: false }))).toHaveLength(2);
    expect(overlay([entry(DAY_MS - 5, DAY_MS)], entry(DAY_MS, DAY_MS + 5))).toHaveLength(2);
    expect(overlay([entry(DAY_MS - 5, DAY_MS - 2)], entry(DAY_MS - 2, DAY_MS))).toHaveLength(1);
  });

  it('does not count the rows of an overlapping poll twice', () => {
    let entries: Entry[] = [entry(0, 1000, { rows: 1000 })];
    for (let end = 1010; end <= 2000; end += 10) entries = overlay(entries, entry(end - 100, end, { rows: 100 }));
    expect(spans(entries)).toEqual([[0, 2000, true]]);
    // One row a millisecond; a clipped part takes its share of them along.
    expect(entries[0]?.rows).toBe(2000);
  });
});
