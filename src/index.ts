import { examine } from './app/doctor.ts';
import { variables } from './app/environment.ts';
import { environment, withApp, withSinks, withSyncApp } from './app/index.ts';
import { type Config, type ConfigInput, DEFAULT_CONFIG, parseConfig } from './config/index.ts';
import { holderOf } from './cursor/database/holders.ts';
import { listRuns, type RunFilter, type RunRecord } from './cursor/runs.ts';
import { ConfigError, type Finding } from './model/errors.ts';
import type { Instant } from './model/instant.ts';
import { heard, type Log } from './model/log.ts';
import type { StreamName, SyncName } from './model/streams.ts';
import { parseDate, type Window } from './model/window.ts';
import type { Erasure } from './sinks/sink.ts';
import { type Price, priceBackfill } from './sync/backfill/price.ts';
import type { LinksJob, StreamJob, SyncDeps, SyncProgress } from './sync/job.ts';
import { dueListings } from './sync/links/sync-links.ts';
import { forget, type Touched } from './sync/maintain/forget.ts';
import { moveCursor, resetCursor } from './sync/maintain/move-cursor.ts';
import { type Repair, verifyJob } from './sync/maintain/verify-job.ts';
import { readStatus, type StreamStatus } from './sync/status.ts';
import { backfillAll, type Outcome, syncAll } from './sync/sync-stream.ts';

/** Tributary as a library: the operations of the command line, with values instead of text. See docs/library.md. */

export type { ConfigInput } from './config/index.ts';
export type { RunFilter, RunRecord, Tally } from './cursor/runs.ts';
export type { Finding } from './model/errors.ts';
export { BadRecord, Cancelled, ConfigError, Fault, RetryLater, StopStream } from './model/errors.ts';
export type { Log } from './model/log.ts';
export type { StreamName, SyncName } from './model/streams.ts';
export type { Erasure } from './sinks/sink.ts';
export type { Price } from './sync/backfill/price.ts';
export type { SyncProgress } from './sync/job.ts';
export type { SinkResult, VerifyResult } from './sync/maintain/comparison.ts';
export type { Touched } from './sync/maintain/forget.ts';
export type { Repair } from './sync/maintain/verify-job.ts';
export type { StreamReport } from './sync/run.ts';
export type { StreamStatus } from './sync/status.ts';
export type { Outcome } from './sync/sync-stream.ts';

export interface TributaryOptions {
  /** A file, or its content as an object. `${NAME}` reads the environment in both. Default: config/tributary.yaml */
  config?: string | ConfigInput;
  /** Where log lines go. Default: standard error, at the level of TRIBUTARY_LOG. */
  log?: Log;
}

export interface SyncOptions {
  source?: string;
  sink?: string;
  /** Default: all streams of the config; for `sync` also `links`, by default where they are due. */
  streams?: readonly SyncName[];
  /** Aborting it ends the sync; what is committed stays. */
  signal?: AbortSignal;
  onProgress?(progress: SyncProgress): void;
}

/** A range with an exclusive end. Each bound is a Date, or a text such as 2026-11-01, 7d (that long ago) or now. */
export interface Range {
  from: Date | string;
  to: Date | string;
}

export interface FeedName {
  source: string;
  stream: StreamName;
  sink: string;
}

/** Every call opens what it needs and closes it again, so there is nothing for the caller to close. */
export interface Tributary {
  /** Brings the streams up to date. A failed stream is an outcome with a `fault`; the others continue. */
  sync(options?: SyncOptions): Promise<Outcome[]>;
  /** Reads a range into the sinks: what is not proven yet, or with `force` all of it. */
  backfill(range: Range, options?: SyncOptions & { force?: boolean }): Promise<Outcome[]>;
  /** What a backfill would cost. */
  price(range: Range, options?: SyncOptions & { force?: boolean }): Promise<Price[]>;
  /** Compares every sink with the service; with `repair`, reads again what differs and compares again. */
  verify(range: Range, options?: SyncOptions & { repair?: boolean }): Promise<Repair[]>;
  status(): Promise<StreamStatus[]>;
  runs(filter?: Partial<Omit<RunFilter, 'since'>>): Promise<RunRecord[]>;
  doctor(): Promise<Finding[]>;
  /** Moves a watermark back, to a date in any form of the API; the next sync reads again from there. */
  moveCursor(feed: FeedName, to: Date | string, options?: { force?: boolean }): Promise<void>;
  resetCursor(feed: FeedName): Promise<void>;
  forget(erasure: Erasure): Promise<Touched>;
}

