import type { StreamName } from '../model/streams.ts';

/**
 * The answers of the API under /api, as the page and other programs see them; /api/openapi.json describes the same for
 * machines. Moments are ISO texts in UTC, days are `2026-11-14`. What is unknown is null, and shown nowhere as zero.
 */

/**
 * Every answer that is no success. `next` says what the person can do. 401: sign in (`POST /api/session`, or a bearer token).
 * 403: the CSRF token is missing or old (ask `GET /api/session` again), or the host is not ours. 400: what was asked makes no
 * sense. 404, 409: not there, or not in a state for it. 429: too many wrong tokens. 503: the state or the queue is away.
 */
export interface ApiError {
  error: { status: number; message: string; kept: string | null; next: string | null };
}

/** `GET /api/session` · `POST /api/session` `{ token }` signs in · `DELETE /api/session` signs out (204). */
export interface Session {
  /** False: this server has no token, is reached from this machine only, and anybody may read. */
  needsToken: boolean;
  /** Whether reading is allowed as things are. */
  signedIn: boolean;
  /** Goes into the header `x-csrf-token` of every POST and DELETE but the sign-in. Null until signed in. */
  csrf: string | null;
}

/** `GET /api/overview`; also sent by `/api/events` whenever anything in it but the time has changed. */
export interface Overview {
  now: string;
  version: string;
  /** What is wrong and needs a person, the oldest first; empty when all is well. */
  troubles: Trouble[];
  /** Every stream of the config, and those that the state still knows. */
  streams: StreamOverview[];
}

export interface Trouble {
  kind: 'parked' | 'late' | 'uncertified';
  source: string;
  /** `*`: the whole source. */
  stream: StreamName | '*';
  message: string;
  since: string;
}

export interface StreamOverview {
  source: string;
  stream: StreamName;
  /** False: the config names it no more. */
  configured: boolean;
  /** From the watermark of the sink that is furthest behind. */
  completeThrough: string | null;
  newestSeen: string | null;
  lagSeconds: number | null;
  /** `maxLag` of the config; null where none is set. */
  maxLagSeconds: number | null;
  /** Further behind than maxLag. */
  late: boolean;
  /** Why it waits for a person. `nextStep` says what to do, `nextProbeAt` when it is tried again by itself. */
  parked: { reason: string; nextStep: string | null; since: string; nextProbeAt: string | null } | null;
  quarantined: number;
  uncertifiedWindows: number;
  lastRun: LastRun | null;
  lastSuccessAt: string | null;
  nextRunAt: string | null;
  sinks: TrackOverview[];
}

export interface LastRun {
  id: string;
  kind: RunKind;
  state: RunState;
  startedAt: string;
  finishedAt: string | null;
  message: string | null;
}

/** A stream in one sink. */
export interface TrackOverview {
  sink: string;
  since: string;
  completeThrough: string | null;
  newestSeen: string | null;
  lagSeconds: number | null;
  uncertifiedWindows: number;
}

/**
 * `GET /api/coverage?source=&stream=&sink=&from=&to=`: all optional; without dates from each track's `since` to now. Days
 * in a row that are alike are one run of days, so years of a calm stream are a handful of entries.
 */
export interface Coverage {
  /** First and last day + 1 of what is answered. */
  from: string;
  to: string;
  tracks: TrackCoverage[];
}

export interface TrackCoverage {
  source: string;
  stream: StreamName;
  sink: string;
  since: string;
  /** In order, without holes, from the later of `from` and `since` on. */
  days: DayRun[];
}

export interface DayRun {
  /** The first day. */
  date: string;
  count: number;
  state: DayState;
}

/**
 * The state of a day is the worst of its windows: gap (never read, though later ones were) > uncertified (read, not proven) >
 * quarantined (complete, but records of it were set aside) > open (not reached yet, or still running) > certified.
 */
export type DayState = 'certified' | 'open' | 'uncertified' | 'gap' | 'quarantined';

/** `GET /api/coverage/windows?source=&stream=&sink=&from=&to=`: all needed; at most 31 days. */
export interface CoverageWindows {
  source: string;
  stream: StreamName;
  sink: string;
  from: string;
  to: string;
  /** In order, without holes. */
  windows: WindowDetail[];
  /** Records of these days that were set aside: see `GET /api/quarantine/{id}`. */
  quarantined: number[];
}

