import { randomBytes } from 'node:crypto';
import { type Instant, toIso } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';
import type { Queryable } from './database/index.ts';
import { instantOf, isoOf, raw, type Sql, sql, storableJson, storableText } from './database/sql.ts';
import { removeOldRunLogs } from './run-log.ts';

export interface SinkTally {
  new: number;
  changed: number;
  unchanged: number;
}

export type Tally = ReturnType<typeof emptyTally>;

/** What a run did, as the `runs` table and the summary show it. With several sinks, the counts are of the one that got most rows. */
export const emptyTally = () => ({
  read: 0,
  new: 0,
  changed: 0,
  unchanged: 0,
  quarantined: 0,
  /** Rows with characters that a sink could not store. */
  sanitized: 0,
  /** By sink. A sink that was added or emptied gets rows that the others already have. */
  sinks: {} as Record<string, SinkTally>,
  requests: 0,
  tooManyRequests: 0,
  /** Per column: how often an alias contradicted its canonical field, and how often a value had the wrong type. */
  contradictions: {} as Record<string, number>,
  typeMismatches: {} as Record<string, number>,
  schemaChanges: [] as string[],
});

/** Adds a commit to the tally. Counts the rows that reached the sink, not the rows read: pages overlap. */
export function countCommit(tally: Tally, sink: string, done: SinkTally): void {
  const { new: n, changed, unchanged } = tally.sinks[sink] ?? { new: 0, changed: 0, unchanged: 0 };
  tally.sinks[sink] = { new: n + done.new, changed: changed + done.changed, unchanged: unchanged + done.unchanged };
  const rowsOf = (one: SinkTally): number => one.new + one.changed + one.unchanged;
  const [fullest = done] = Object.values(tally.sinks).sort((a, b) => rowsOf(b) - rowsOf(a));
  Object.assign(tally, fullest, { read: rowsOf(fullest) });
}

/** By sink, or null if all got the same. Unchanged rows are ignored: with overlapping pages, larger batches have fewer of them. */
export function differingSinks({ sinks }: Pick<Tally, 'sinks'>): Record<string, SinkTally> | null {
  const [first, ...others] = Object.values(sinks);
  return others.every((one) => one.new === first?.new && one.changed === first.changed) ? null : sinks;
}

export const RUN_STATES = ['running', 'done', 'incomplete', 'refused', 'interrupted', 'failed'] as const;

/** How a run ended. */
export type RunState = Exclude<(typeof RUN_STATES)[number], 'running'>;

/** A re-sweep is a sync that also read proven windows again; a repair is done by `verify --repair`; a retry is of quarantined records. */
export const RUN_KINDS = ['sync', 're-sweep', 'backfill', 'repair', 'retry'] as const;

export type RunKind = (typeof RUN_KINDS)[number];

export interface Run {
  id: string;
  kind: RunKind;
  source: string;
  stream: SyncName;
}

/** Sortable by time, and unique without a query. */
export const newRunId = (now: number = Date.now()): string =>
  `${new Date(now).toISOString().replace(/[-:.]/g, '').slice(0, 15)}-${randomBytes(4).toString('hex')}`;

/** The format as a Postgres regex: a row whose `_run_id` does not match was written by somebody else. */
export const RUN_ID = '^[0-9]{8}T[0-9]{6}-[0-9a-f]{8}$';

/** Called under the lease, so other runs of this kind in state `running` have died. Returns the start time. */
export async function startRun(db: Queryable, run: Run): Promise<Instant> {
  const { id, kind, source, stream } = run;
  const died = 'the process ended before it could report; what it committed is kept';
  const [row] = await db.query<{ at: Instant }>(sql`
    with died as (
      update tributary.runs set state = 'interrupted', finished_at = now(), message = ${died}
      where source = ${source} and stream = ${stream} and kind = ${kind} and state = 'running')
    insert into tributary.runs (id, kind, source, stream) values (${id}, ${kind}, ${source}, ${stream})
    returning ${instantOf('started_at')} as at`);
  if (!row) throw new Error('the run was written and did not come back');
  return row.at;
}

export const A_BUG = 'a bug in tributary ended it; the log says more';

interface RunEnd {
  state: RunState;
  message?: string | undefined;
  /** The final kind, if it differs from the kind at the start. */
  kind?: RunKind | undefined;
}

