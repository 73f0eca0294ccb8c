import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { completeThrough, DAY_MS, type Entry, gaps, overlay, type Window } from '../../src/model/window.ts';

/** Timelines of whole hours over three days, which can be checked hour by hour. */
const HOUR = DAY_MS / 24;
const LENGTH = 72;
const hours = Array.from({ length: LENGTH }, (_, i) => i);

const window = fc
  .tuple(fc.nat(LENGTH), fc.nat(LENGTH))
  .map(([a, b]): Window => ({ start: Math.min(a, b) * HOUR, end: Math.max(a, b) * HOUR }));

const reading = fc.record({
  window,
  certified: fc.boolean(),
  note: fc.option(fc.constant('slow'), { nil: undefined }),
});
const readings = fc.array(reading, { maxLength: 12 });

const covers = (span: Window, hour: number): boolean => span.start <= hour * HOUR && (hour + 1) * HOUR <= span.end;
const covered = (spans: readonly Window[], hour: number): boolean => spans.some((span) => covers(span, hour));

function replay(all: readonly { window: Window; certified: boolean; note: string | undefined }[]): Entry[] {
  return all.reduce<Entry[]>((entries, { window: span, certified, note }, i) => {
    const provenAt = certified ? i : undefined;
    return overlay(entries, { ...span, certified, note, rows: 24, readAt: i, provenAt, runId: `r${i}` });
  }, []);
}

describe('the ledger', () => {
  it('never loses certified time, and never forgets a reading', () => {
    fc.assert(
      fc.property(readings, (all) => {
        const entries = replay(all);
        const proven = entries.filter((entry) => entry.certified);
        for (const hour of hours) {
          expect(covered(proven, hour)).toBe(all.some((one) => one.certified && covers(one.window, hour)));
          expect(covered(entries, hour)).toBe(all.some((one) => covers(one.window, hour)));
        }
      }),
    );
  });

  it('holds ordered, non-empty, disjoint entries with a proof time exactly where certified', () => {
    fc.assert(
      fc.property(readings, (all) => {
        const entries = replay(all);
        entries.forEach((entry, i) => {
          expect(entry.start).toBeLessThan(entry.end);
          const next = entries[i + 1];
          if (next) expect(entry.end).toBeLessThanOrEqual(next.start);
          expect(entry.provenAt === undefined).toBe(!entry.certified);
          expect(entry.provenAt ?? 0).toBeLessThanOrEqual(entry.readAt);
        });
      }),
    );
  });

  it('has the newest reading that counts for each hour', () => {
    fc.assert(
      fc.property(readings, (all) => {
        const entries = replay(all);
        for (const hour of hours) {
          const entry = entries.find((one) => covers(one, hour));
          const met = all.flatMap((one, i) => (covers(one.window, hour) ? [{ ...one, i }] : []));
          const last = met.findLast((one) => one.certified) ?? met.at(-1);
          expect(entry?.note).toBe(last?.note);
          // An entry joined with its neighbours is as old as its oldest part.
          if (last?.certified) expect(entry?.provenAt).toBeLessThanOrEqual(last.i);
          if (last) expect(entry?.readAt).toBeGreaterThanOrEqual(last.i);
        }
      }),
    );
  });
});

describe('a count by hours confirms', () => {
  it('completeThrough', () => {
    fc.assert(
      fc.property(fc.array(window, { maxLength: 8 }), fc.nat(LENGTH - 1), (windows, since) => {
        let end = since;
        while (end < LENGTH && covered(windows, end)) end++;
        expect(completeThrough(windows, since * HOUR)).toBe(end > since ? end * HOUR : undefined);
      }),
    );
  });

  it('gaps', () => {
    fc.assert(
      fc.property(fc.array(window, { maxLength: 8 }), window, (windows, whole) => {
        const found = gaps(windows, whole);
        for (const hour of hours) expect(covered(found, hour)).toBe(covers(whole, hour) && !covered(windows, hour));
        found.forEach((gap, i) => {
          expect(gap.start).toBeLessThan(gap.end);
          const next = found[i + 1];
          if (next) expect(gap.end).toBeLessThan(next.start);
        });
      }),
    );
  });
});
