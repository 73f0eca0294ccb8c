import type { Queryable } from '../cursor/database.ts';
import type { StreamName } from '../model/streams.ts';
import { MOST_TRIES } from './plan.ts';

/** How a stream stands in a sink, as `status` shows it. Times are ISO in UTC; what is unknown is null. */
export interface StreamStatus {
  source: string;
  stream: StreamName;
  /** Null where nothing was ever written. */
  sink: string | null;
  since: string | null;
  completeThrough: string | null;
  newestSeen: string | null;
  /** From the watermark to now. */
  lagSeconds: number | null;
  /** Windows that were read and could not be proven. */
  uncertifiedWindows: number;
  quarantined: number;
  /** Read and not proven so often that they are left alone: the watermark waits before the first of them. */
  parkedWindows: number;
  lastRun: { id: string; state: string; startedAt: string; finishedAt: string | null; message: string | null } | null;
  /** When the worker reads it next; null where no worker keeps it. */
  nextRunAt: string | null;
  /** Why it is not read: the service refused it, or its whole source. */
  parked: { since: string; reason: string; nextStep: string | null; nextProbeAt: string } | null;
}

/** Everything the state knows, whatever the config says now: a source that was taken out is still in the tables. */
export async function readStatus(state: Queryable): Promise<StreamStatus[]> {
  const rows = await state.query<StatusRow>({
    text: `
      select k.source, k.stream, c.sink, c.since, c.complete_through, c.newest_seen,
        extract(epoch from now() - c.complete_through)::float8 as lag,
        (select count(*) from tributary.windows w
          where (w.source, w.stream, w.sink, w.state) = (c.source, c.stream, c.sink, 'uncertified')) as uncertified,
        (select count(*) from tributary.windows w
          where (w.source, w.stream, w.sink, w.state) = (c.source, c.stream, c.sink, 'uncertified')
            and w.tries >= ${MOST_TRIES}) as parked_windows,
        (select count(*) from tributary.quarantine q where (q.source, q.stream) = (k.source, k.stream)) as quarantined,
        r.id, r.state, r.started_at, r.finished_at, r.message,
        s.next_run_at, p.since as parked_since, p.reason, p.next_step, p.next_probe_at
      from (
        select source, stream from tributary.cursors union select source, stream from tributary.runs
        union select source, stream from tributary.schedules
      ) k
      left join tributary.schedules s on (s.source, s.stream) = (k.source, k.stream)
      left join lateral (
        select * from tributary.parked p where p.source = k.source and p.stream in (k.stream, '*') order by p.stream limit 1
      ) p on true
      left join tributary.cursors c on (c.source, c.stream) = (k.source, k.stream)
      left join lateral (
        select * from tributary.runs r where (r.source, r.stream) = (k.source, k.stream) order by started_at desc limit 1
      ) r on true
      order by k.source, k.stream, c.sink`,
  });
  return rows.map(toStatus);
}

interface StatusRow {
  source: string;
  stream: StreamName;
  sink: string | null;
  since: Date | null;
  complete_through: Date | null;
  newest_seen: Date | null;
  lag: number | null;
  uncertified: number;
  quarantined: number;
  id: string | null;
  state: string;
  started_at: Date;
  finished_at: Date | null;
  message: string | null;
  parked_windows: number;
  next_run_at: Date | null;
  parked_since: Date | null;
  reason: string;
  next_step: string | null;
  next_probe_at: Date;
}

const toStatus = (row: StatusRow): StreamStatus => ({
  source: row.source,
  stream: row.stream,
  sink: row.sink,
  since: row.since?.toISOString() ?? null,
  completeThrough: row.complete_through?.toISOString() ?? null,
  newestSeen: row.newest_seen?.toISOString() ?? null,
  lagSeconds: row.lag === null ? null : Math.round(row.lag),
  uncertifiedWindows: row.uncertified,
  parkedWindows: row.parked_windows,
  quarantined: row.quarantined,
  nextRunAt: row.next_run_at?.toISOString() ?? null,
  parked: row.parked_since === null ? null : toParked(row.parked_since, row),
  lastRun: row.id === null ? null : toRun(row.id, row),
});

const toRun = (id: string, row: StatusRow): StreamStatus['lastRun'] => ({
  id,
  state: row.state,
  startedAt: row.started_at.toISOString(),
  finishedAt: row.finished_at?.toISOString() ?? null,
  message: row.message,
});

const toParked = (since: Date, row: StatusRow): StreamStatus['parked'] => ({
  since: since.toISOString(),
  reason: row.reason,
  nextStep: row.next_step,
  nextProbeAt: row.next_probe_at.toISOString(),
});
