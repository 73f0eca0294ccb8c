import { describe, expect, it } from 'vitest';
import { type Entry, overlay } from '../../src/model/window.ts';
import { MOST_TRIES, unproven } from '../../src/sync/windows-to-read.ts';

const HOUR = 3_600_000;
const entry = (start: number, end: number, certified: boolean, runId: string, readAt = 0): Entry => ({
  start,
  end,
  certified,
  rows: 1,
  readAt,
  provenAt: certified ? readAt : undefined,
  runId,
  note: undefined,
});

describe('a window that cannot be proven', () => {
  const afterRuns = (count: number): Entry[] =>
    Array.from({ length: count }, (_, i) => entry(10, 20, false, `run${i}`)).reduce(overlay, [] as Entry[]);

  it('counts each run that tried once', () => {
    expect(afterRuns(3)).toMatchObject([{ start: 10, end: 20, tries: 3 }]);
    expect(overlay(afterRuns(3), entry(12, 18, false, 'run2'))).toMatchObject([{ tries: 3 }]);
  });

  it('restarts its count when it was proven in between', () => {
    const proven = overlay(afterRuns(4), entry(10, 20, true, 'good'));
    expect(proven).toMatchObject([{ certified: true }]);
    expect(proven[0]?.tries).toBeUndefined();
  });

  it('is retried after an hour, five times, then once a day while others continue', () => {
    const whole = { start: 0, end: 30 };
    const again = { start: 0, end: 0 };
    const [before, after] = [afterRuns(MOST_TRIES - 1), afterRuns(MOST_TRIES)];
    expect(unproven(before, whole, again, HOUR / 2)).toEqual([
      { start: 0, end: 10 },
      { start: 20, end: 30 },
    ]);
    expect(unproven(before, whole, again, 2 * HOUR)).toEqual([whole]);
    expect(unproven(after, whole, again, 23 * HOUR)).toEqual([
      { start: 0, end: 10 },
      { start: 20, end: 30 },
    ]);
    expect(unproven(after, whole, again, 25 * HOUR)).toEqual([whole]);
  });
});
