import { CAUGHT_UP, isFirstSync } from '../cursor/cursors.ts';
import type { Queryable } from '../cursor/database/index.ts';
import { instantOf, isoOf, raw, sql } from '../cursor/database/sql.ts';
import { ALSO_COMPLETE_LIST, COVERAGE, isoRanges, type RangePairs, SINK_CHANGED } from '../cursor/ledger.ts';
import { LAST_RUN, type RunRecord } from '../cursor/runs.ts';
import { readUpcoming, type Upcoming } from '../cursor/schedules.ts';
import { type Instant, toIso } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';
import { type CoverageState, coverageSpans, describeInstant, describeRange, type Window } from '../model/window.ts';
import { groupBy } from '../sinks/files/group-by.ts';
import { BY_HAND } from './maintain/move-cursor.ts';
import { MOST_TRIES, restMs } from './windows-to-read.ts';

/** How a stream stands in a sink, as `status` shows it. Times are ISO in UTC; what is unknown is null. docs/operations.md describes it. */
export interface StreamStatus {
  source: string;
  stream: SyncName;
  /** Null where nothing was ever written. */
  sink: string | null;
  since: string | null;
  /** Every event from `since` up to here that the filters let through is in the sink, except those set aside. */
  completeThrough: string | null;
  /** As in `country=US,CA&trigger=-qr`; null where every event is read. */
  filters: string | null;
  /** Records that could not be used and are kept in quarantine. */
  setAside: number;
  /** Ranges that are complete in the same sense outside of `since … completeThrough`: backfilled, or beyond a gap. */
  alsoComplete: Array<{ start: string; end: string }>;
  newestSeen: string | null;
  /** From the watermark to now. */
  lagSeconds: number | null;
  /** The stream has not caught up yet, not even once: it is far behind by nature, and what is not read yet is no gap. */
  firstSync: boolean;
  /** From `since` to now, without holes; empty where nothing was ever written. */
  coverage: Array<{ start: string; end: string; state: CoverageState }>;
  /** Windows that were read and could not be proven. */
  uncertifiedWindows: number;
  /** The first few of them: why, how often they were tried, and when the next sync tries them again. */
  uncertified: Array<{ start: string; end: string; reason: string | null; tries: number; nextTryAt: string }>;
  /** Windows that failed so often that they are tried only once a day. The watermark stops before the first. */
  parkedWindows: number;
  /** Windows that somebody called complete unread, by `cursor set --force`. */
  byHandWindows: number;
  /** The same as `setAside`, by its older name. */
  quarantined: number;
  /** Why the stream waits for a person: the service refused it, and asking again would not help. */
  parked: { reason: string; nextStep: string | null; since: string; nextProbeAt: string | null } | null;
  lastRun: LastRun | null;
  /** The last three syncs ended early without having read a row: the service or a sink does not answer. */
  failing: boolean;
  /** When the worker reads the stream again. Null where no worker has scheduled it. */
  nextRunAt: string | null;
}

export interface Need {
  source: string;
  stream: SyncName;
  kind: 'parked' | 'late' | 'uncertified' | 'failed' | 'sink_changed' | 'unsynced';
  message: string;
}

/** What alerts and `status --check` say of it: at length, and in brief. */
export interface Unmet extends Need {
  kind: 'late' | 'uncertified' | 'sink_changed';
  brief: string;
}

/** Where streams that the config names do not keep what it promises: late, not proven, changed by others. */
export async function findUnmet(
  db: Queryable,
  maxLagMs: ReadonlyMap<string, number | undefined>,
  sinks: readonly string[],
): Promise<Unmet[]> {
  const found = [...(await findLate(db, maxLagMs, sinks)), ...(await findUncertified(db, sinks))];
  return found.filter(({ source, stream }) => maxLagMs.has(`${source}/${stream}`));
}

