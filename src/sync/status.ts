import { CAUGHT_UP, isFirstSync } from '../cursor/cursors.ts';
import type { Queryable } from '../cursor/database/index.ts';
import { instantOf, isoOf, raw, sql } from '../cursor/database/sql.ts';
import { ALSO_COMPLETE_LIST, COVERAGE, isoRanges, type RangePairs } from '../cursor/ledger.ts';
import { LAST_RUN, type RunRecord } from '../cursor/runs.ts';
import { readUpcoming, type Upcoming } from '../cursor/schedules.ts';
import { type Instant, toIso } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';
import { type CoverageState, coverageSpans } from '../model/window.ts';
import { groupBy } from '../sinks/files/group-by.ts';
import { BY_HAND } from './maintain/move-cursor.ts';
import { MOST_TRIES, restMs } from './windows-to-read.ts';

/** The status of a stream in a sink, as shown by `status`. Times are ISO in UTC; unknown values are null. See docs/operations.md. */
export interface StreamStatus {
  source: string;
  stream: SyncName;
  /** Null if nothing was ever written. */
  sink: string | null;
  since: string | null;
  /** Every event from `since` up to here that passes the filters is in the sink, except those set aside. */
  completeThrough: string | null;
  /** As in `country=US,CA&trigger=-qr`; null if every event is read. */
  filters: string | null;
  /** The number of unusable records in quarantine. */
  setAside: number;
  /** Ranges outside of `since … completeThrough` that are also complete: backfilled, or after a gap. */
  alsoComplete: Array<{ start: string; end: string }>;
  newestSeen: string | null;
  /** From the watermark to now. */
  lagSeconds: number | null;
  /** The stream has never caught up yet: it is necessarily far behind, and unread time does not count as a gap. */
  firstSync: boolean;
  /** From `since` to now, without holes; empty if nothing was ever written. */
  coverage: Array<{ start: string; end: string; state: CoverageState }>;
  /** Windows that were read and could not be proven. */
  uncertifiedWindows: number;
  /** The first few of them: why, how often they were tried, and when the next sync tries them again. */
  uncertified: Array<{ start: string; end: string; reason: string | null; tries: number; nextTryAt: string }>;
  /** Windows that failed so often that they are only tried once a day. The watermark stops before the first. */
  parkedWindows: number;
  /** Windows marked as complete without being read, by `cursor set --force`. */
  byHandWindows: number;
  /** The older name of `setAside`. */
  quarantined: number;
  /** Why the stream waits for a user: the service refused it, and a retry would not help. */
  parked: { reason: string; nextStep: string | null; since: string; nextProbeAt: string | null } | null;
  lastRun: LastRun | null;
  /** The last three syncs ended early without having read a row: the service or a sink does not respond. */
  failing: boolean;
  /** When the worker next reads the stream. Null if no worker has scheduled it. */
  nextRunAt: string | null;
}

type LastRun = Pick<RunRecord, 'id' | 'kind' | 'state' | 'startedAt' | 'finishedAt' | 'message'>;

/** Reads the status of all streams in the state, including those of sources that were removed from the config. */
export async function readStatus(state: Queryable): Promise<StreamStatus[]> {
  const rows = await state.query<StatusRow>(sql`
    select k.source, k.stream, c.sink, ${isoOf('c.complete_through')} as "completeThrough", ${isoOf('c.newest_seen')} as "newestSeen",
      ${isoOf('c.since')} as since, ${instantOf('c.since')} as "from", ${instantOf('now()')} as now,
      extract(epoch from now() - c.complete_through)::float8 as lag, c.sink is not null and ${raw(CAUGHT_UP)} as "caughtUp",
      (select count(*) from tributary.quarantine q where (q.source, q.stream) = (k.source, k.stream)) as quarantined,
      ${raw(COVERAGE.filters)} as filters, case when c.sink is not null then ${raw(ALSO_COMPLETE_LIST)} end as also,
      ${LAST_RUN} as "lastRun", ${FAILING} as failing
    from (select source, stream from tributary.cursors union select source, stream from tributary.runs) k
    left join tributary.cursors c on (c.source, c.stream) = (k.source, k.stream)
    left join lateral (
      select * from tributary.runs r where (r.source, r.stream) = (k.source, k.stream) order by started_at desc limit 1
    ) r on true
    order by k.source, k.stream, c.sink`);
  const windows = await readWindows(state);
  const upcoming = await readUpcoming(state);
  return rows.map((row) => toStatus(row, windows.get(feedOf(row)) ?? [], upcoming(row.source, row.stream)));
}

/** Transient faults are gone by the next poll or the one after it. */
const POLLS_OF_AN_OUTAGE = 3;

