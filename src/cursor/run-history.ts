import { type Instant, toIso } from '../model/instant.ts';
import type { Queryable } from './database.ts';
import type { RunKind } from './runs.ts';
import type { Sql } from './sql.ts';

export const RUN_STATES = ['running', 'done', 'incomplete', 'refused', 'interrupted', 'failed'] as const;

export const RUN_KINDS: readonly RunKind[] = ['sync', 'backfill', 'retry'];

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
      rows_quarantined as quarantined, requests, too_many_requests as "tooManyRequests", message
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