/** By its slowest sink. A first sync is behind by nature: it is late where it has not moved for longer than `maxLag`. */
async function findLate(
  db: Queryable,
  maxLagMs: ReadonlyMap<string, number | undefined>,
  sinks: readonly string[],
): Promise<Unmet[]> {
  type Found = Pick<Need, 'source' | 'stream'> & { through: Instant | null; lag: number | null; still: number };
  // Without a worker nothing is scheduled.
  const rows = await db.query<Found & { caughtUp: boolean; why: string | null }>(sql`
    select t.source, t.stream, ${instantOf('c.through')} as through, coalesce(c.caught_up, false) as "caughtUp",
      ${raw(msSince('coalesce(c.through, s.created_at)'))} as lag, ${raw(msSince('greatest(s.created_at, c.read_at)'))} as still, r.message as why
    from (
      select source, stream from tributary.schedules union
      select source, stream from tributary.cursors where not exists (select from tributary.schedules)
    ) t left join tributary.schedules s using (source, stream) left join lateral (
      select case when count(c.complete_through) = ${sinks.length} then min(c.complete_through) end as through,
        count(*) = ${sinks.length} and bool_and(${raw(CAUGHT_UP)}) as caught_up, max(c.updated_at) as read_at
      from tributary.cursors c where (c.source, c.stream) = (t.source, t.stream) and c.sink = any(${sinks})
    ) c on true
    left join lateral (
      select message from tributary.runs r where (r.source, r.stream) = (t.source, t.stream) and finished_at is not null
      order by started_at desc limit 1
    ) r on true`);
  return rows.flatMap(({ source, stream, through, caughtUp, lag, still, why }) => {
    const maxLag = maxLagMs.get(`${source}/${stream}`);
    if (maxLag === undefined || lag === null || lag <= maxLag) return [];
    const isFirst = isFirstSync({ caughtUp, lagMs: lag }, maxLag);
    if (isFirst && still <= maxLag) return [];
    const where =
      through === null ? 'nothing is proven complete yet' : `complete only through ${describeInstant(through)}`;
    const what = isFirst ? `the first sync has not moved for ${minutes(still)}, ` : `${minutes(lag)} behind, `;
    const message = `${what}more than maxLag (${minutes(maxLag)}): ${where}${why ? `. The last run: ${why}` : ''}`;
    const brief = `${Math.round(lag / 60_000)} min behind, more than maxLag (${Math.round(maxLag / 60_000)} min)`;
    return [{ source, stream, kind: 'late', message, brief }];
  });
}

const msSince = (moment: string): string => `extract(epoch from clock_timestamp() - ${moment})::float8 * 1000`;

const minutes = (ms: number): string => {
  const count = Math.round(ms / 60_000);
  return count < 120 ? `${count} min` : `${Math.round(count / 60)} h`;
};

/** Two tries, an hour apart, could not prove the window: somebody should know. */
const STAYS_AFTER_TRIES = 2;

/** Windows that no reading has proven for a while; and, at once, those that a sink held and does not hold any more. */
async function findUncertified(db: Queryable, sinks: readonly string[]): Promise<Unmet[]> {
  type Found = Window & Pick<Need, 'source' | 'stream'> & { note: string | null; all: number; changed: boolean };
  const rows = await db.query<Found>(sql`
    select distinct on (source, stream, changed) source, stream, note, changed,
      count(*) over (partition by source, stream, changed) as all,
      ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end"
    from (select *, starts_with(note, ${SINK_CHANGED}) is true as changed from tributary.windows where state = 'uncertified') w
    where (tries >= ${STAYS_AFTER_TRIES} or changed) and sink = any(${sinks})
    order by source, stream, changed, start_at`);
  return rows.map(({ source, stream, note, all, changed, ...window }) => {
    const where = `${describeRange(window)}${all > 1 ? ` and ${all - 1} more` : ''}`;
    const brief = changed ? `${note?.slice(SINK_CHANGED.length)}` : `windows that two runs could not prove: ${all}`;
    const why = changed ? `: ${brief}` : ` could not be proven complete${note ? `: ${note}` : ''}`;
    return { source, stream, kind: changed ? 'sink_changed' : 'uncertified', message: `${where}${why}`, brief };
  });
}

