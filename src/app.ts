import { existsSync } from 'node:fs';
import type { Usage } from './api/usage.ts';
import { type Choice, chooseStreams, createJob, openBudgets, unknownName } from './app-jobs.ts';
import { type LoadedConfig, loadConfig, loadConfigOrDefaults } from './config.ts';
import type { Config } from './config-schema.ts';
import { connect, type Database } from './cursor/database.ts';
import { openEmbedded } from './cursor/embedded.ts';
import { migrate } from './cursor/migrate.ts';
import { MIGRATIONS } from './cursor/migrations.ts';
import { createLog } from './log.ts';
import type { Log } from './model/log.ts';
import { createParquetSink } from './sinks/parquet/parquet-sink.ts';
import { openStore } from './sinks/parquet/store/open-store.ts';
import { createPostgresSink } from './sinks/postgres/postgres-sink.ts';
import type { Sink } from './sinks/sink.ts';
import type { StreamJob } from './sync/job.ts';

/** The one place that reads the environment and puts the parts together. */

export const environment = {
  log: (): Log => createLog({ level: process.env.TRIBUTARY_LOG || 'warn', isForPeople: process.stderr.isTTY === true }),
  noColour: (): boolean => (process.env.NO_COLOR ?? '') !== '',
  config: (path: string): LoadedConfig => loadConfig(path, process.env),
  configOrDefaults: (path: string | undefined): LoadedConfig => loadConfigOrDefaults(path, process.env),
};

/** Where the embedded database lives, next to where the command is run. */
const STATE_DIR = '.tributary';

/** Whether there can be anything to look at: a command that only reads shall not create a database for it. */
export const hasState = ({ state }: Config): boolean => state.url !== undefined || existsSync(STATE_DIR);

/** For people: which database the state is in, without user and password. */
export function stateNameOf({ state: { url } }: Config): string {
  if (url === undefined) return `embedded Postgres in ${STATE_DIR}/`;
  const { host, pathname } = new URL(url);
  return `Postgres at ${host}${pathname}`;
}

export interface App {
  state: Database;
  stateName: string;
}

/** An app with something to sync, and somewhere to put it. */
export interface SyncApp extends App {
  sinks: readonly Sink[];
  jobs: readonly StreamJob[];
  /** How the request budget of a source has been used so far. */
  usage(source: string): Usage & { perSecond: number };
}

type Closers = Array<() => Promise<void> | void>;

/** Opens what a sync needs, runs it, and closes everything again. What was chosen is checked before anything is touched. */
export async function withSyncApp<T>(
  { config, log, choice = {} }: { config: Config; log: Log; choice?: Choice },
  work: (app: SyncApp) => Promise<T>,
): Promise<T> {
  const streams = chooseStreams(config, choice);
  const sinks = chooseSinks(config, choice.sink);
  return closing(async (closers) => {
    const app = await openState(config, { log, attach: false }, closers);
    const budgets = openBudgets(config);
    closers.push(() => budgets.close());
    return work({
      ...app,
      sinks: await openSinks(sinks, config, app.state, closers),
      jobs: streams.map((stream) => createJob(stream, budgets, config, log)),
      usage: (name) => {
        const source = config.sources[name];
        if (!source) throw new Error(`no source ${name}`);
        return budgets.usage(source);
      },
    });
  });
}

/** For commands that change what is stored without asking the service. Leases keep them and a sync apart, so both may be here. */
export function withSinks<T>(
  { config, log }: { config: Config; log: Log },
  work: (app: Pick<SyncApp, 'state' | 'sinks'>) => Promise<T>,
): Promise<T> {
  return closing(async (closers) => {
    const { state } = await openState(config, { log, attach: true }, closers);
    return work({ state, sinks: await openSinks(chooseSinks(config, undefined), config, state, closers) });
  });
}

/** For commands that only read the state: they use the embedded server of another process, if one has it. */
export function withApp<T>({ config, log }: { config: Config; log: Log }, work: (app: App) => Promise<T>): Promise<T> {
  return closing(async (closers) => work(await openState(config, { log, attach: true }, closers)));
}

/** Whatever was opened is closed in the opposite order, also when something further on fails to open. */
async function closing<T>(work: (closers: Closers) => Promise<T>): Promise<T> {
  const closers: Closers = [];
  try {
    return await work(closers);
  } finally {
    for (const closer of closers.reverse()) await closer();
  }
}

async function openState(
  config: Config,
  { log, attach }: { log: Log; attach: boolean },
  closers: Closers,
): Promise<App> {
  let { url } = config.state;
  if (url === undefined) {
    const embedded = await openEmbedded({ dir: STATE_DIR, log, attach });
    closers.push(() => embedded.close());
    url = embedded.url;
  }
  const state = connect({ url });
  closers.push(() => state.close());
  await migrate(state, MIGRATIONS, { schema: 'tributary' });
  return { state, stateName: stateNameOf(config) };
}

type SinkSettings = Config['sinks'][string];
type ChosenSink = [name: string, settings: SinkSettings];

function chooseSinks({ sinks }: Config, only: string | undefined): ChosenSink[] {
  const names = Object.keys(sinks);
  if (only !== undefined && !names.includes(only)) throw unknownName('sink', only, names);
  return Object.entries(sinks).filter(([name]) => only === undefined || name === only);
}

async function openSinks(
  chosen: readonly ChosenSink[],
  config: Config,
  state: Database,
  closers: Closers,
): Promise<Sink[]> {
  const sinks: Sink[] = [];
  for (const [name, settings] of chosen) {
    const sink =
      settings.type === 'postgres'
        ? openWarehouse(name, settings, config, state, closers)
        : await openLake(name, settings, state);
    closers.push(() => sink.close());
    sinks.push(sink);
  }
  return sinks;
}

function openWarehouse(
  name: string,
  { url, schema }: SinkSettings & { type: 'postgres' },
  config: Config,
  state: Database,
  closers: Closers,
): Sink {
  // One database, one transaction: that it is the same one can only be told by the URL.
  const db = url === undefined || url === config.state.url ? state : connect({ url });
  if (db !== state) closers.push(() => db.close());
  return createPostgresSink({ name, db, schema, state });
}

async function openLake(
  name: string,
  { path, partition, compression }: SinkSettings & { type: 'parquet' },
  state: Database,
): Promise<Sink> {
  // Whoever names another server than Amazon's has one that knows buckets only as the first step of a path.
  const pathStyle = Boolean(process.env.AWS_ENDPOINT_URL_S3 || process.env.AWS_ENDPOINT_URL);
  const store = await openStore(path, { pathStyle });
  return createParquetSink({ name, store, state, scheme: partition, compression });
}
