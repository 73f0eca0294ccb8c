import type { Instant } from '../../model/instant.ts';
import { type CoverageSpan, DAY_MS, startOfDay } from '../../model/window.ts';
import { count, day as date, named, object, oneOf, type z } from '../answers.ts';
import { isoDay } from '../dependencies.ts';

/**
 * Consecutive days of one state. A day's state is the worst of its windows': gap (never read, though later ones were), uncertified
 * (read, not proven), quarantined (complete, but records were set aside), open (not reached yet), certified.
 */
export const DayRun = named(
  'DayRun',
  object({ date, count, state: oneOf(['gap', 'uncertified', 'quarantined', 'open', 'certified']) }),
);
export type DayRun = z.infer<typeof DayRun>;
export type DayState = DayRun['state'];

/** From worst to best: a day takes the worst state in it. */
const WORST_FIRST: readonly DayState[] = ['gap', 'uncertified', 'quarantined', 'open', 'certified'];

/**
 * The days of adjacent spans, with equal neighbours joined. `setAside` are the days that have
 * records in quarantine.
 */
export function dayRuns(spans: readonly CoverageSpan[], setAside: ReadonlySet<Instant>): DayRun[] {
  const first = spans[0];
  const last = spans.at(-1);
  if (!first || !last) return [];
  const runs: Array<{ from: Instant; to: Instant; state: DayState }> = [];
  let next = 0;
  for (let day = startOfDay(first.start); day < last.end; day += DAY_MS) {
    let state: DayState = setAside.has(day) ? 'quarantined' : 'certified';
    while ((spans[next]?.end ?? Number.POSITIVE_INFINITY) <= day) next++;
    for (let i = next; (spans[i]?.start ?? Number.POSITIVE_INFINITY) < day + DAY_MS; i++) {
      state = worse(state, spans[i]?.state ?? state);
    }
    const run = runs.at(-1);
    if (run?.state === state) run.to = day + DAY_MS;
    else runs.push({ from: day, to: day + DAY_MS, state });
  }
  return runs.map(({ from, to, state }) => ({ date: isoDay(from), count: (to - from) / DAY_MS, state }));
}

const worse = (a: DayState, b: DayState): DayState => (WORST_FIRST.indexOf(a) < WORST_FIRST.indexOf(b) ? a : b);