export interface WindowDetail {
  start: string;
  end: string;
  state: 'certified' | 'open' | 'uncertified' | 'gap';
  /** These are null for what was not read. */
  rows: number | null;
  readAt: string | null;
  provenAt: string | null;
  runId: string | null;
  /** Runs in a row that could not prove it. */
  tries: number | null;
  /** What is peculiar about it. */
  note: string | null;
}

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

export type RunKind = 'sync' | 'backfill' | 'verify' | 'retry';
export type RunState = 'running' | 'done' | 'incomplete' | 'refused' | 'interrupted' | 'failed';

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

/** `GET /api/backfills`: the newest first. `GET /api/backfills/{id}` is one of them. */
export interface Backfills {
  backfills: Backfill[];
}

export interface Backfill {
  id: string;
  source: string;
  stream: StreamName;
  from: string;
  to: string;
  force: boolean;
  state: 'queued' | 'paused' | 'cancelled' | 'done' | 'failed';
  /** Whether a window of it is being read now. */
  running: boolean;
  createdAt: string;
  finishedAt: string | null;
  windows: { queued: number; running: number; done: number; failed: number };
  /** Of its windows, 0 to 1. */
  progress: number;
  rows: number;
  /** Null where it does not run, or no window of it has been read yet. */
  etaSeconds: number | null;
  message: string | null;
  /** What can be done with it now: `POST /api/backfills/{id}/{action}`, which answers with the backfill. */
  actions: BackfillAction[];
}

export type BackfillAction = 'pause' | 'resume' | 'cancel' | 'retry';

/** The body of `POST /api/backfills/price` and of `POST /api/backfills` (201, `Backfills`: one for each stream). */
export interface BackfillRequest {
  /** Default: all sources, all their streams. */
  source?: string;
  streams?: StreamName[];
  /** As on the command line: `2026-11-01`, `2026-11-01T10:00Z`, `7d`, `now`. `to` is exclusive. */
  from: string;
  to: string;
  /** Also what is proven complete already. */
  force?: boolean;
}

/** What a backfill will cost. Asking takes a few requests to the service, and therefore some seconds. */
export interface BackfillPrice {
  streams: StreamPrice[];
  sources: Record<string, SourcePrice>;
}

export interface StreamPrice {
  source: string;
  stream: StreamName;
  from: string;
  to: string;
  toRead: Array<{ from: string; to: string }>;
  /** The share of the time that is proven already and will be skipped, 0 to 1. */
  certified: number;
  rows: number;
  /** False: `rows` and `requests` are guesses. */
  isCounted: boolean;
  requests: number;
  /** Requests that finding this out took. */
  probes: number;
}

export interface SourcePrice {
  /** At the budget of the config. */
  current: { perSecond: number; seconds: number };
  /** On each plan of the service. */
  others: Array<{ plan: string; perSecond: number; seconds: number }>;
  /** The share of the budget that syncs use meanwhile: they go first. */
  pollShare: number;
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

/** `POST /api/sync` `{ source?, streams? }` (202): these streams are due now, and the worker takes them up. */
export interface SyncStarted {
  streams: Array<{ source: string; stream: StreamName }>;
}

/** `GET /readyz` (200 or 503). Messages are only for those who are signed in. */
export interface Readiness {
  ready: boolean;
  parts: ReadinessPart[];
}

export interface ReadinessPart {
  part: 'state' | 'queue' | 'stream';
  /** Of a stream: `main/clicks`. */
  name: string;
  ok: boolean;
  message: string | null;
}

/**
 * `GET /api/events`, server-sent events. Every one has an id; a browser that reconnects gets what it missed, or `reset`.
 * A comment comes every 15 seconds, so that a dead connection is noticed.
 */
export type LiveEvent =
  /** First of all, and when something in it changed. */
  | { event: 'overview'; data: Overview }
  /** First of all, and when a part went away or came back. */
  | { event: 'readiness'; data: Readiness }
  /** What changed: ask again for what is shown of it. */
  | { event: 'changed'; data: { topics: Topic[] } }
  /** Too much was missed: ask again for everything that is shown. */
  | { event: 'reset'; data: Record<string, never> };

export type Topic = 'coverage' | 'runs' | 'backfills' | 'quarantine' | 'schema' | 'budget';