const NEVER = new AbortController().signal;

/** Reads and checks the config at once; a fault in it is thrown here, as a `ConfigError`. */
export function createTributary(options: TributaryOptions = {}): Tributary {
  const config = configOf(options.config ?? DEFAULT_CONFIG);
  const log = options.log ? heard(options.log) : environment.log();
  const moving = <T>(work: (deps: Parameters<typeof moveCursor>[0]) => Promise<T>): Promise<T> =>
    withSinks({ config, log }, (app) => work({ ...app, holder: HOLDER }));
  const syncing = <T>(
    { signal = NEVER, onProgress = () => {}, ...choice }: SyncOptions = {},
    work: (deps: SyncDeps, jobs: readonly StreamJob[], links: readonly LinksJob[]) => Promise<T>,
    // As on the command line: only a sync wants the embedded server to itself.
    attach = true,
  ): Promise<T> =>
    withSyncApp({ config, log, choice, attach }, ({ state, sinks, jobs, links }) =>
      work({ state, sinks, log, signal, onProgress, holder: HOLDER }, jobs, links),
    );
  return {
    sync: (choice) =>
      syncing(
        choice,
        async (deps, jobs, links) => {
          const isAsked = choice?.streams?.includes('links');
          return syncAll(deps, [...jobs, ...(isAsked ? links : await dueListings(deps.state, links))]);
        },
        false,
      ),
    backfill: (range, { force = false, ...options } = {}) =>
      syncing(options, (deps, jobs) => backfillAll(deps, jobs, { window: windowOf(range), force })),
    price: (range, { force = false, ...options } = {}) =>
      syncing(options, (deps, jobs) =>
        Promise.all(jobs.map((job) => priceBackfill(deps, job, { window: windowOf(range), force }))),
      ),
    verify: (range, { repair = false, ...options } = {}) =>
      syncing(options, (deps, jobs) =>
        Promise.all(jobs.map((job) => verifyJob(deps, job, windowOf(range), { repair }))),
      ),
    status: () => withApp({ config, log }, ({ state }) => readStatus(state)),
    runs: (filter = {}) => withApp({ config, log }, ({ state }) => listRuns(state, { limit: 100, ...filter })),
    doctor: () => examine({ config, log, signal: NEVER, onFinding: () => {} }),
    moveCursor: async (feed, to, { force = false } = {}) => {
      const instant = instantOf(to);
      await moving((deps) => moveCursor(deps, feed, { to: instant, force }));
    },
    resetCursor: (feed) => moving((deps) => resetCursor(deps, feed)),
    forget: (erasure) => moving((deps) => forget(deps, erasure)),
  };
}

/** Type-checks a config object for `createTributary({ config })`. */
export const defineConfig = (config: ConfigInput): ConfigInput => config;

const HOLDER = holderOf('library');

const configOf = (config: string | ConfigInput): Config =>
  typeof config === 'string'
    ? environment.config(config).config
    : parseConfig(JSON.stringify(config), 'config', variables()).config;

function instantOf(when: Date | string): Instant {
  const instant = parseDate(when instanceof Date ? when.toISOString() : when, Date.now());
  if (instant !== undefined) return instant;
  throw new ConfigError(`not a date: ${JSON.stringify(when)}`, {
    next: 'give a Date, or a text such as 2026-11-01, 2026-11-01T10:00Z, 7d or now',
  });
}

function windowOf({ from, to }: Range): Window {
  const window = { start: instantOf(from), end: instantOf(to) };
  if (window.start < window.end) return window;
  throw new ConfigError('the range ends before it begins', { next: 'give `from` before `to`, which is exclusive' });
}
