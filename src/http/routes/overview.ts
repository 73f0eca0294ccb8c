import { CAUGHT_UP, isFirstSync } from '../../cursor/cursors.ts';
import type { Queryable } from '../../cursor/database/index.ts';
import { instantOf, isoOf, isoOrNull, raw, sql } from '../../cursor/database/sql.ts';
import { ALSO_COMPLETE_LIST, COVERAGE, isoRanges, type RangePairs } from '../../cursor/ledger.ts';
import { LAST_RUN } from '../../cursor/runs.ts';
import { readUpcoming } from '../../cursor/schedules.ts';
import { INCIDENT_KINDS } from '../../jobs/incidents.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { STREAM_NAMES, type SyncName } from '../../model/streams.ts';
import { count, figure, listOf, moment, named, track, warnings, z } from '../answers.ts';
import { type ControlDeps, warningsOf } from '../dependencies.ts';
import { type Route, route } from '../route.ts';
import { readBackfillsUnderWay } from './backfills.ts';
import { Activity, LastRun, readSyncsUnderWay } from './runs.ts';

const Trouble = named('Trouble', {
  kind: z.enum([...INCIDENT_KINDS]),
  source: z.string(),
  stream: z.enum([...STREAM_NAMES, 'links', '*']).describe('*: the whole source'),
  message: z.string(),
  since: moment,
});

const progress = {
  completeThrough: moment
    .nullable()
    .describe('every event from since up to here that the filters let through is in the sink, except those set aside'),
  newestSeen: moment.nullable(),
  lagSeconds: figure.nullable(),
  uncertifiedWindows: count,
};

const TrackOverview = named('TrackOverview', {
  sink: z.string(),
  since: moment,
  ...progress,
  alsoComplete: listOf({ start: moment, end: moment }).describe(
    'proven outside of since … completeThrough: backfilled, or beyond a gap; end is exclusive',
  ),
});

const StreamOverview = named('StreamOverview', {
  source: z.string(),
  stream: track.describe('links: the listing of all links, complete as of completeThrough'),
  configured: z.boolean().describe('false: it is no longer in the config'),
  since: moment.nullable().describe('where completeness is counted from, in every sink'),
  ...progress,
  filters: z.string().nullable().describe('as in country=US,CA&trigger=-qr; null: every event is read'),
  warnings,
  setAside: count.describe('records that could not be used and are kept in quarantine'),
  maxLagSeconds: figure.nullable(),
  firstSync: z.boolean().describe('it has not caught up yet, not even once: it is behind by nature, and never late'),
  late: z.boolean().describe('further behind than maxLag'),
  parked: z.nullable(
    z.strictObject({
      reason: z.string(),
      nextStep: z.string().nullable(),
      since: moment,
      nextProbeAt: moment.nullable(),
    }),
  ),
  quarantined: count.describe('the same as setAside, by its older name'),
  rows: count.nullable().describe('in the sink that is furthest behind, by the ledger'),
  rowsToday: count.describe('new rows that runs brought since midnight, UTC'),
  lastRun: LastRun.nullable(),
  lastSuccessAt: moment.nullable(),
  nextRunAt: moment.nullable(),
  sinks: z.array(TrackOverview).describe('the stream is as far as the slowest of them'),
});

const Overview = named('Overview', {
  now: moment,
  version: z.string(),
  activities: z.array(Activity).describe('syncs and backfills under way'),
  troubles: z.array(Trouble).describe('where action is needed, oldest first'),
  streams: z.array(StreamOverview).describe('the streams of the config, and those that are still in the state'),
});

export type Trouble = z.infer<typeof Trouble>;
type TrackOverview = z.infer<typeof TrackOverview>;
export type StreamOverview = z.infer<typeof StreamOverview>;
export type Overview = z.infer<typeof Overview>;

export const overviewRoute = (deps: ControlDeps): Route =>
  route('GET /api/overview', {
    summary: 'The state of every stream, and where action is needed.',
    role: 'read',
    answer: Overview,
    handle: () => readOverview(deps),
  });

type OverviewDeps = Pick<ControlDeps, 'state' | 'streams' | 'listings' | 'version'>;

