import { COVERAGE } from '../../cursor/ledger.ts';

/** All proven ranges of a cursor `c`, including those before `since` and after a gap: a multirange. */
export const completeRanges = (alsoComplete: string): string =>
  `${alsoComplete} + tstzmultirange(tstzrange(c.since, greatest(c.since, c.complete_through)))`;

export const dayRange = (date: string): string =>
  `tstzrange(${date}::timestamp at time zone 'UTC', (${date} + 1)::timestamp at time zone 'UTC')`;

const utcDay = (instant: string): string => `date_trunc('day', ${instant} at time zone 'UTC')`;

/**
 * The complete UTC days of `tributary.cursors c`, filtered by `of`, with the row counts of the ledger. Windows with rows are split at
 * midnight; for the few that are not (`window-rows.ts`), the rows per day are unknown: null.
 */
export const completeDays = (of: string): string => `
  with complete as (
    select c.source, c.stream, c.sink, ${completeRanges(COVERAGE.alsoComplete)} as ranges from tributary.cursors c where ${of}
  ),
  proven as (
    select w.*, ${utcDay('w.start_at')}::date as date, w.end_at <= (${utcDay('w.start_at')} + interval '1 day') at time zone 'UTC' as is_in_a_day
    from tributary.windows w join complete c on (c.source, c.stream, c.sink) = (w.source, w.stream, w.sink)
    where w.state = 'certified' and w.rows > 0
  ),
  counted as (select source, stream, date, sum(rows)::bigint as rows from proven where is_in_a_day group by 1, 2, 3)
  select c.source, c.stream, d.date::date as date,
    case when exists (
      select from proven p where not p.is_in_a_day and (p.source, p.stream) = (c.source, c.stream)
        and tstzrange(p.start_at, p.end_at) && ${dayRange('d.date::date')}
    ) then null else coalesce(n.rows, 0) end as rows
  from complete c
  cross join lateral unnest(c.ranges) r (range)
  cross join lateral generate_series(
    ${utcDay(`(lower(r.range) + interval '1 day' - interval '1 microsecond')`)}, ${utcDay('upper(r.range)')} - interval '1 day', interval '1 day') d (date)
  left join counted n on (n.source, n.stream, n.date) = (c.source, c.stream, d.date::date)`;
