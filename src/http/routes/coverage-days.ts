import type { Queryable } from '../../cursor/database/index.ts';
import type { Track } from '../../cursor/ledger.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { type CoverageSpan, DAY_MS, startOfDay, type Window } from '../../model/window.ts';
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

interface DayRows {
  sink: string;
  date: string;
  rows: number | null;
}

/** By the ledger: counting the rows themselves would read millions. How the rows of a window of several days are spread is not known. */
export const readDayRows = (state: Queryable, { source, stream }: Omit<Track, 'sink'>, { start, end }: Window) =>
  state.query<DayRows>({
    text: `
      select w.sink, to_char(d.day at time zone 'UTC', 'YYYY-MM-DD') as date,
        case when bool_and(w.start_at >= d.day and w.end_at <= d.day + interval '1 day') then sum(w.rows)::bigint end as rows
      from tributary.windows w
      cross join lateral generate_series(
        greatest(date_trunc('day', w.start_at, 'UTC'), $3), least(w.end_at - interval '1 microsecond', $4), interval '1 day'
      ) d (day)
      where w.source = $1 and w.stream = $2 and w.rows > 0 and w.end_at > $3 and w.start_at < $4
      group by w.sink, d.day order by d.day`,
    values: [source, stream, toIso(start), toIso(end)],
  });
