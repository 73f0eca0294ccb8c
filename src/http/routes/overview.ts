import { CAUGHT_UP, isFirstSync } from '../../cursor/cursors.ts';
import type { Queryable } from '../../cursor/database/index.ts';
import { isoOf, raw, sql } from '../../cursor/database/sql.ts';
import { ALSO_COMPLETE_LIST, COVERAGE, isoRanges, type RangePairs } from '../../cursor/ledger.ts';
import { LAST_RUN } from '../../cursor/runs.ts';
import { readUpcoming } from '../../cursor/schedules.ts';
import { INCIDENT_KINDS } from '../../jobs/incidents.ts';
import { toIso } from '../../model/instant.ts';
import { STREAM_NAMES, type SyncName } from '../../model/streams.ts';
import { anyStream, count, figure, listOf, moment, named, warnings, z } from '../answers.ts';
import { type ControlDeps, warningsOf } from '../dependencies.ts';
import { type Route, route } from '../route.ts';
import { LastRun } from './runs.ts';
import { Activity, readBackfillsUnderWay, readSyncsUnderWay } from './under-way.ts';

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
    .describe('every event from since up to this time that matches the filters is in the sink, except those set aside'),
  newestSeen: moment.nullable(),
  lagSeconds: figure.nullable(),
  uncertifiedWindows: count,
};

const FeedOverview = named('FeedOverview', {
  sink: z.string(),
  since: moment,
  ...progress,
  alsoComplete: listOf({ start: moment, end: moment }).describe(
    'proven outside of since … completeThrough: backfilled, or beyond a gap; end is exclusive',
  ),
});

const StreamOverview = named('StreamOverview', {
  source: z.string(),
  stream: anyStream.describe('links: the listing of all links, complete as of completeThrough'),
  configured: z.boolean().describe('false: it is no longer in the config'),
  since: moment.nullable().describe('where completeness is counted from, in every sink'),
  ...progress,
  filters: z.string().nullable().describe('such as country=US,CA&trigger=-qr; null: every event is read'),
  warnings,
  setAside: count.describe('records that could not be used and are kept in quarantine'),
  maxLagSeconds: figure.nullable(),
  firstSync: z.boolean().describe('it has not caught up once yet: until then, lag is expected and it is never late'),
  late: z.boolean().describe('further behind than maxLag'),
  parked: z.nullable(
    z.strictObject({
      reason: z.string(),
      nextStep: z.string().nullable(),
      since: moment,
      nextProbeAt: moment.nullable(),
    }),
  ),
  quarantined: count.describe('deprecated name of setAside'),
  rows: count.nullable().describe('in the sink that is furthest behind, by the ledger'),
  rowsToday: count.describe('new rows that runs wrote since midnight UTC'),
  lastRun: LastRun.nullable(),
  lastSuccessAt: moment.nullable(),
  nextRunAt: moment.nullable(),
  sinks: z.array(FeedOverview).describe('the stream is as far as its slowest sink'),
});

const Overview = named('Overview', {
  now: moment,
  version: z.string(),
  activities: z.array(Activity).describe('running syncs and backfills'),
  troubles: z.array(Trouble).describe('where action is needed, oldest first'),
  streams: z.array(StreamOverview).describe('the streams of the config, and those that are still in the state'),
});

export type Trouble = z.infer<typeof Trouble>;
type FeedOverview = z.infer<typeof FeedOverview>;
export type StreamOverview = z.infer<typeof StreamOverview>;
export type Overview = z.infer<typeof Overview>;

export const overviewRoutes = (deps: OverviewDeps): Route[] => [
  route('GET /api/overview', {
    summary: 'The state of every stream, and where action is needed.',
    answer: Overview,
    handle: () => readOverview(deps),
  }),
];

type OverviewDeps = Pick<ControlDeps, 'state' | 'streams' | 'listings' | 'version'>;