/** Where action is needed, of the streams that the config names; the same with several sinks is told once. */
export function needsOf(
  streams: readonly StreamStatus[],
  unmet: readonly Unmet[],
  maxLagMs: ReadonlyMap<string, unknown>,
): Need[] {
  const refused = streams.flatMap(
    ({ source, stream, parked, lastRun, failing }): Array<Need | false> => [
      parked !== null && { source, stream, kind: 'parked', message: parked.reason },
      (lastRun?.state === 'failed' || failing) && {
        ...{ source, stream, kind: 'failed', message: lastRun?.message ?? 'the last run failed' },
      },
    ],
  );
  const needs = [...refused, ...unmet.map(({ brief, ...need }) => ({ ...need, message: brief }))];
  const ours = needs.filter((need) => need !== false).filter((need) => maxLagMs.has(`${need.source}/${need.stream}`));
  return [...new Map(ours.map((need) => [JSON.stringify([need.source, need.stream, need.kind]), need])).values()];
}

/** Streams, as `source/stream`, that no sync has brought into a sink yet, or not to its end. */
export function unfilledOf(
  streams: readonly StreamStatus[],
  wanted: readonly string[],
  sinks: readonly string[],
): Need[] {
  return wanted.flatMap((key) =>
    sinks.flatMap((sink): Need[] => {
      const [source = '', stream] = key.split('/') as [string, SyncName];
      const status = streams.find((one) => one.source === source && one.stream === stream && one.sink === sink);
      if (status && !status.firstSync) return [];
      const says = status ? `the first sync into ${sink} has not ended` : `never synced into ${sink}`;
      return [{ source, stream, kind: 'unsynced', message: `${says}; next: tributary sync` }];
    }),
  );
}

type LastRun = Pick<RunRecord, 'id' | 'kind' | 'state' | 'startedAt' | 'finishedAt' | 'message'>;

/** Everything the state knows, whatever the config says now: a source that was taken out is still in the tables. */
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
  return rows.map((row) => toStatus(row, windows.get(trackOf(row)) ?? [], upcoming(row.source, row.stream)));
}

/** A fault that passes is gone with the next poll or the one after it. */
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

/** Of windows that are not certified; the table has them all. */
const MOST_LISTED = 20;

const trackOf = (row: { source: string; stream: string; sink: string | null }): string =>
  [row.source, row.stream, row.sink].join('/');

async function readWindows(state: Queryable): Promise<Map<string, LedgerWindow[]>> {
  const rows = await state.query<LedgerWindow & { source: string; stream: string; sink: string }>(sql`
    select source, stream, sink, ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end",
      state = 'certified' as certified, tries, note, ${instantOf('read_at')} as read_at
    from tributary.windows order by source, stream, sink, start_at`);
  return groupBy(rows, trackOf);
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
  // A listing is a snapshot: it covers no time.
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
      nextTryAt: toIso(read_at + restMs(tries)),
    })),
    parkedWindows: open.filter(({ tries }) => tries >= MOST_TRIES).length,
    byHandWindows: windows.filter(({ note }) => note === BY_HAND).length,
    parked: parked ?? refusedBy(row.lastRun),
    nextRunAt,
  };
}

/** Only a worker parks a stream. Without one, a refused last run means the same. */
const refusedBy = (run: LastRun | null): StreamStatus['parked'] =>
  run?.state === 'refused'
    ? { reason: run.message ?? 'the service refused', nextStep: null, since: run.startedAt, nextProbeAt: null }
    : null;

/** How a source used its budget lately: of the runs that ended within the last hour. Listings of links have another budget. */
export interface SourceUse {
  source: string;
  requestsLastHour: number;
  tooManyRequestsLastHour: number;
  /** What the config grants; null where it does not name the source any more. */
  requestsPerSecond: number | null;
  /** Of all that the hour would have allowed. */
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