/** Runs every few seconds while somebody watches: it reads a handful of rows for each stream, never the whole ledger. */
export async function readOverview({ state, streams, listings, version }: OverviewDeps): Promise<Overview> {
  const [tracks, known, quarantined, troubles, upcoming, syncs, backfills] = await Promise.all([
    readTracks(state),
    readStreams(state),
    readQuarantined(state),
    readTroubles(state),
    readUpcoming(state),
    readSyncsUnderWay(state),
    readBackfillsUnderWay(state),
  ]);
  const names = new Map<string, { source: string; stream: SyncName }>();
  for (const { source, stream } of [...streams, ...listings, ...known])
    names.set(`${source}/${stream}`, { source, stream });
  const now = Date.now();
  return {
    now: toIso(now),
    version,
    activities: [...syncs, ...backfills],
    troubles,
    streams: [...names.values()].sort(byName).map(({ source, stream }): StreamOverview => {
      const isThis = (one: { source: string; stream: string }) => one.source === source && one.stream === stream;
      const events = streams.find(isThis);
      const configured = events ?? listings.find(isThis);
      const sinks = tracks.filter(isThis);
      const history = known.find(isThis);
      const { parked, nextRunAt } = upcoming(source, stream);
      const completeThrough = lowest(sinks.map((track) => track.through));
      const lagSeconds = secondsSince(completeThrough, now);
      const maxLagSeconds = configured?.maxLagMs === undefined ? null : configured.maxLagMs / 1000;
      const lagMs = lagSeconds === null ? null : lagSeconds * 1000;
      const caughtUp = sinks.length > 0 && sinks.every((track) => track.caughtUp);
      const firstSync = isFirstSync({ caughtUp, lagMs }, configured?.maxLagMs);
      const rows = sinks.length === 0 ? null : Math.min(...sinks.map((track) => track.rows));
      const today = history?.today ?? 0;
      return {
        source,
        stream,
        configured: configured !== undefined,
        since: sinks.length === 0 ? null : toIso(Math.max(...sinks.map((track) => track.since))),
        filters: sinks[0]?.filters ?? null,
        warnings: events ? warningsOf([events]) : [],
        setAside: quarantined.find(isThis)?.n ?? 0,
        completeThrough: isoOrNull(completeThrough),
        newestSeen: isoOrNull(sinks.reduce<Instant | null>((most, { newest }) => later(most, newest), null)),
        lagSeconds,
        maxLagSeconds,
        firstSync,
        late: !firstSync && lagSeconds !== null && maxLagSeconds !== null && lagSeconds > maxLagSeconds,
        parked,
        quarantined: quarantined.find(isThis)?.n ?? 0,
        rows,
        // Rows that were lost and read again are new twice. The ledger knows the rows of a first sync only at its end.
        rowsToday: firstSync || rows === null ? today : Math.min(today, rows),
        uncertifiedWindows: Math.max(0, ...sinks.map(({ uncertified }) => uncertified)),
        lastRun: history?.last ?? null,
        lastSuccessAt: history?.success ?? null,
        nextRunAt,
        sinks: sinks.map((track): TrackOverview => toTrack(track, now)),
      };
    }),
  };
}

interface TrackRow {
  source: string;
  stream: SyncName;
  sink: string;
  since: Instant;
  through: Instant | null;
  newest: Instant | null;
  filters: string | null;
  caughtUp: boolean;
  also: RangePairs;
  uncertified: number;
  rows: number;
}

const readTracks = (state: Queryable): Promise<TrackRow[]> =>
  state.query<TrackRow>(sql`
    select c.source, c.stream, c.sink, ${instantOf('c.since')} as since, ${instantOf('c.complete_through')} as through,
      ${instantOf('c.newest_seen')} as newest, ${raw(COVERAGE.filters)} as filters, ${raw(CAUGHT_UP)} as "caughtUp",
      ${raw(ALSO_COMPLETE_LIST)} as also, coalesce(w.n, 0) as uncertified, coalesce(w.rows, 0)::bigint as rows
    from tributary.cursors c left join (
      select source, stream, sink, count(*) filter (where state = 'uncertified') as n, sum(rows) as rows
      from tributary.windows group by 1, 2, 3
    ) w on (w.source, w.stream, w.sink) = (c.source, c.stream, c.sink)
    order by c.source, c.stream, c.sink`);

interface StreamRow {
  source: string;
  stream: SyncName;
  last: LastRun | null;
  success: string | null;
  today: number;
}

/** The newest run of each stream, and the newest that succeeded; by index, however long the history is. */
const readStreams = (state: Queryable): Promise<StreamRow[]> =>
  state.query<StreamRow>(sql`
    select k.source, k.stream, ${isoOf('d.finished_at')} as success, coalesce(t.rows, 0)::bigint as today,
      ${LAST_RUN} as last
    from (
      select source, stream from tributary.cursors union select source, stream from tributary.schedules
    ) k
    left join lateral (
      select * from tributary.runs r where (r.source, r.stream) = (k.source, k.stream) order by started_at desc limit 1
    ) r on true
    left join lateral (
      select finished_at from tributary.runs r where (r.source, r.stream) = (k.source, k.stream)
        and r.state = 'done' and r.kind in ('sync', 're-sweep') order by started_at desc limit 1
    ) d on true
    left join lateral (
      select sum(rows_new) as rows from tributary.runs r where (r.source, r.stream) = (k.source, k.stream)
        and r.started_at >= date_trunc('day', now(), 'UTC')
    ) t on true`);

const readQuarantined = (state: Queryable): Promise<Array<{ source: string; stream: SyncName; n: number }>> =>
  state.query(sql`select source, stream, count(*) as n from tributary.quarantine group by source, stream`);

const readTroubles = (state: Queryable): Promise<Trouble[]> =>
  state.query<Trouble>(sql`
    select kind, source, stream, message, ${isoOf('opened_at')} as since from tributary.incidents
    where closed_at is null order by opened_at, id`);

const toTrack = ({ sink, since, through, newest, uncertified, also }: TrackRow, now: Instant): TrackOverview => ({
  sink,
  since: toIso(since),
  completeThrough: isoOrNull(through),
  newestSeen: isoOrNull(newest),
  lagSeconds: secondsSince(through, now),
  uncertifiedWindows: uncertified,
  alsoComplete: isoRanges(also),
});

/** Null if any sink has nothing proven: a stream is as far as its slowest sink. */
const lowest = (instants: ReadonlyArray<Instant | null>): Instant | null =>
  instants.length === 0 || instants.includes(null) ? null : Math.min(...instants.map((at) => at ?? 0));

const later = (a: Instant | null, b: Instant | null): Instant | null =>
  a === null || b === null ? (a ?? b) : Math.max(a, b);

const secondsSince = (at: Instant | null, now: Instant): number | null =>
  at === null ? null : Math.max(0, Math.round((now - at) / 1000));

type Named = Pick<StreamOverview, 'source' | 'stream'>;
const byName = (a: Named, b: Named): number =>
  a.source.localeCompare(b.source) || track.options.indexOf(a.stream) - track.options.indexOf(b.stream);
