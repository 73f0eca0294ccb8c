import { type Instant, toIso } from '../model/instant.ts';
import type { Window } from '../model/window.ts';
import type { Queryable } from './database.ts';
import type { Track } from './ledger.ts';
import { instantOf } from './sql.ts';

/**
 * What is promised of a stream in a sink: every event from `since` up to `complete_through` that the filters let through is there,
 * except those set aside. These stand beside the watermark wherever it is shown; each is SQL about a cursor `c`.
 */
export const COVERAGE = {
  filters: `(select nullif(f.filters, '') from tributary.filters f where (f.source, f.stream) = (c.source, c.stream))`,
  setAside: `(select count(*) from tributary.quarantine q where (q.source, q.stream) = (c.source, c.stream))`,
  /** What is proven before `since`, and behind a hole: a multirange. */
  alsoComplete: `(
    select coalesce(range_agg(tstzrange(w.start_at, w.end_at)), '{}')
      - tstzmultirange(tstzrange(c.since, coalesce(c.complete_through, c.since)))
    from tributary.windows w
    where (w.source, w.stream, w.sink) = (c.source, c.stream, c.sink) and w.state = 'certified')`,
} as const;

/** The same ranges for a program: a list of `[start, end]`, in order. */
export const ALSO_COMPLETE_LIST = `(
  select coalesce(jsonb_agg(jsonb_build_array(${instantOf('lower(r)')}, ${instantOf('upper(r)')}) order by r), '[]')
  from unnest(${COVERAGE.alsoComplete}) r)`;

export type RangePairs = ReadonlyArray<readonly [Instant, Instant]>;

/** One stream in one sink, as the view `coverage` and `_coverage.json` have it. */
export interface CoverageRow {
  source: string;
  stream: string;
  since: Date;
  complete_through: Date | null;
  filters: string | null;
  set_aside: number;
  also_complete: ReadonlyArray<{ start: string; end: string }>;
  newest_seen: Date | null;
  updated_at: Date;
}

export async function readCoverage(db: Queryable, { source, stream, sink }: Track): Promise<CoverageRow | undefined> {
  const [row] = await db.query<Omit<CoverageRow, 'also_complete'> & { also_complete: RangePairs }>({
    text: `
      select source, stream, since, complete_through, ${COVERAGE.filters} as filters, ${COVERAGE.setAside} as set_aside,
        ${ALSO_COMPLETE_LIST} as also_complete, newest_seen, updated_at
      from tributary.cursors c where source = $1 and stream = $2 and sink = $3`,
    values: [source, stream, sink],
  });
  return row && { ...row, also_complete: isoRanges(row.also_complete) };
}

export const isoRanges = (pairs: RangePairs): Array<{ start: string; end: string }> =>
  pairs.map(([start, end]) => ({ start: toIso(start), end: toIso(end) }));

/** How many milliseconds of a range are proven in every one of some sinks. All are SQL; `sinks` selects a column `sink`. */
export const provenMs = (of: Record<'source' | 'stream' | 'start' | 'end' | 'sinks', string>): string => `(
  select coalesce(min(ms), 0) from (
    select round(coalesce(sum(extract(epoch from least(w.end_at, ${of.end}) - greatest(w.start_at, ${of.start})))
        filter (where w.sink is not null), 0) * 1000)::float8 as ms
    from (${of.sinks}) s left join tributary.windows w on (w.source, w.stream, w.sink) = (${of.source}, ${of.stream}, s.sink)
      and w.state = 'certified' and w.end_at > ${of.start} and w.start_at < ${of.end}
    group by s.sink) each_sink)`;

/** The share of a window that is proven in every one of these sinks: 1 only where all of it is. */
export async function certifiedShare(
  db: Queryable,
  { source, stream }: Pick<Track, 'source' | 'stream'>,
  sinks: readonly string[],
  { start, end }: Window,
): Promise<number> {
  const range = { start: '$4::timestamptz', end: '$5::timestamptz' };
  const [row] = await db.query<{ ms: number }>({
    text: `select ${provenMs({ source: '$1', stream: '$2', sinks: 'select unnest($3::text[]) as sink', ...range })} as ms`,
    values: [source, stream, sinks, toIso(start), toIso(end)],
  });
  return (row?.ms ?? 0) / (end - start);
}