const FAILING = sql`(
  select count(*) = ${POLLS_OF_AN_OUTAGE} from (
    select state, rows_read from tributary.runs p
    where (p.source, p.stream) = (k.source, k.stream) and kind in ('sync', 're-sweep') and finished_at is not null
    order by started_at desc limit ${POLLS_OF_AN_OUTAGE}
  ) p where state = 'incomplete' and rows_read = 0)`;

interface LedgerWindow {
  start: Instant;
  end: Instant;
  certified: boolean;
  tries: number;
  note: string | null;
  read_at: Instant;
}

/** The limit of `uncertified`; the table has all of them. */
const MOST_LISTED = 20;

const feedOf = (row: { source: string; stream: string; sink: string | null }): string =>
  [row.source, row.stream, row.sink].join('/');

async function readWindows(state: Queryable): Promise<Map<string, LedgerWindow[]>> {
  const rows = await state.query<LedgerWindow & { source: string; stream: string; sink: string }>(sql`
    select source, stream, sink, ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end",
      state = 'certified' as certified, tries, note, ${instantOf('read_at')} as read_at
    from tributary.windows order by source, stream, sink, start_at`);
  return groupBy(rows, feedOf);
}

interface StatusRow
  extends Pick<StreamStatus, 'source' | 'stream' | 'sink' | 'since' | 'completeThrough' | 'newestSeen'>,
    Pick<StreamStatus, 'filters' | 'quarantined' | 'lastRun' | 'failing'> {
  from: Instant | null;
  now: Instant;
  lag: number | null;
  caughtUp: boolean;
  also: RangePairs | null;
}

function toStatus(
  { from, now, lag, caughtUp, also, ...row }: StatusRow,
  windows: readonly LedgerWindow[],
  { parked, nextRunAt }: Upcoming,
): StreamStatus {
  const firstSync = isFirstSync({ caughtUp, lagMs: lag === null ? null : lag * 1000 });
  // A listing is a snapshot, without a range of time.
  const isCovered = from !== null && row.stream !== 'links';
  const coverage = isCovered ? coverageSpans(windows, { start: from, end: now }, { isFirstSync: firstSync }) : [];
  const open = windows.filter(({ certified }) => !certified);
  return {
    ...row,
    setAside: row.quarantined,
    alsoComplete: isoRanges(also ?? []),
    lagSeconds: lag === null ? null : Math.round(lag),
    firstSync,
    coverage: coverage.map(({ start, end, state }) => ({ start: toIso(start), end: toIso(end), state })),
    uncertifiedWindows: open.length,
    uncertified: open.slice(0, MOST_LISTED).map(({ start, end, note, tries, read_at }) => ({
      ...{ start: toIso(start), end: toIso(end), reason: note, tries },
      nextTryAt: toIso(Math.max(now, read_at + restMs(tries))),
    })),
    parkedWindows: open.filter(({ tries }) => tries >= MOST_TRIES).length,
    byHandWindows: windows.filter(({ note }) => note === BY_HAND).length,
    parked: parked ?? refusedBy(row.lastRun),
    nextRunAt,
  };
}

/** Only a worker parks streams. Without one, a refused last run has the same meaning. */
const refusedBy = (run: LastRun | null): StreamStatus['parked'] =>
  run?.state === 'refused'
    ? { reason: run.message ?? 'the service refused', nextStep: null, since: run.startedAt, nextProbeAt: null }
    : null;

/** Recent use of a source's budget, by runs that ended within the last hour. Excludes listings of links, which have another budget. */
export interface SourceUse {
  source: string;
  requestsLastHour: number;
  tooManyRequestsLastHour: number;
  /** The configured rate; null if the config no longer has the source. */
  requestsPerSecond: number | null;
  /** Relative to the requests that the rate allows in an hour. */
  shareOfBudget: number | null;
}

export async function readUse(state: Queryable, perSecond: ReadonlyMap<string, number>): Promise<SourceUse[]> {
  const rows = await state.query<{ source: string; requests: number; refused: number }>(sql`
    select source, coalesce(sum(requests) filter (where finished_at > now() - interval '1 hour'), 0)::float8 as requests,
      coalesce(sum(too_many_requests) filter (where finished_at > now() - interval '1 hour'), 0)::float8 as refused
    from tributary.runs where stream <> 'links' group by source order by source`);
  return rows.map(({ source, requests, refused }) => {
    const rate = perSecond.get(source);
    return {
      source,
      requestsLastHour: requests,
      tooManyRequestsLastHour: refused,
      requestsPerSecond: rate ?? null,
      shareOfBudget: rate === undefined ? null : Number((requests / (rate * 3600)).toFixed(4)),
    };
  });
}
