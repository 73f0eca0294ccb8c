import { expect } from 'vitest';
import { withSyncApp } from '../../src/app/index.ts';
import { type Config, parseConfig } from '../../src/config/index.ts';
import { holderOf } from '../../src/cursor/database/holders.ts';
import { connect, type Database } from '../../src/cursor/database/index.ts';

import { UNKNOWN_SERVER, writeProfile } from '../../src/cursor/sources.ts';

import { STREAM_NAMES, type StreamName } from '../../src/model/streams.ts';
import type { BackfillRequest } from '../../src/sync/backfill/unread.ts';
import type { SyncProgress } from '../../src/sync/job.ts';
import { backfillAll, type Outcome, syncAll } from '../../src/sync/sync-stream.ts';
import type { Sandbox } from './odd-service/service.ts';
import { freshDatabase, stateDatabase, type TestDatabase } from './postgres.ts';
import { silentLog } from './silent-log.ts';
import { newSource } from './sink-harness.ts';

/** The engine on a real database: everything from the service's HTTP to the tables, without the CLI. */
export interface Engine {
  url: string;
  db: Database;
  close(): Promise<void>;
}

export const openEngine = async (): Promise<Engine> => engineOn(await stateDatabase());

/** An engine on an empty database. */
export const emptyEngine = async (): Promise<Engine> => engineOn(await freshDatabase());

function engineOn(home: TestDatabase): Engine {
  const db = connect({ url: home.url, max: 3 });
  return {
    url: home.url,
    db,
    async close() {
      await db.close();
      await home.drop();
    },
  };
}

export interface SourceOptions {
  name?: string;
  since?: string;
  /** Where the rows go; by default the state's database. */
  sinkUrl?: string;
  /** Other sinks instead. */
  sinks?: Record<string, object>;
  streams?: Record<string, object>;
  requestsPerSecond?: number;
  /** A Redis for the queue; by default the state's database. */
  queueUrl?: string | undefined;
}

/** A config as a user would write it, for one sandbox. */
export const configFor = (engine: Pick<Engine, 'url'>, sandbox: Sandbox, options: SourceOptions = {}): Config =>
  parseConfig(configText(engine, sandbox, options), 'test.yaml', {}).config;

export function configText({ url }: Pick<Engine, 'url'>, sandbox: Sandbox, options: SourceOptions): string {
  const { name = newSource(), since = '30d', sinkUrl, streams, requestsPerSecond = 500, queueUrl } = options;
  const { sinks = { warehouse: { type: 'postgres', ...(sinkUrl && { url: sinkUrl }) } } } = options;
  const { baseUrl, apiKey } = sandbox;
  return JSON.stringify({
    sources: { [name]: { baseUrl, apiKey, plan: 'enterprise', requestsPerSecond, since, ...(streams && { streams }) } },
    sinks,
    state: { url },
    ...(queueUrl && { queue: { url: queueUrl } }),
  });
}

/** Simulates a service with a lower limit of rows a page: many pages of few rows. The reader tries twice as many. */
export async function withSmallPages(db: Database, config: Config, pageRows: number): Promise<void> {
  for (const stream of STREAM_NAMES) {
    await writeProfile(db, sourceOf(config), stream, { ...UNKNOWN_SERVER, pageRows });
  }
}

export interface SyncOptions {
  streams?: readonly StreamName[];
  signal?: AbortSignal;
  onProgress?(progress: SyncProgress): void;
  recount?: boolean;
}

/** Runs `tributary sync`. */
export function sync(config: Config, options: SyncOptions = {}): Promise<Outcome[]> {
  const { streams = [], signal = new AbortController().signal, onProgress = () => {}, recount = false } = options;
  return withSyncApp({ config, log: silentLog, choice: { streams } }, ({ state, sinks, jobs }) =>
    syncAll({ state, sinks, log: silentLog, signal, holder: holderOf('sync'), onProgress, recount }, jobs),
  );
}

/** Runs `tributary backfill`. */
export function backfill(
  config: Config,
  request: BackfillRequest,
  { streams = [], signal = new AbortController().signal, onProgress = () => {} }: SyncOptions = {},
): Promise<Outcome[]> {
  return withSyncApp({ config, log: silentLog, choice: { streams } }, ({ state, sinks, jobs }) =>
    backfillAll({ state, sinks, log: silentLog, signal, holder: holderOf('backfill'), onProgress }, jobs, request),
  );
}

/** The states of all streams; a fault is shown by its text. */
export const statesOf = (outcomes: readonly Outcome[]): string[] =>
  outcomes.map(({ report, fault }) => report?.state ?? fault?.describe() ?? 'nothing');

export async function syncAllDone(config: Config): Promise<Outcome[]> {
  const outcomes = await sync(config);
  const faults = outcomes.map(({ fault }) => fault?.describe()).filter(Boolean);
  expect({ states: statesOf(outcomes), faults }).toEqual({ states: ['done', 'done', 'done'], faults: [] });
  return outcomes;
}

export const sourceOf = (config: Config): string => Object.keys(config.sources)[0] ?? '';

export async function storedIds(
  db: Database,
  config: Config,
  stream: StreamName,
  schema = 'attribution',
): Promise<string[]> {
  const rows = await db.query<{ id: string }>({
    text: `select event_id as id from ${schema}.${stream} where _source = $1 order by event_id collate "C"`,
    values: [sourceOf(config)],
  });
  return rows.map(({ id }) => id);
}

/** Checks that the tables hold every event of the service once, and nothing else. */
export async function expectComplete(db: Database, config: Config, { service }: Sandbox): Promise<void> {
  for (const stream of STREAM_NAMES) {
    const stored = await storedIds(db, config, stream);
    const there = new Set(service.ids(stream));
    const missing = [...there].filter((id) => !stored.includes(id));
    const invented = stored.filter((id) => !there.has(id));
    expect({ stream, missing, invented }).toEqual({ stream, missing: [], invented: [] });
    expect(new Set(stored).size).toBe(stored.length);
  }
}

/** Deletes all proofs: the next sync reads everything again. */
export async function forgetProofs(db: Database, config: Config): Promise<void> {
  for (const table of ['cursors', 'windows']) {
    await db.query({ text: `delete from tributary.${table} where source = $1`, values: [sourceOf(config)] });
  }
}

/** Postgres's row versions: they change when a row is written, even with the same values. */
export async function versionsOf(db: Database, config: Config): Promise<object[]> {
  const parts = STREAM_NAMES.map(
    (stream) => `select '${stream}' as stream, event_id, xmin::text from attribution.${stream} where _source = $1`,
  );
  return db.query({ text: `${parts.join(' union all ')} order by 1, 2`, values: [sourceOf(config)] });
}

/** How many rows are marked as missing at the service. */
export async function missingIn(db: Database, config: Config): Promise<number> {
  const parts = STREAM_NAMES.map(
    (stream) => `select 1 from attribution.${stream} where _source = $1 and _missing_since is not null`,
  );
  return (await db.query({ text: parts.join(' union all '), values: [sourceOf(config)] })).length;
}

export const tallies = (outcomes: readonly Outcome[]): Array<[new_: number, changed: number]> =>
  outcomes.map(({ report }) => [report?.tally.new ?? -1, report?.tally.changed ?? -1]);
