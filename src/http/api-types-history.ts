import type { StreamName } from '../model/streams.ts';

/** What happened: rows, budget, runs, and what they found. */

/**
 * `GET /api/rows?per=hour|day&from=&to=&source=&stream=`: rows by when they were brought, from the history of runs. Without
 * dates: the last 48 hours, or the last 30 days. Hours and days without a run have no point.
 */
export interface Rows {
  per: 'hour' | 'day';
  from: string;
  to: string;
  series: Array<{ source: string; stream: StreamName; points: RowsPoint[] }>;
}

export interface RowsPoint {
  /** When the hour or day begins. */
  at: string;
  read: number;
  new: number;
  changed: number;
  quarantined: number;
  runs: number;
  /** Runs that ended otherwise than done. */
  failed: number;
}

/** `GET /api/budget?minutes=1440&step=15`: at most 7 days back. Stretches without a request have no point. */
export interface Budget {
  now: string;
  minutes: number;
  step: number;
  keys: KeyBudget[];
}

export interface KeyBudget {
  /** Sources of the config that use this key; it is told by them. Empty: a key that the config no longer has. */
  sources: string[];
  perSecond: number;
  /** After a 429: how long everybody still waits. */
  pausedSeconds: number | null;
  points: BudgetPoint[];
}

export interface BudgetPoint {
  /** When the stretch begins. */
  at: string;
  requests: number;
  byLane: { fresh: number; repair: number; backfill: number };
  tooManyRequests: number;
  pauses: number;
  /** Of what the budget would have allowed: 0 to 1. */
  share: number;
}

export type RunKind = 'sync' | 'backfill' | 'retry';
export type RunState = 'running' | 'done' | 'incomplete' | 'refused' | 'interrupted' | 'failed';

export interface LastRun {
  id: string;
  kind: RunKind;
  state: RunState;
  startedAt: string;
  finishedAt: string | null;
  message: string | null;
}

/** `GET /api/runs?source=&stream=&state=&kind=&limit=50&before=`: the newest first; `next` is the `before` of the next page. */
export interface Runs {
  runs: RunRow[];
  next: string | null;
}

export interface RunRow extends LastRun {
  source: string;
  stream: StreamName;
  /** Null while it runs. */
  durationSeconds: number | null;
  read: number;
  new: number;
  changed: number;
  unchanged: number;
  quarantined: number;
  requests: number;
  tooManyRequests: number;
}

/** `GET /api/runs/{id}` */
export interface RunDetail extends RunRow {
  /** Per column: how often an alias contradicted its canonical field, and how often a value did not fit. */
  contradictions: Record<string, number>;
  misfits: Record<string, number>;
  schemaChanges: string[];
}

/** `GET /api/quarantine?source=&stream=&limit=50&before=`: the newest first. */
export interface Quarantine {
  total: number;
  records: QuarantineHead[];
  next: string | null;
}

export interface QuarantineHead {
  id: number;
  source: string;
  stream: StreamName;
  reason: string;
  runId: string;
  firstAt: string;
  lastAt: string;
}

/** `GET /api/quarantine/{id}` */
export interface QuarantineRecord extends QuarantineHead {
  /** Indented JSON as text: it may hold integers that JavaScript cannot. Personal data is masked. */
  record: string;
}

/** `POST /api/quarantine/{id}/retry`; `DELETE /api/quarantine/{id}` drops it for good (204). */
export interface QuarantineRetried {
  id: number;
  /** Null: it is in the tables now. Otherwise why it still cannot be used; then it stays. */
  reason: string | null;
}

/** `GET /api/schema-changes?stream=&limit=100`: the newest first. */
export interface SchemaChanges {
  changes: SchemaChange[];
}

export interface SchemaChange {
  at: string;
  source: string;
  stream: StreamName;
  /** The field in the service's answers. */
  path: string;
  column: string;
  kind: string;
  /** Null: the column is new. Otherwise it grew from this kind. */
  previousKind: string | null;
  runId: string;
}

/** `GET /api/links/top?by=clicks|leads|sales&from=&to=&source=&limit=10`: from the synced tables; the last 30 days unless told. */
export interface TopLinks {
  by: StreamName;
  from: string;
  to: string;
  /** The sink that was asked; null where none of the config can be (Parquet files cannot): then there are no links either. */
  sink: string | null;
  links: TopLink[];
}

export interface TopLink {
  source: string;
  linkId: string;
  /** `dub.sh/launch`; null where nothing is known of the link but its id. */
  shortLink: string | null;
  clicks: number;
  leads: number;
  sales: number;
  /** In cents, of sales in all currencies; null where no sale names an amount. */
  saleAmount: number | null;
}
