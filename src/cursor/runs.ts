import { randomBytes } from 'node:crypto';
import type { StreamName } from '../model/streams.ts';
import type { Queryable } from './database.ts';
import type { Sql } from './sql.ts';
import { storableText } from './storable.ts';

/** What a run did, as the `runs` table and the summary show it. */
export interface Tally {
  read: number;
  new: number;
  changed: number;
  unchanged: number;
  quarantined: number;
  /** Rows with characters that a sink could not hold. */
  mended: number;
  requests: number;
  tooManyRequests: number;
  /** Per column: how often an alias contradicted its canonical field, how often a value did not fit. */
  contradictions: Record<string, number>;
  misfits: Record<string, number>;
  /** Columns that came or grew. */
  schemaChanges: string[];
}

export const emptyTally = (): Tally => ({
  read: 0,
  new: 0,
  changed: 0,
  unchanged: 0,
  quarantined: 0,
  mended: 0,
  requests: 0,
  tooManyRequests: 0,
  contradictions: {},
  misfits: {},
  schemaChanges: [],
});

export type RunState = 'done' | 'incomplete' | 'refused' | 'interrupted' | 'failed';

export type RunKind = 'sync' | 'backfill' | 'retry';

export interface Run {
  id: string;
  kind: RunKind;
  source: string;
  stream: StreamName;
}

/** Sortable by time, unique without asking the database. */
export const newRunId = (now: number = Date.now()): string =>
  `${new Date(now).toISOString().replace(/[-:.]/g, '').slice(0, 15)}-${randomBytes(4).toString('hex')}`;

/**
 * The caller holds the lease of the stream: whatever else of its kind is still called running has died. A backfill that gave way to
 * a sync is alive.
 */
export async function startRun(db: Queryable, run: Run): Promise<void> {
  await db.query(buryRuns(run));
  await db.query(insertRun(run));
}

export async function finishRun(
  db: Queryable,
  id: string,
  state: RunState,
  tally: Tally,
  message?: string,
): Promise<void> {
  await db.query(updateRun(id, state, tally, message));
}

const insertRun = ({ id, kind, source, stream }: Run): Sql => ({
  text: 'insert into tributary.runs (id, kind, source, stream) values ($1, $2, $3, $4)',
  values: [id, kind, source, stream],
});

const buryRuns = ({ source, stream, kind }: Run): Sql => ({
  text: `
    update tributary.runs set state = 'interrupted', finished_at = now(), message = $3
    where source = $1 and stream = $2 and kind = $4 and state = 'running'`,
  values: [source, stream, 'the process ended without a word; what it committed is kept', kind],
});

const updateRun = (id: string, state: RunState, t: Tally, message: string | undefined): Sql => ({
  text: `
    update tributary.runs
    set state = $2, finished_at = now(), message = $3,
        rows_read = $4, rows_new = $5, rows_changed = $6, rows_unchanged = $7, rows_quarantined = $8,
        requests = $9, too_many_requests = $10, contradictions = $11, misfits = $12, schema_changes = $13, rows_mended = $14
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
    JSON.stringify(t.misfits),
    JSON.stringify(t.schemaChanges),
    t.mended,
  ],
});
