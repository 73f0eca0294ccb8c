import { randomBytes } from 'node:crypto';
import { type Instant, toIso } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';
import type { Queryable } from './database/index.ts';
import { instantOf, type Sql, storableJson, storableText } from './database/sql.ts';
import { removeOldRunLogs } from './run-log.ts';

/** What a run did to the rows of a sink. */
export interface SinkTally {
  new: number;
  changed: number;
  unchanged: number;
}

/** What a run did, as the `runs` table and the summary show it. Of several sinks: in the one that got most rows. */
export interface Tally extends SinkTally {
  read: number;
  quarantined: number;
  /** Rows with characters that a sink could not hold. */
  sanitized: number;
  /** By sink. A sink that was added or emptied gets rows that the others have. */
  sinks: Record<string, SinkTally>;
  requests: number;
  tooManyRequests: number;
  /** Per column: how often an alias contradicted its canonical field, how often a value did not fit. */
  contradictions: Record<string, number>;
  typeMismatches: Record<string, number>;
  /** Columns that came or grew. */
  schemaChanges: string[];
}

export const emptyTally = (): Tally => ({
  read: 0,
  new: 0,
  changed: 0,
  unchanged: 0,
  quarantined: 0,
  sanitized: 0,
  sinks: {},
  requests: 0,
  tooManyRequests: 0,
  contradictions: {},
  typeMismatches: {},
  schemaChanges: [],
});

/** Counts what a commit did. Pages overlap: what counts is what the sink met. */
export function countCommit(tally: Tally, sink: string, done: SinkTally): void {
  const { new: n, changed, unchanged } = tally.sinks[sink] ?? { new: 0, changed: 0, unchanged: 0 };
  tally.sinks[sink] = { new: n + done.new, changed: changed + done.changed, unchanged: unchanged + done.unchanged };
  const metBy = (one: SinkTally): number => one.new + one.changed + one.unchanged;
  const [fullest = done] = Object.values(tally.sinks).sort((a, b) => metBy(b) - metBy(a));
  Object.assign(tally, fullest, { read: metBy(fullest) });
}

/** By sink, where they did not all get the same. Not by unchanged rows: of overlapping pages a larger batch meets fewer. */
export function differingSinks({ sinks }: Pick<Tally, 'sinks'>): Record<string, SinkTally> | null {
  const [first, ...others] = Object.values(sinks);
  return others.every((one) => one.new === first?.new && one.changed === first.changed) ? null : sinks;
}

export type RunState = 'done' | 'incomplete' | 'refused' | 'interrupted' | 'failed';

/** A re-sweep is a sync that also read proven windows again; a repair is what `verify --repair` read again; a retry is of records set aside. */
export const RUN_KINDS = ['sync', 're-sweep', 'backfill', 'repair', 'retry'] as const;

export type RunKind = (typeof RUN_KINDS)[number];

export interface Run {
  id: string;
  kind: RunKind;
  source: string;
  stream: SyncName;
}

/** Sortable by time, unique without asking the database. */
export const newRunId = (now: number = Date.now()): string =>
  `${new Date(now).toISOString().replace(/[-:.]/g, '').slice(0, 15)}-${randomBytes(4).toString('hex')}`;

/** The form of it, as Postgres reads it: a row whose `_run_id` looks otherwise was written by somebody else. */
export const RUN_ID = '^[0-9]{8}T[0-9]{6}-[0-9a-f]{8}$';

/**
 * The caller holds the lease of the stream: whatever else of its kind is still called running has died. A backfill that gave way to
 * a sync is alive. Returns when it began, by the database's clock.
 */
export async function startRun(db: Queryable, run: Run): Promise<Instant> {
  const [row] = await db.query<{ at: Instant }>(insertRun(run));
  if (!row) throw new Error('the run was written and did not come back');
  return row.at;
}

/** What the history says of a run that a bug ended. */
export const A_BUG = 'a bug in tributary ended it; the log says more';

export interface RunEnd {
  state: RunState;
  /** Why it is not done. */
  message?: string | undefined;
  /** What it turned out to be, where that differs from what it began as. */
  kind?: RunKind | undefined;
}

export async function finishRun(db: Queryable, id: string, end: RunEnd, tally: Tally): Promise<void> {
  await db.query(updateRun(id, end, tally));
}

/** A bug that ended a job before its run began, or outside of it, is in the history like one inside. */
export async function recordBug(db: Queryable, { id, kind, source, stream }: Run, sinceMs: number): Promise<void> {
  await db.query({
    text: `
      insert into tributary.runs (id, kind, source, stream, state, finished_at, message)
      select $1, $2, $3, $4, 'failed', now(), $5
      where not exists (
        select from tributary.runs where source = $3 and stream = $4 and state = 'failed'
          and finished_at > now() - make_interval(secs => $6::float8 / 1000))`,
    values: [id, kind, source, stream, A_BUG, sinceMs],
  });
}

const insertRun = ({ id, kind, source, stream }: Run): Sql => ({
  text: `
    with died as (
      update tributary.runs set state = 'interrupted', finished_at = now(), message = $5
      where source = $3 and stream = $4 and kind = $2 and state = 'running')
    insert into tributary.runs (id, kind, source, stream) values ($1, $2, $3, $4)
    returning ${instantOf('started_at')} as at`,
  values: [id, kind, source, stream, 'the process ended before it could report; what it committed is kept'],
});

