import { createClient, type LinksQuery } from '../api/client.ts';
import { createEventsApi } from '../api/events-api.ts';
import { checkFilters } from '../api/filters.ts';
import { createLimiter, type Limiter } from '../api/limiter.ts';
import { standardPerMinute } from '../api/plans.ts';
import type { Config, SourceConfig } from '../config/index.ts';
import { readAgainMs } from '../config/sinks.ts';
import { type BudgetKind, keyHashOf, openSharedBudgets } from '../cursor/budgets.ts';
import { connect, type Database } from '../cursor/database/index.ts';
import { createAskPage } from '../extract/links/ask.ts';
import { createFlattenLink } from '../extract/links/link-row.ts';
import { listLinks } from '../extract/links/listing.ts';
import { createProbe } from '../extract/probe.ts';
import { createReader } from '../extract/reader.ts';
import { periodOf } from '../jobs/schedule.ts';
import { ConfigError } from '../model/errors.ts';
import { createFlatten } from '../model/flatten.ts';
import type { Log } from '../model/log.ts';
import { STREAM_NAMES, STREAMS, type StreamName, type SyncName } from '../model/streams.ts';
import type { ReadAgainMs } from '../sinks/files/event-index.ts';
import { createPostgresSink } from '../sinks/postgres/postgres-sink.ts';
import type { Sink } from '../sinks/sink.ts';
import { BEFORE_ALL, type LinksJob, resolveSince, type StreamJob } from '../sync/job.ts';
import { s3Settings } from './environment.ts';
import type { Closers } from './resources.ts';

/** What the user chose to sync. An omitted choice means all. */
export interface Choice {
  source?: string | undefined;
  streams?: readonly SyncName[];
  sink?: string | undefined;
  filters?: Filters;
}

type Filters = Readonly<Record<string, string>>;

type ChosenStream = ReturnType<typeof chooseStreams>[number];

type ChosenLinks = ReturnType<typeof chooseLinks>[number];

/** The sources whose links are listed: all that configure it, unless only event streams were chosen. */
export function chooseLinks(config: Config, { source: only, streams = [] }: Choice) {
  if (streams.length > 0 && !streams.includes('links')) return [];
  const chosen = Object.entries(config.sources).flatMap(([name, source]) =>
    source.links && (only === undefined || name === only) ? [{ name, source, settings: source.links }] : [],
  );
  if (chosen.length > 0 || !streams.includes('links')) return chosen;
  throw new ConfigError(
    `${only === undefined ? 'no source of the config lists' : `source "${only}" does not list`} links`,
    { next: 'add links: { every: 1d } to the source' },
  );
}

/** The chosen streams of the config: at least one, unless only links were chosen. */
export function chooseStreams(config: Config, { source: only, streams: wanted = [] }: Choice) {
  const names = Object.keys(config.sources);
  if (names.length === 0) {
    throw new ConfigError('the config defines no source', {
      next: 'add one under sources: in the config file, or try tributary demo',
    });
  }
  if (only !== undefined && !names.includes(only)) throw unknownName('source', only, names);
  const streams = wanted.filter((name) => name !== 'links');
  if (streams.length < wanted.length && streams.length === 0) return [];
  const chosen = Object.entries(config.sources)
    .filter(([name]) => only === undefined || name === only)
    .flatMap(([name, source]) =>
      STREAM_NAMES.flatMap((stream) => {
        const settings = source.streams[stream];
        const isChosen = streams.length === 0 || streams.includes(stream);
        return settings && isChosen ? [{ name, source, stream, settings }] : [];
      }),
    );
  // A stream that no source has configured would otherwise succeed without doing anything.
  const idle = streams.filter((stream) => !chosen.some((one) => one.stream === stream));
  if (idle.length > 0) {
    const where = only === undefined ? 'no source of the config' : `source "${only}" does not`;
    throw new ConfigError(`${where} ${only === undefined ? 'syncs' : 'sync'} ${idle.join(', ')}`, {
      next: `add ${idle.join(', ')} under streams: of the source`,
    });
  }
  return chosen;
}

export const unknownName = (what: 'source' | 'sink', name: string, known: readonly string[]): ConfigError =>
  new ConfigError(`there is no ${what} "${name}" in the config`, { next: `use one of: ${known.join(', ')}` });

type Budgets = ReturnType<typeof openBudgets>;

/**
 * One limiter per key: sources that share a key share its budget, at the lowest of their rates. With a state,
 * its slots come from there and are shared with all other processes; without one, the process keeps its own pace.
 */
export function openBudgets(config: Config, state?: Database) {
  const shared = state && openSharedBudgets(state);
  const open = (kind: BudgetKind, rateOf: (source: SourceConfig) => number) => {
    const rates = new Map<string, number>();
    for (const source of Object.values(config.sources)) {
      const rate = rateOf(source);
      rates.set(source.apiKey, Math.min(rate, rates.get(source.apiKey) ?? rate));
    }
    const limiters = new Map(
      [...rates].map(([key, rate]) => [
        key,
        createLimiter({ requestsPerSecond: rate, ...(shared && { budget: shared.of(key, rate, kind) }) }),
      ]),
    );
    const of = ({ apiKey }: SourceConfig): Limiter => {
      const limiter = limiters.get(apiKey);
      if (!limiter) throw new Error('every source of the config has a limiter');
      return limiter;
    };
    return { rates, limiters, of };
  };
  const events = open('analytics', ({ requestsPerSecond }) => requestsPerSecond);
  const standard = open('standard', ({ plan }) => standardPerMinute(plan) / 60);
  return {
    of: events.of,
    /** For all endpoints but analytics: listing links never uses the budget of events. */
    standard: standard.of,
    usage: (source: SourceConfig) => ({
      ...events.of(source).usage(),
      perSecond: events.rates.get(source.apiKey) ?? 0,
    }),
    async close() {
      for (const limiter of [...events.limiters.values(), ...standard.limiters.values()]) limiter.close();
      await shared?.close();
    },
  };
}