/** Runs every few seconds while a page is open, so it reads a handful of rows per stream, never the whole ledger. */
export async function readOverview({ state, streams, listings, version }: OverviewDeps): Promise<Overview> {
  const [feeds, known, troubles, upcoming, syncs, backfills] = await Promise.all([
    readFeeds(state),
    readStreams(state),
    readTroubles(state),
    readUpcoming(state),
    readSyncsUnderWay(state),
    readBackfillsUnderWay(state),
  ]);
  const names = new Map<string, { source: string; stream: SyncName }>();
  for (const { source, stream } of [...streams, ...listings, ...known])
    names.set(`${source}/${stream}`, { source, stream });
  return {
    now: toIso(Date.now()),
    version,
    activities: [...syncs, ...backfills],
    troubles,
    streams: [...names.values()].sort(byName).map(({ source, stream }): StreamOverview => {
      const isThis = (one: { source: string; stream: string }) => one.source === source && one.stream === stream;
      const events = streams.find(isThis);
      const configured = events ?? listings.find(isThis);
      const found = feeds.filter(isThis);
      const sinks = found.map(({ feed, also }) => ({ ...feed, alsoComplete: isoRanges(also) }));
      const { lastRun = null, lastSuccessAt = null, rowsToday = 0, quarantined = 0 } = known.find(isThis) ?? {};
      const { parked, nextRunAt } = upcoming(source, stream);
      // A stream is as far as its slowest sink.
      const [slowest] = sinks.toSorted((a, b) => ((a.completeThrough ?? '') < (b.completeThrough ?? '') ? -1 : 1));
      const { completeThrough = null, lagSeconds = null } = slowest ?? {};
      const maxLagSeconds = configured?.maxLagMs === undefined ? null : configured.maxLagMs / 1000;
      const lagMs = lagSeconds === null ? null : lagSeconds * 1000;
      const caughtUp = found.length > 0 && found.every((feed) => feed.caughtUp);
      const firstSync = isFirstSync({ caughtUp, lagMs }, configured?.maxLagMs);
      const rows = found.length === 0 ? null : Math.min(...found.map((feed) => feed.rows));
      return {
        source,
        stream,
        configured: configured !== undefined,
        since: newest(sinks.map(({ since }) => since)),
        filters: found[0]?.filters ?? null,
        warnings: events ? warningsOf([events]) : [],
        setAside: quarantined,
        completeThrough,
        newestSeen: newest(sinks.map(({ newestSeen }) => newestSeen)),
        lagSeconds,
        maxLagSeconds,
        firstSync,
        late: !firstSync && lagSeconds !== null && maxLagSeconds !== null && lagSeconds > maxLagSeconds,
        parked,
        quarantined,
        rows,
        // Rows that were lost and read again count as new twice. The ledger has the rows of a first sync only at its end.
        rowsToday: firstSync || rows === null ? rowsToday : Math.min(rowsToday, rows),
        uncertifiedWindows: Math.max(0, ...sinks.map(({ uncertifiedWindows }) => uncertifiedWindows)),
        lastRun,
        lastSuccessAt,
        nextRunAt,
        sinks,
      };
    }),
  };
}

interface FeedRow extends Pick<StreamOverview, keyof Named | 'filters'> {
  feed: Omit<FeedOverview, 'alsoComplete'>;
  caughtUp: boolean;
  also: RangePairs;
  rows: number;
}

const readFeeds = (state: Queryable): Promise<FeedRow[]> =>
  state.query<FeedRow>(sql`
    select c.source, c.stream, ${raw(COVERAGE.filters)} as filters, ${raw(CAUGHT_UP)} as "caughtUp",
      ${raw(ALSO_COMPLETE_LIST)} as also, coalesce(w.rows, 0)::bigint as rows,
      json_build_object('sink', c.sink, 'since', ${isoOf('c.since')}, 'completeThrough', ${isoOf('c.complete_through')},
        'newestSeen', ${isoOf('c.newest_seen')}, 'uncertifiedWindows', coalesce(w.n, 0), 'lagSeconds',
        case when c.complete_through is not null then greatest(0, round(extract(epoch from now() - c.complete_through))) end) as feed
    from tributary.cursors c left join (
      select source, stream, sink, count(*) filter (where state = 'uncertified') as n, sum(rows) as rows
      from tributary.windows group by 1, 2, 3
    ) w on (w.source, w.stream, w.sink) = (c.source, c.stream, c.sink)
    order by c.source, c.stream, c.sink`);

type StreamRow = Pick<StreamOverview, keyof Named | 'lastRun' | 'lastSuccessAt' | 'rowsToday' | 'quarantined'>;

/** The newest run of each stream, and the newest that succeeded. Uses an index, however long the history is. */
const readStreams = (state: Queryable): Promise<StreamRow[]> =>
  state.query<StreamRow>(sql`
    select k.source, k.stream, ${isoOf('d.finished_at')} as "lastSuccessAt", coalesce(t.rows, 0)::bigint as "rowsToday",
      (select count(*) from tributary.quarantine q where (q.source, q.stream) = (k.source, k.stream)) as quarantined, ${LAST_RUN} as "lastRun"
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

const readTroubles = (state: Queryable): Promise<Trouble[]> =>
  state.query<Trouble>(sql`
    select kind, source, stream, message, ${isoOf('opened_at')} as since from tributary.incidents
    where closed_at is null order by opened_at, id`);

/** ISO timestamps sort in the order of time. */
const newest = (moments: ReadonlyArray<string | null>): string | null => moments.toSorted().findLast(Boolean) ?? null;

type Named = Pick<StreamOverview, 'source' | 'stream'>;
const byName = (a: Named, b: Named): number =>
  a.source.localeCompare(b.source) || anyStream.options.indexOf(a.stream) - anyStream.options.indexOf(b.stream);
