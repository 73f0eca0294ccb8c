import type { StreamName } from '../model/streams.ts';
import type { LastRun } from './api-types-history.ts';

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

export * from './api-types-history.ts';
export * from './api-types-verbs.ts';
export * from './api-types-work.ts';

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

export type Topic = 'coverage' | 'runs' | 'backfills' | 'quarantine' | 'schema' | 'budget' | 'verifications';
