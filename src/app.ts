import { createClient } from './api/client.ts';
import { createEventsApi } from './api/events-api.ts';
import { createPacer, type Pacer } from './api/pacer.ts';
import type { Usage } from './api/usage.ts';
import { type LoadedConfig, loadConfig, loadConfigOrDefaults } from './config.ts';
import type { Config, SourceConfig, StreamConfig } from './config-schema.ts';
import { connect, type Database } from './cursor/database.ts';
import { openEmbedded } from './cursor/embedded.ts';
import { migrate } from './cursor/migrate.ts';
import { MIGRATIONS } from './cursor/migrations.ts';
import { createReader } from './extract/certified-reader.ts';
import { createLog } from './log.ts';
import { ConfigError } from './model/errors.ts';
import { createFlatten } from './model/flatten.ts';
import type { Log } from './model/log.ts';
import { STREAM_NAMES, STREAMS, type StreamName } from './model/streams.ts';
import { createPostgresSink } from './sinks/postgres/postgres-sink.ts';
import type { Sink } from './sinks/sink.ts';
import type { StreamJob } from './sync/job.ts';
import { resolveSince } from './sync/since.ts';

/** The one place that reads the environment and puts the parts together. */

export const environment = {
  log: (): Log => createLog({ level: process.env.TRIBUTARY_LOG || 'warn', isForPeople: process.stderr.isTTY === true }),
  noColour: (): boolean => (process.env.NO_COLOR ?? '') !== '',
  config: (path: string): LoadedConfig => loadConfig(path, process.env),
  configOrDefaults: (path: string | undefined): LoadedConfig => loadConfigOrDefaults(path, process.env),
};

/** Where the embedded database lives, next to where the command is run. */
export const STATE_DIR = '.tributary';

export interface App {
  config: Config;
  state: Database;
  /** For people: which database the state is in. */
  stateName: string;
  sinks: Sink[];
  /** The streams to sync: all of them, or those of one source, or those named. */
  jobs(choice: { source?: string | undefined; streams?: readonly StreamName[] }): StreamJob[];
  /** How the request budget of each source has been used so far. */
  usage(source: string): Usage & { perSecond: number };
  close(): Promise<void>;
}

export interface AppOptions {
  config: Config;
  log: Log;
  /** For commands that only read: use the embedded server of another process, if one has it. */
  attach?: boolean;
  /** Only this sink. */
  sink?: string | undefined;
}

export async function openApp({ config, log, attach = false, sink }: AppOptions): Promise<App> {
  const closers: Array<() => Promise<void> | void> = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const { state, stateName } = await openState(config, log, attach, closers);
    const sinks = openSinks(config, state, closers, sink);
    const pacers = openPacers(config, closers);
    return {
      config,
      state,
      stateName,
      sinks,
      jobs: (choice) => chosenJobs(config, choice).map((job) => createJob(job, pacers, config, log)),
      usage: (source) => usageOf(source, config, pacers),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

type Closers = Array<() => Promise<void> | void>;

async function openState(
  { state: { url } }: Config,
  log: Log,
  attach: boolean,
  closers: Closers,
): Promise<Pick<App, 'state' | 'stateName'>> {
  let stateUrl = url;
  if (stateUrl === undefined) {
    const embedded = await openEmbedded({ dir: STATE_DIR, log, attach });
    closers.push(() => embedded.close());
    stateUrl = embedded.url;
  }
  const state = connect({ url: stateUrl });
  closers.push(() => state.close());
  await migrate(state, MIGRATIONS, { schema: 'tributary' });
  return { state, stateName: url === undefined ? `embedded Postgres in ${STATE_DIR}/` : nameOf(url) };
}

function openSinks(config: Config, state: Database, closers: Closers, only: string | undefined): Sink[] {
  const names = Object.keys(config.sinks);
  if (only !== undefined && !names.includes(only)) throw unknown('sink', only, names);
  return names
    .filter((name) => only === undefined || name === only)
    .map((name) => {
      const settings = config.sinks[name];
      if (settings?.type !== 'postgres') {
        throw new ConfigError(`sink ${name}: parquet is not in this version yet`, {
          next: `take sinks.${name} out of the config`,
        });
      }
      const { url, schema } = settings;
      // One database, one transaction: data and cursor can only be told apart by URL.
      const db = url === undefined || url === config.state.url ? state : connect({ url });
      if (db !== state) closers.push(() => db.close());
      const sink = createPostgresSink({ name, db, schema, state });
      closers.push(() => sink.close());
      return sink;
    });
}

/** One pacer per key: sources that share a key share its budget. */
function openPacers(config: Config, closers: Closers): Map<string, Pacer> {
  const pacers = new Map<string, Pacer>();
  for (const { apiKey, requestsPerSecond } of Object.values(config.sources)) {
    if (pacers.has(apiKey)) continue;
    const pacer = createPacer({ requestsPerSecond });
    closers.push(() => pacer.close());
    pacers.set(apiKey, pacer);
  }
  return pacers;
}

interface ChosenJob {
  name: string;
  source: SourceConfig;
  stream: StreamName;
  settings: StreamConfig;
}

function chosenJobs(
  config: Config,
  choice: { source?: string | undefined; streams?: readonly StreamName[] },
): ChosenJob[] {
  const names = Object.keys(config.sources);
  if (names.length === 0) {
    throw new ConfigError('the config names no source', {
      next: 'add one under sources: in the config file, or try `tributary demo`',
    });
  }
  if (choice.source !== undefined && !names.includes(choice.source)) throw unknown('source', choice.source, names);
  return Object.entries(config.sources)
    .filter(([name]) => choice.source === undefined || name === choice.source)
    .flatMap(([name, source]) =>
      STREAM_NAMES.flatMap((stream) => {
        const settings = source.streams[stream];
        const isChosen = !choice.streams?.length || choice.streams.includes(stream);
        return settings && isChosen ? [{ name, source, stream, settings }] : [];
      }),
    );
}

function createJob(
  { name, source, stream, settings }: ChosenJob,
  pacers: Map<string, Pacer>,
  config: Config,
  log: Log,
): StreamJob {
  const pacer = pacers.get(source.apiKey);
  if (!pacer) throw new Error(`no pacer for source ${name}`);
  const api = createEventsApi({ client: createClient(source), pacer, log: log.child({ source: name }) });
  const filters = settings.filters.query;
  return {
    source: name,
    stream,
    upkeep: { lookbackMs: settings.lookback, settleMs: settings.settle, resweepMs: settings.resweep },
    createReader: (profile) =>
      createReader({ api, stream, filters, profile, flatten: createFlatten(STREAMS[stream], config.privacy) }),
    findSince: (known, signal) => resolveSince({ since: source.since, known, api, stream, filters, signal }),
    requests: () => api.stats(),
  };
}

function usageOf(name: string, config: Config, pacers: Map<string, Pacer>): Usage & { perSecond: number } {
  const source = config.sources[name];
  const pacer = source && pacers.get(source.apiKey);
  if (!pacer) throw new Error(`no pacer for source ${name}`);
  return { ...pacer.usage(), perSecond: source.requestsPerSecond };
}

const unknown = (what: string, name: string, known: readonly string[]): ConfigError =>
  new ConfigError(`there is no ${what} "${name}" in the config`, {
    next: known.length > 0 ? `use one of: ${known.join(', ')}` : `add it under ${what}s:`,
  });

/** A database URL for people: without user and password. */
function nameOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `Postgres at ${host}${pathname}`;
}