const updateRun = (id: string, { state, message, kind }: RunEnd, t: Tally): Sql => ({
  text: `
    update tributary.runs
    set state = $2, finished_at = now(), message = $3,
        rows_read = $4, rows_new = $5, rows_changed = $6, rows_unchanged = $7, rows_quarantined = $8,
        requests = $9, too_many_requests = $10, contradictions = $11, misfits = $12, schema_changes = $13, rows_mended = $14, kind = coalesce($15, kind),
        rows_by_sink = nullif($16::jsonb, 'null')
    where id = $1`,
  values: [
    id,
    state,
    // A service's own words: they may hold what Postgres refuses, and the run must end all the same.
    message === undefined ? null : storableText(message),
    t.read,
    t.new,
    t.changed,
    t.unchanged,
    t.quarantined,
    t.requests,
    t.tooManyRequests,
    JSON.stringify(t.contradictions),
    JSON.stringify(t.typeMismatches),
    storableJson(JSON.stringify(t.schemaChanges)),
    t.sanitized,
    kind ?? null,
    JSON.stringify(differingSinks(t)),
  ],
});

/** How far a run is, for those who watch it. Its end counts again. */
export async function recordProgress(db: Queryable, id: string, so: { rows: number; requests: number }): Promise<void> {
  await db.query({
    text: `
      update tributary.runs set rows_read = greatest(rows_read, $2), requests = greatest(requests, $3)
      where id = $1 and state = 'running'`,
    values: [id, so.rows, so.requests],
  });
}

export const RUN_STATES = ['running', 'done', 'incomplete', 'refused', 'interrupted', 'failed'] as const;

export interface RunFilter {
  id?: string | undefined;
  source?: string | undefined;
  stream?: string | undefined;
  state?: string | undefined;
  kind?: string | undefined;
  since?: Instant | undefined;
  /** Only runs older than this one, by its id: the next page of a list. */
  before?: string | undefined;
  limit: number;
}

/** A row of the history. Times are ISO in UTC. */
export interface RunRecord {
  id: string;
  kind: string;
  source: string;
  stream: string;
  state: string;
  startedAt: string;
  finishedAt: string | null;
  read: number;
  new: number;
  changed: number;
  unchanged: number;
  quarantined: number;
  requests: number;
  tooManyRequests: number;
  /** Where several sinks did not get the same rows: what each got; the figures above are of the one that got most. */
  sinks: Record<string, SinkTally> | null;
  message: string | null;
}

/** The newest first. */
export async function listRuns(db: Queryable, filter: RunFilter): Promise<RunRecord[]> {
  type Found = Omit<RunRecord, 'startedAt' | 'finishedAt'> & { startedAt: Date; finishedAt: Date | null };
  const rows = await db.query<Found>(selectRuns(filter));
  return rows.map((row) => ({
    ...row,
    startedAt: row.startedAt.toISOString(),
    finishedAt: row.finishedAt?.toISOString() ?? null,
  }));
}

const selectRuns = ({ id, source, stream, state, kind, since, before, limit }: RunFilter): Sql => ({
  text: `
    select id, kind, source, stream, state, started_at as "startedAt", finished_at as "finishedAt",
      rows_read as read, rows_new as new, rows_changed as changed, rows_unchanged as unchanged,
      rows_quarantined as quarantined, requests, too_many_requests as "tooManyRequests", rows_by_sink as sinks, message
    from tributary.runs
    where ($1::text is null or source = $1) and ($2::text is null or stream = $2) and ($3::text is null or state = $3)
      and ($4::timestamptz is null or started_at >= $4) and ($6::text is null or kind = $6) and ($8::text is null or id = $8)
      and ($7::text is null or (started_at, id) < (select started_at, id from tributary.runs where id = $7))
    order by started_at desc, id desc limit $5`,
  values: [
    source ?? null,
    stream ?? null,
    state ?? null,
    since === undefined ? null : toIso(since),
    limit,
    kind ?? null,
    before ?? null,
    id ?? null,
  ],
});

/** So many at a time: the first time after years is no transaction of an hour. */
const AT_ONCE = 10_000;

/**
 * Removes what is only of interest for a while: runs that ended, incidents that are over, backfills that are through. A run that
 * wrote rows goes too; `_run_id` of those rows then names a run that nobody can look up. The audit trail stays.
 */
export async function removeOldHistory(db: Queryable, keepMs: number): Promise<void> {
  const old = (column: string): string => `${column} < now() - make_interval(secs => $1 / 1000.0)`;
  await db.query({
    text: `
      with runs as (
        delete from tributary.runs where id in (
          select id from tributary.runs where ${old('started_at')} and state <> 'running'
          order by started_at limit ${AT_ONCE})
      ), incidents as (
        delete from tributary.incidents where ${old('closed_at')}
      )
      delete from tributary.backfills where ${old('finished_at')}`,
    values: [keepMs],
  });
  await removeOldRunLogs(db);
}
