import type { Queryable } from '../../cursor/database/index.ts';
import { isoOf, sql } from '../../cursor/database/sql.ts';
import type { Track } from '../../cursor/ledger.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { type CoverageSpan, DAY_MS, startOfDay, type Window } from '../../model/window.ts';
import { count, day, listOf, moment, named, shortText, stream, z } from '../answers.ts';
import { isoDay } from '../dependencies.ts';

/**
 * Consecutive days of one state. A day's state is the worst of its windows': gap (never read, though later ones were), uncertified
 * (read, not proven), quarantined (complete, but records were set aside), open (not reached yet), certified.
 */
const WORST_FIRST = ['gap', 'uncertified', 'quarantined', 'open', 'certified'] as const;

export const DayRun = named('DayRun', { date: day, count, state: z.enum(WORST_FIRST) });
export type DayRun = z.infer<typeof DayRun>;
export type DayState = DayRun['state'];

/** The days that spans touch, with equal neighbours joined. `setAside` are the days that have records in quarantine. */
export function dayRuns(spans: readonly CoverageSpan[], setAside: ReadonlySet<Instant>): DayRun[] {
  const days = new Map<Instant, DayState>();
  for (const { start, end, state } of spans)
    for (let day = startOfDay(start); day < end; day += DAY_MS)
      days.set(day, worse(days.get(day) ?? (setAside.has(day) ? 'quarantined' : 'certified'), state));
  const runs: Array<{ from: Instant; to: Instant; state: DayState }> = [];
  for (const [day, state] of days) {
    const run = runs.at(-1);
    if (run?.state === state && run.to === day) run.to = day + DAY_MS;
    else runs.push({ from: day, to: day + DAY_MS, state });
  }
  return runs.map(({ from, to, state }) => ({ date: isoDay(from), count: (to - from) / DAY_MS, state }));
}

const worse = (a: DayState, b: DayState): DayState => (WORST_FIRST.indexOf(a) < WORST_FIRST.indexOf(b) ? a : b);

/** By the ledger: counting the rows themselves would read millions. How the rows of a window of several days are spread is not known. */
export const readDayRows = (state: Queryable, { source, stream }: Omit<Track, 'sink'>, { start, end }: Window) =>
  state.query<{ sink: string; date: string; rows: number | null }>(sql`
    select w.sink, to_char(d.day at time zone 'UTC', 'YYYY-MM-DD') as date,
      case when bool_and(w.start_at >= d.day and w.end_at <= d.day + interval '1 day') then sum(w.rows)::bigint end as rows
    from tributary.windows w
    cross join lateral generate_series(
      greatest(date_trunc('day', w.start_at, 'UTC'), ${toIso(start)}),
      least(w.end_at - interval '1 microsecond', ${toIso(end)}), interval '1 day'
    ) d (day)
    where w.source = ${source} and w.stream = ${stream} and w.rows > 0 and w.end_at > ${toIso(start)} and w.start_at < ${toIso(end)}
    group by w.sink, d.day order by d.day`);

export const EventRows = named('EventRows', {
  from: moment,
  to: moment,
  series: listOf({ source: shortText, stream, points: listOf({ at: moment, rows: count }) }).describe(
    'days without events have no point',
  ),
});
export type EventRows = z.infer<typeof EventRows>;

/** Sinks that have the same events count once. A window of several days counts for its first: its rows are not known by day. */
export function readEventRows(
  state: Queryable,
  { source, stream: name }: { source?: string | undefined; stream?: string | undefined },
  { start, end }: Window,
): Promise<EventRows['series']> {
  return state.query<EventRows['series'][number]>(sql`
    select source, stream, json_agg(json_build_object('at', ${isoOf('at')}, 'rows', rows) order by at) as points from (
      select source, stream, at, max(rows)::bigint as rows from (
        select source, stream, sink, date_trunc('day', start_at, 'UTC') as at, sum(rows) as rows from tributary.windows
        where rows > 0 and start_at >= ${toIso(start)} and start_at < ${toIso(end)}
          and (${source}::text is null or source = ${source}) and (${name}::text is null or stream = ${name})
        group by 1, 2, 3, 4
      ) by_sink group by 1, 2, 3
    ) by_day group by 1, 2 order by 1, 2`);
}
