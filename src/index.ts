import { environment, withApp, withSinks, withSyncApp } from './app.ts';
import { examine } from './app-doctor.ts';
import { DEFAULT_CONFIG, parseConfig } from './config.ts';
import type { Config } from './config-schema.ts';
import { holderOf } from './cursor/leases.ts';
import { listRuns, type RunFilter, type RunRecord } from './cursor/run-history.ts';
import { variables } from './environment.ts';
import { ConfigError } from './model/errors.ts';
import type { Finding } from './model/finding.ts';
import { type Instant, parseInstant } from './model/instant.ts';
import type { Log } from './model/log.ts';
import type { StreamName } from './model/streams.ts';
import type { Erasure } from './sinks/sink.ts';
import { forget, type Touched } from './sync/forget.ts';
import type { SyncProgress } from './sync/job.ts';
import { moveCursor, resetCursor } from './sync/move-cursor.ts';
import { readStatus, type StreamStatus } from './sync/status.ts';
import { type Outcome, syncAll } from './sync/sync-all.ts';

/** Tributary inside another program: the verbs of the command line, with values instead of text. docs/library.md shows it. */

export type { RunFilter, RunRecord } from './cursor/run-history.ts';
export type { Tally } from './cursor/runs.ts';
export { BadRecord, Cancelled, ConfigError, Fault, RetryLater, StopStream } from './model/errors.ts';
export type { Finding } from './model/finding.ts';
export type { Log } from './model/log.ts';
export type { StreamName } from './model/streams.ts';
export type { Erasure } from './sinks/sink.ts';
export type { Touched } from './sync/forget.ts';
export type { SyncProgress } from './sync/job.ts';
export type { StreamReport } from './sync/run.ts';
export type { StreamStatus } from './sync/status.ts';
export type { Outcome } from './sync/sync-all.ts';

export interface TributaryOptions {
  /** A file, or what would stand in one. `${NAME}` reads the environment in both. Default: config/tributary.yaml */
  config?: string | object;
  /** Where log lines go. Default: standard error, at the level of TRIBUTARY_LOG. */
  log?: Log;
}

export interface SyncOptions {
  source?: string;
  sink?: string;
  /** Default: all that the config has. */
  streams?: readonly StreamName[];
  /** Aborting it ends the sync with what is committed. */
  signal?: AbortSignal;
  onProgress?(progress: SyncProgress): void;
}

export interface TrackName {
  source: string;
  stream: StreamName;
  sink: string;
}

/** Every verb opens what it needs and closes it again: there is nothing to close, and nothing to leak. */
export interface Tributary {
  /** Brings the streams up to date. A stream that fails is an outcome with a `fault`; the others go on. */
  sync(options?: SyncOptions): Promise<Outcome[]>;
  status(): Promise<StreamStatus[]>;
  runs(filter?: Partial<Omit<RunFilter, 'since'>>): Promise<RunRecord[]>;
  doctor(): Promise<Finding[]>;
  /** Moves a watermark back, to a date in any form of the API; the next sync reads again from there. */
  moveCursor(track: TrackName, to: Date | string, options?: { force?: boolean }): Promise<void>;
  resetCursor(track: TrackName): Promise<void>;
  forget(erasure: Erasure): Promise<Touched>;
}

const NEVER = new AbortController().signal;

/** Reads and checks the config at once; a fault in it is thrown here, as a `ConfigError`. */
export function createTributary(options: TributaryOptions = {}): Tributary {
  const config = configOf(options.config ?? DEFAULT_CONFIG);
  const log = options.log ?? environment.log();
  const moving = <T>(work: (deps: Parameters<typeof moveCursor>[0]) => Promise<T>): Promise<T> =>
    withSinks({ config, log }, (app) => work({ ...app, holder: HOLDER }));
  return {
    sync: ({ signal = NEVER, onProgress = () => {}, ...choice } = {}) =>
      withSyncApp({ config, log, choice }, ({ state, sinks, jobs }) =>
        syncAll({ state, sinks, log, signal, onProgress, holder: HOLDER }, jobs),
      ),
    status: () => withApp({ config, log }, ({ state }) => readStatus(state)),
    runs: (filter = {}) => withApp({ config, log }, ({ state }) => listRuns(state, { limit: 100, ...filter })),
    doctor: () => examine({ config, log, signal: NEVER, onFinding: () => {} }),
    moveCursor: async (track, to, { force = false } = {}) => {
      const instant = instantOf(to);
      await moving((deps) => moveCursor(deps, track, { to: instant, force }));
    },
    resetCursor: (track) => moving((deps) => resetCursor(deps, track)),
    forget: (erasure) => moving((deps) => forget(deps, erasure)),
  };
}

const HOLDER = holderOf('library');

const configOf = (config: string | object): Config =>
  typeof config === 'string'
    ? environment.config(config).config
    : parseConfig(JSON.stringify(config), 'config', variables()).config;

function instantOf(to: Date | string): Instant {
  const instant = parseInstant(to instanceof Date ? to.toISOString() : to);
  if (instant === undefined)
    throw new ConfigError('the cursor cannot move there: it is no date', {
      next: 'give a Date, or a text such as 2026-11-01T10:00Z',
    });
  return instant;
}
