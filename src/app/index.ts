import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import type { Usage } from '../api/limiter.ts';
import {
  type Config,
  type LoadedConfig,
  loadConfig,
  loadConfigOrDefaults,
  type SourceConfig,
} from '../config/index.ts';
import { recordAudit } from '../cursor/audit.ts';
import { readEvolved } from '../cursor/columns.ts';
import { addressOf } from '../cursor/database/errors.ts';
import { connect, type Database, ifTable } from '../cursor/database/index.ts';
import { openEmbedded } from '../cursor/embedded/index.ts';
import { readForgotten } from '../cursor/forgotten.ts';
import { MIGRATIONS } from '../cursor/migrations/index.ts';
import { migrate } from '../cursor/migrations/migrate.ts';
import { removeOldHistory } from '../cursor/runs.ts';
import { adoptSources, checkSources, type SourceAddress } from '../cursor/sources.ts';
import { ConfigError } from '../model/errors.ts';
import type { EvolvedColumn } from '../model/evolution.ts';
import type { Row } from '../model/flatten.ts';
import { createScrub } from '../model/forgotten.ts';
import type { Log } from '../model/log.ts';
import { STREAMS } from '../model/streams.ts';
import type { Sink } from '../sinks/sink.ts';
import type { AnyJob, LinksJob, StreamJob } from '../sync/job.ts';
import { logOfEnvironment, ownVersion, serviceName, variables, wantsTraces } from './environment.ts';
import type { Choice } from './parts.ts';
import { type Closers, withClosers } from './resources.ts';

/** Reader, limiter and sinks are loaded on demand: a command that only reads the state starts without them. */
const loadParts = () => import('./parts.ts');

export const environment = {
  log: logOfEnvironment,
  /** For commands that need a source. */
  config: (path: string): LoadedConfig => withSources(loadConfig(path, variables()), path),
  /** For commands that send no requests: no API key is needed. */
  configOrDefaults: (path: string | undefined): LoadedConfig =>
    loadConfigOrDefaults(path, variables(), { needsKeys: false }),
};

function withSources(loaded: LoadedConfig, path: string): LoadedConfig {
  if (Object.keys(loaded.config.sources).length > 0) return loaded;
  throw new ConfigError(`${path} defines no source`, {
    next: 'add one under sources: in the config file, or try tributary demo',
  });
}

/** The user and the machine of a command, for the audit trail. */
export const byCommand = (jobs: ReadonlyArray<Pick<AnyJob, 'source' | 'stream'>> = []) => ({
  actor: userInfo().username,
  from: hostname(),
  ...(jobs.length > 0 && { target: jobs.map(({ source, stream }) => `${source}/${stream}`).join(', ') }),
});

/** The folder of the embedded database, in the current directory. */
export const STATE_DIR = '.tributary';

/** Whether a state may exist: a command that only reads must not create a database. */
export const hasState = ({ state }: Config): boolean => state.url !== undefined || existsSync(STATE_DIR);

/** The state's database for display, without user and password. */
export function stateNameOf({ state: { url } }: Config): string {
  if (url === undefined) return `embedded Postgres in ${STATE_DIR}/`;
  const { host, port, database } = addressOf(url);
  return `Postgres at ${host}:${port}/${database}`;
}

export type App = Awaited<ReturnType<typeof openState>>;

export interface SyncApp extends App {
  sinks: readonly Sink[];
  jobs: readonly StreamJob[];
  links: readonly LinksJob[];
  /** One of the streams with additional filters, on the same budget. */
  narrow(job: Pick<StreamJob, 'source' | 'stream'>, filters: Readonly<Record<string, string>>): StreamJob;
  /** How the request budget of a source has been used so far. */
  usage(source: string): Usage & { perSecond: number };
}

export interface SyncAppOptions {
  config: Config;
  log: Log;
  choice?: Choice;
  /** The user confirmed that sources with a changed address are the same services. */
  adopt?: boolean;
  /** Shares the embedded server with the process that runs it: for work that yields to syncs. */
  attach?: boolean;
}

/** Opens what a sync needs, runs `work`, and closes everything. The choice is checked before anything is opened. */
export async function withSyncApp<T>(
  { config, log, choice = {}, adopt = false, attach = false }: SyncAppOptions,
  work: (app: SyncApp) => Promise<T>,
): Promise<T> {
  const parts = await loadParts();
  const streams = parts.chooseStreams(config, choice);
  const links = parts.chooseLinks(config, choice);
  const sinks = parts.chooseSinks(config, choice.sink);
  return withClosers(async (closers) => {
    await openTraces(closers);
    const app = await openState(config, { log, attach }, closers);
    const addresses = addressesOf([...streams, ...links]);
    await (adopt ? adopted(app.state, addresses) : checkSources(app.state, addresses));
    await removeOldHistory(app.state, config.state.retention);
    const budgets = parts.openBudgets(config, app.state);
    closers.push(() => budgets.close());
    return work({
      ...app,
      sinks: await parts.openSinks(sinks, { config, state: app.state, closers, log }),
      jobs: streams.map((stream) => parts.createJob(stream, budgets, config, log)),
      links: links.map((chosen) => parts.createLinksJob(chosen, budgets, config, log)),
      narrow: ({ source, stream }, filters) => {
        const chosen = streams.find((one) => one.name === source && one.stream === stream);
        if (!chosen) throw new Error(`no job of ${source}/${stream}`);
        return parts.createJob(chosen, budgets, config, log, filters);
      },
      usage: (name) => {
        const source = config.sources[name];
        if (!source) throw new Error(`no source ${name}`);
        return budgets.usage(source);
      },
    });
  });
}