export function createJob(
  { name, source, stream, settings }: ChosenStream,
  budgets: Budgets,
  config: Config,
  log: Log,
  further: Filters = {},
): StreamJob {
  const client = createClient(source);
  const api = createEventsApi({ client, limiter: budgets.of(source), log: log.child({ source: name }), source: name });
  const ofStream = log.child({ source: name, stream });
  const { query: filters, warnings } = soundFilters(stream, settings.filters.query, further, ofStream);
  const flatten = createFlatten(STREAMS[stream], config.privacy);
  return {
    source: name,
    stream,
    keyHash: keyHashOf(source.apiKey),
    unknownFields: settings.unknownFields,
    filters: describeFilters(filters),
    warnings: warnings.map((warning) => `${name}/${stream}: ${warning}`),
    policy: { lookbackMs: settings.lookback, settleMs: settings.settle, resweepMs: settings.resweep },
    createReader: (profile, since, { settleMs = settings.settle, hasShown } = {}) => {
      // Learned from refused requests; a service that accepts every start does not reveal where its history begins.
      const earliest = source.since === 'all' && since > BEFORE_ALL ? since : undefined;
      return createReader({ api, stream, filters, profile, flatten, earliest, settleMs, hasShown });
    },
    probe: createProbe({ api, stream, filters, flatten }),
    requestsPerSecond: source.requestsPerSecond,
    everyMs: periodOf(settings.schedule),
    findSince: (known, signal) => resolveSince({ since: source.since, known, api, stream, filters, signal }),
    requests: () => api.stats(),
  };
}

export function createLinksJob(
  { name, source, settings }: ChosenLinks,
  budgets: Budgets,
  config: Config,
  log: Log,
): LinksJob {
  const api = createEventsApi<LinksQuery>({
    client: createClient(source),
    limiter: budgets.standard(source),
    log: log.child({ source: name }),
    source: name,
  });
  const flatten = createFlattenLink(config.privacy);
  return {
    source: name,
    stream: 'links',
    keyHash: keyHashOf(source.apiKey),
    everyMs: settings.every,
    keepHistory: settings.history,
    list: ({ hadLinks, signal, onSeen }) => listLinks(createAskPage({ api, flatten, signal }), hadLinks, onSeen),
    requests: () => api.stats(),
  };
}

/** In canonical order, whatever the order in the config. */
const describeFilters = (filters: Filters): string =>
  Object.entries(filters)
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join('&');

/** Checks the config's filters together with a command's. Warnings about the config's were logged when it was read. */
function soundFilters(stream: StreamName, own: Filters, further: Filters, log: Log) {
  const { query, faults, warnings } = checkFilters(stream, { ...own, ...further });
  if (faults.length > 0) {
    throw new ConfigError('a filter cannot be used:', {
      faults: faults.map(({ message }) => message),
      next: 'fix it; docs/configuration.md lists the filters, their values and streams',
    });
  }
  const said = checkFilters(stream, own).warnings;
  for (const warning of warnings) if (!said.includes(warning)) log.warn({ filters: further }, warning);
  return { query, warnings };
}

type SinkSettings = Config['sinks'][string];
type ChosenSink = [name: string, settings: SinkSettings];

export function chooseSinks({ sinks }: Config, only: string | undefined): ChosenSink[] {
  const names = Object.keys(sinks);
  if (only !== undefined && !names.includes(only)) throw unknownName('sink', only, names);
  return Object.entries(sinks).filter(([name]) => only === undefined || name === only);
}

interface Opening {
  config: Config;
  state: Database;
  closers: Closers;
  log?: Log;
}

export async function openSinks(chosen: readonly ChosenSink[], opening: Opening): Promise<Sink[]> {
  const sinks: Sink[] = [];
  for (const [name, settings] of chosen) {
    const sink = await openByType(name, settings, opening);
    opening.closers.push(() => sink.close());
    sinks.push(settings.keep === undefined ? sink : { ...sink, keepMs: settings.keep });
  }
  return sinks;
}

async function openByType(name: string, settings: SinkSettings, opening: Opening): Promise<Sink> {
  const { config, state, closers, log } = opening;
  if (settings.type === 'postgres') {
    const { url, schema, partition, indexes } = settings;
    // In the state's database, data and cursor share a transaction. Only equal URLs prove that it is the same database.
    const db = url === undefined || url === config.state.url ? state : connect({ url });
    if (db !== state) closers.push(() => db.close());
    return createPostgresSink({ name, db, schema, state, partition, indexes, ...(log && { log }) });
  }
  // Imported on demand: most configs write no files.
  const { openStore } = await import('../sinks/files/store/open-store.ts');
  const { fileMode } = settings;
  const place = settings.type === 'parquet' ? settings.path : settings.warehouse;
  const again: ReadAgainMs = (source, stream) => readAgainMs(config.sources[source]?.streams[stream]);
  const files = { name, state, store: await openStore(place, { ...s3Settings(), fileMode }), readAgainMs: again };
  if (settings.type === 'parquet') {
    const { createParquetSink } = await import('../sinks/parquet/parquet-sink.ts');
    return createParquetSink({ ...files, scheme: settings.partition, compression: settings.compression });
  }
  const { createIcebergSink } = await import('../sinks/iceberg/iceberg-sink.ts');
  const { warehouse, namespace, catalog, keepSnapshots: keep } = settings;
  const where = { ...files, warehouse, namespace, ...(catalog.type === 'rest' && { rest: catalog }) };
  return createIcebergSink({ ...where, maintenance: { keep } });
}
