import type { CoverageWindows, DayRun, DayState } from '../../src/http/api-types.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const iso = (at: number): string => new Date(at).toISOString();
const day = (at: number): string => iso(at).slice(0, 10);

export interface Track {
  from: number;
  now: number;
  runDays: number;
  track: number;
  odd: readonly DayState[];
}

/** Calm, with something odd now and then; each track differs, so that nothing folds into one by luck. */
export function dayRuns({ from, now, runDays, track, odd }: Track): DayRun[] {
  const runs: DayRun[] = [];
  const last = Math.floor(now / DAY) * DAY;
  for (let at = Math.floor(from / DAY) * DAY, i = track; at < last; i++) {
    const count = Math.min(i % 2 === 0 ? runDays : 1, (last - at) / DAY);
    runs.push({
      date: day(at),
      count,
      state: i % 2 === 0 ? 'certified' : (odd[Math.floor(i / 2) % odd.length] ?? 'gap'),
    });
    at += count * DAY;
  }
  return [...runs, { date: day(last), count: 1, state: 'open' }];
}

/** Four windows of a day that agree with its state. */
export function windowsOfDay(
  runs: readonly DayRun[],
  date: string,
): Pick<CoverageWindows, 'from' | 'to' | 'windows' | 'quarantined'> {
  const start = Date.parse(date);
  const state = runs.find((run) => start < Date.parse(run.date) + run.count * DAY)?.state;
  const isProven = (i: number): boolean => state === 'certified' || state === 'quarantined' || i !== 2;
  return {
    from: iso(start),
    to: iso(start + DAY),
    windows: Array.from({ length: 4 }, (_, i) => ({
      start: iso(start + i * 6 * HOUR),
      end: iso(start + (i + 1) * 6 * HOUR),
      state: isProven(i) ? 'certified' : 'uncertified',
      rows: 1200 + 311 * i,
      readAt: iso(start + DAY),
      provenAt: isProven(i) ? iso(start + DAY + HOUR) : null,
      runId: '20261114T120000-00000001',
      tries: isProven(i) ? 0 : 2,
      note: isProven(i) ? null : 'the far end did not meet the chain',
    })),
    quarantined: state === 'quarantined' ? [17] : [],
  };
}