export async function finishRun(db: Queryable, id: string, end: RunEnd, tally: Tally): Promise<void> {
  const { state, message, kind } = end;
  // Texts from the service may hold characters that Postgres rejects, and the end of the run must be recorded regardless.
  await db.query(sql`
    update tributary.runs
    set state = ${state}, finished_at = now(), message = ${message && storableText(message)}, kind = coalesce(${kind}, kind),
      rows_read = ${tally.read}, rows_new = ${tally.new}, rows_changed = ${tally.changed}, rows_unchanged = ${tally.unchanged},
      rows_quarantined = ${tally.quarantined}, rows_mended = ${tally.sanitized}, requests = ${tally.requests},
      too_many_requests = ${tally.tooManyRequests}, contradictions = ${JSON.stringify(tally.contradictions)},
      misfits = ${JSON.stringify(tally.typeMismatches)}, schema_changes = ${storableJson(JSON.stringify(tally.schemaChanges))},
      rows_by_sink = nullif(${JSON.stringify(differingSinks(tally))}::jsonb, 'null')
    where id = ${id}`);
}

/** Records a bug outside of a run, such as before it began, in the run history. Bugs inside of a run are there already. */
export async function recordBug(db: Queryable, { id, kind, source, stream }: Run, sinceMs: number): Promise<void> {
  await db.query(sql`
    insert into tributary.runs (id, kind, source, stream, state, finished_at, message)
    select ${id}, ${kind}, ${source}, ${stream}, 'failed', now(), ${A_BUG}
    where not exists (
      select from tributary.runs where source = ${source} and stream = ${stream} and state = 'failed'
        and finished_at > now() - make_interval(secs => ${sinceMs}::float8 / 1000))`);
}

/** The progress of a running run, for display. Replaced by the final counts at its end. */
export type RunProgress = { rows: number; requests: number };

export async function recordProgress(db: Queryable, id: string, { rows, requests }: RunProgress): Promise<void> {
  await db.query(sql`
    update tributary.runs set rows_read = greatest(rows_read, ${rows}), requests = greatest(requests, ${requests})
    where id = ${id} and state = 'running'`);
}

/** SQL: a run `r` as one JSON value, null if there is none. */
export const LAST_RUN = sql`case when r.id is not null then json_build_object('id', r.id, 'kind', r.kind, 'state', r.state,
  'startedAt', ${isoOf('r.started_at')}, 'finishedAt', ${isoOf('r.finished_at')}, 'message', r.message) end`;

export interface RunFilter {
  id?: string | undefined;
  source?: string | undefined;
  stream?: string | undefined;
  state?: string | undefined;
  kind?: string | undefined;
  since?: Instant | undefined;
  /** The id of the last run on the previous page: only older runs are listed. */
  before?: string | undefined;
  limit: number;
}

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
  /** Counts by sink if they differ, else null; the figures above are of the sink that got most rows. */
  sinks: Record<string, SinkTally> | null;
  message: string | null;
}

export async function listRuns(db: Queryable, filter: RunFilter): Promise<RunRecord[]> {
  const { id, source, stream, state, kind, before, limit } = filter;
  const since = filter.since === undefined ? '-infinity' : toIso(filter.since);
  return db.query<RunRecord>(sql`
    select id, kind, source, stream, state, ${isoOf('started_at')} as "startedAt", ${isoOf('finished_at')} as "finishedAt",
      rows_read as read, rows_new as new, rows_changed as changed, rows_unchanged as unchanged,
      rows_quarantined as quarantined, requests, too_many_requests as "tooManyRequests", rows_by_sink as sinks, message
    from tributary.runs
    where (${source}::text is null or source = ${source}) and (${stream}::text is null or stream = ${stream})
      and (${state}::text is null or state = ${state}) and (${kind}::text is null or kind = ${kind})
      and (${id}::text is null or id = ${id}) and started_at >= ${since}
      and (${before}::text is null or (started_at, id) < (select started_at, id from tributary.runs where id = ${before}))
    order by started_at desc, id desc limit ${limit}`);
}

/** Rows per statement, so that the first cleanup after years does not take an hour in one transaction. */
const AT_ONCE = 10_000;

/** Also deletes runs that wrote rows; the `_run_id` of these rows can then no longer be looked up. The audit trail stays. */
export async function removeOldHistory(db: Queryable, keepMs: number): Promise<void> {
  const old = (column: string): Sql => sql`${raw(column)} < now() - make_interval(secs => ${keepMs} / 1000.0)`;
  await db.query(sql`
    with runs as (
      delete from tributary.runs where id in (
        select id from tributary.runs where ${old('started_at')} and state <> 'running'
        order by started_at limit ${AT_ONCE})
    ), incidents as (
      delete from tributary.incidents where ${old('closed_at')}
    )
    delete from tributary.backfills where ${old('finished_at')}`);
  await removeOldRunLogs(db);
}
