import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { RetryLater } from '../../src/model/errors.ts';
import { type Sandbox, startSandbox } from '../support/odd-service/service.ts';
import { parseTraits } from '../support/odd-service/traits.ts';
import { type RedisServer, startRedisServer } from '../support/servers.ts';
import { silentLog } from '../support/silent-log.ts';

/** The environment of the workers: a service, Postgres, Redis or none, and folders. */
export interface Scene {
  sandbox: Sandbox;
  /** Retries while servers are killed. */
  db: Pick<Database, 'query'>;
  sources: readonly string[];
  /** As a power cut would. The scene restarts it. */
  killPostgres(): Promise<void>;
  redis: RedisServer | undefined;
  dir: string;
  /** The workers' folder for temporary files. */
  tmp: string;
  lake: string;
  config: string;
  diary: string;
  /** The folders may be kept for inspection. */
  close(options: { keepFolders: boolean }): Promise<void>;
}

export interface SceneOptions {
  seed: number;
  queue: 'redis' | 'postgres';
  /** So many sources of one service, each with a share of its rows. */
  sources: number;
}

export const SINKS = { warehouse: 'warehouse', lake: 'lake' } as const;
export const HISTORY_DAYS = 4;
/** The token of the control room. */
export const TOKEN = 'tk-endurance-4mHq2vX9';

/** The service's events at the start: enough to keep workers reading, few enough to compare at the end. */
const HISTORY = { clicks: 20_000, leads: 4000, sales: 2000 };
/** Behaviours of deployed services that a worker must always handle. */
const TRAITS = ['shuffleTies', 'volatile', 'lateness=3s', 'duplicates=0.02', 'rewrites=0.02'];
/** Streams are polled all the time, and anything older than `settle` is proven: at the end that is everything. */
const streamOf = (sources: number) => ({ every: `${1 + sources}s`, lookback: '1m', settle: '15s' });

export async function openScene({ seed, queue, sources: count }: SceneOptions): Promise<Scene> {
  const closers: Array<() => Promise<unknown>> = [];
  const folders: string[] = [];
  const folder = async (name: string): Promise<string> => {
    const made = await mkdtemp(join(tmpdir(), `tributary-endure-${name}-`));
    folders.push(made);
    return made;
  };
  const settings = { fsync: 'off', max_connections: '200' };
  const home = await folder('state');
  const server = await openEmbedded({ dir: home, log: silentLog, command: 'endure', settings });
  closers.push(() => server.close());
  const pool = connect({ url: server.url, max: 2, name: 'endure' });
  closers.push(() => pool.close());
  const db = patient(pool);
  const redis = queue === 'redis' ? await startRedisServer() : undefined;
  closers.push(async () => redis?.close());
  const sandbox = await startSandbox({
    seed,
    rows: shareOf(count),
    days: HISTORY_DAYS,
    traits: parseTraits(TRAITS),
    requestsPerSecond: null,
  });
  closers.push(() => sandbox.close());

  const dir = await folder('work');
  const [tmp, diary] = [join(dir, 'tmp'), join(dir, 'diary')];
  for (const each of [tmp, diary]) await mkdir(each);
  const { baseUrl, apiKey } = sandbox;
  const source = { baseUrl, apiKey, plan: 'enterprise', requestsPerSecond: 1000, since: `${HISTORY_DAYS + 1}d` };
  const sources = Array.from({ length: count }, (_, i) => (count === 1 ? 'main' : `s${i + 1}`));
  const stream = streamOf(count);
  const streams = { clicks: stream, leads: stream, sales: stream };
  const text = JSON.stringify({
    sources: Object.fromEntries(sources.map((name) => [name, { ...source, streams }])),
    sinks: {
      [SINKS.warehouse]: { type: 'postgres' },
      [SINKS.lake]: { type: 'parquet', path: './lake', partition: count === 1 ? 'hour' : 'day' },
    },
    state: { url: server.url },
    ...(redis && { queue: { url: redis.url } }),
    http: { port: 0, token: TOKEN },
  });
  const config = join(dir, 'tributary.yaml');
  await writeFile(config, text);
  return {
    ...{ sandbox, db, sources, redis, dir, tmp, diary, config },
    async killPostgres() {
      const [pid] = (await readFile(join(home, 'postgres/postmaster.pid'), 'utf8')).split('\n');
      process.kill(Number(pid), 'SIGKILL');
    },
    lake: join(dir, 'lake'),
    async close({ keepFolders }) {
      for (const closer of closers.reverse()) await closer();
      if (!keepFolders) for (const made of folders) await rm(made, { recursive: true, force: true });
    },
  };
}

const shareOf = (sources: number) => ({
  clicks: Math.ceil(HISTORY.clicks / sources),
  leads: Math.ceil(HISTORY.leads / sources),
  sales: Math.ceil(HISTORY.sales / sources),
});

const PATIENCE_MS = 60_000;

/** Retries while the server is down, which is only for a moment. */
function patient(db: Database): Scene['db'] {
  return {
    async query(sql) {
      for (const deadline = Date.now() + PATIENCE_MS; ; await sleep(200)) {
        try {
          return await db.query(sql);
        } catch (error) {
          if (!(error instanceof RetryLater) || Date.now() > deadline) throw error;
        }
      }
    },
  };
}