const addressesOf = (streams: ReadonlyArray<{ name: string; source: SourceConfig }>): SourceAddress[] => [
  ...new Map(streams.map(({ name, source: { baseUrl } }) => [name, { name, baseUrl }])).values(),
];

async function adopted(state: Database, addresses: readonly SourceAddress[]): Promise<void> {
  for (const target of await adoptSources(state, addresses)) {
    const detail = { baseUrl: addresses.find(({ name }) => name === target)?.baseUrl };
    await recordAudit(state, { ...byCommand(), action: 'source.adopt', target, detail });
  }
}

/** For commands that only use the service: without state or sinks, and with a budget that no other process shares. */
export async function withJobs<T>(
  { config, log, choice }: { config: Config; log: Log; choice: Choice },
  work: (jobs: readonly StreamJob[]) => Promise<T>,
): Promise<T> {
  const { chooseStreams, createJob, openBudgets } = await loadParts();
  const streams = chooseStreams(config, choice);
  return withClosers(async (closers) => {
    const budgets = openBudgets(config);
    closers.push(() => budgets.close());
    return work(streams.map((stream) => createJob(stream, budgets, config, log, choice.filters)));
  });
}

/** What an export needs from the state: `scrub` removes forgotten customers; `evolved` are the columns added for unknown fields. */
export type ExportRules = Awaited<ReturnType<typeof readExportRules>>;

/**
 * The service still has forgotten customers, and they must not reappear in a file. The state is read without migrating it, because
 * an export changes nothing in it. If it cannot be read, the export fails.
 */
export async function readExportRules(
  config: Config,
  { source, stream }: Pick<StreamJob, 'source' | 'stream'>,
  log: Log,
): Promise<{ scrub(rows: readonly Row[]): Promise<readonly Row[]>; evolved: readonly EvolvedColumn[] }> {
  if (!hasState(config)) return { scrub: async (rows) => rows, evolved: [] };
  return withClosers(async (closers) => {
    const { state } = await connectState(config, { log, attach: true }, closers);
    const forgotten = await ifTable(state, 'forgotten', () => readForgotten(state, source));
    const evolved = await ifTable(state, 'columns', () => readEvolved(state, stream));
    const scrub = createScrub(STREAMS[stream], forgotten);
    return { scrub: async (rows) => scrub(rows), evolved };
  });
}

/** For commands that change stored data without the service. They may run during a sync: both take leases on streams. */
export async function withSinks<T>(
  { config, log }: { config: Config; log: Log },
  work: (app: Pick<SyncApp, 'state' | 'sinks'>) => Promise<T>,
): Promise<T> {
  const { chooseSinks, openSinks } = await loadParts();
  return withClosers(async (closers) => {
    const { state } = await openState(config, { log, attach: true }, closers);
    return work({ state, sinks: await openSinks(chooseSinks(config, undefined), { config, state, closers, log }) });
  });
}

/** For commands that only read the state. They connect to the embedded server of another process if one is running. */
export function withApp<T>({ config, log }: { config: Config; log: Log }, work: (app: App) => Promise<T>): Promise<T> {
  return withClosers(async (closers) => work(await openState(config, { log, attach: true }, closers)));
}

/** For `doctor`: opens the state without migrating it, or a temporary one if there is none yet. */
export async function withUntouched<T>(
  { config, log, stateUrl: known }: { config: Config; log: Log; stateUrl?: string | undefined },
  work: (app: { state: Database; sink(name: string): Promise<Sink> }) => Promise<T>,
): Promise<T> {
  const { chooseSinks, openSinks } = await loadParts();
  return withClosers(async (closers) => {
    const isNew = known === undefined && !hasState(config);
    const dir = isNew ? await mkdtemp(`${STATE_DIR}-doctor-`) : STATE_DIR;
    if (isNew) closers.push(() => rm(dir, { recursive: true, force: true }));
    const { state } = await connectState(config, { log, attach: true, dir, known }, closers);
    const sink = async (name: string) => (await openSinks(chooseSinks(config, name), { config, state, closers }))[0];
    return work({ state, sink: sink as (name: string) => Promise<Sink> });
  });
}

/** Loads the packages for traces only if traces are configured. */
async function openTraces(closers: Closers): Promise<void> {
  if (!wantsTraces()) return;
  const { startTraces } = await import('./traces.ts');
  closers.push(startTraces({ service: serviceName(), version: ownVersion() }));
}

interface StateOptions {
  log: Log;
  attach: boolean;
  dir?: string;
  /** The URL, for a process that has the state open. */
  known?: string | undefined;
}

async function openState(config: Config, options: StateOptions, closers: Closers) {
  const { state, url, lost } = await connectState(config, options, closers);
  await migrate(state, MIGRATIONS, { schema: 'tributary' });
  return {
    state,
    stateName: stateNameOf(config),
    /** With the password: for connections to that database, never for messages. */
    stateUrl: url,
    /** Aborted, with the reason, when the embedded server is gone permanently: otherwise a worker would look alive but do nothing. */
    lost,
  };
}

/** `lost` is aborted only for an embedded server. */
async function connectState(config: Config, { dir = STATE_DIR, known, ...options }: StateOptions, closers: Closers) {
  const url = known ?? config.state.url;
  const nothing = { lost: new AbortController().signal, close: async () => {} };
  const server = url === undefined ? await openEmbedded({ dir, ...options }) : { url, ...nothing };
  closers.push(() => server.close());
  const state = connect({ url: server.url });
  closers.push(() => state.close());
  return { state, url: server.url, lost: server.lost };
}
