import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/server.ts';
import { parseTraits } from '../../src/sandbox/traits.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { silentLog } from '../support/silent-log.ts';

/** Where the workers live: a service, a Postgres, a Redis or none, and folders of their own. */
export interface Scene {
  sandbox: Sandbox;
  db: Database;
  redis: RedisServer | undefined;
  dir: string;
  /** Where the workers' temporary files would be. */
  tmp: string;
  lake: string;
  config: string;
  diary: string;
  /** The folders may be kept, to be looked at. */
  close(options: { keepFolders: boolean }): Promise<void>;
}

export interface SceneOptions {
  seed: number;
  queue: 'redis' | 'postgres';
}

export const SOURCE = 'main';
export const SINKS = { warehouse: 'warehouse', lake: 'lake' } as const;
export const HISTORY_DAYS = 4;

/** What the service has before anything arrives: enough to keep workers reading, little enough to be compared in the end. */
const HISTORY = { clicks: 20_000, leads: 4000, sales: 2000 };
/** Ways of deployed services that a worker has to live with for ever. */
const TRAITS = ['shuffleTies', 'volatile', 'lateness=3s', 'duplicates=0.02', 'rewrites=0.02'];
/** Streams are looked at all the time, and what is older than `settle` is proven: at the end that is everything. */
const STREAM = { every: '2s', lookback: '1m', settle: '15s' };

export async function openScene({ seed, queue }: SceneOptions): Promise<Scene> {
  const closers: Array<() => Promise<unknown>> = [];
  const folders: string[] = [];
  const folder = async (name: string): Promise<string> => {
    const made = await mkdtemp(join(tmpdir(), `tributary-endure-${name}-`));
    folders.push(made);
    return made;
  };
  const settings = { fsync: 'off', max_connections: '200' };
  const server = await openEmbedded({ dir: await folder('state'), log: silentLog, command: 'endure', settings });
  closers.push(() => server.close());
  const db = connect({ url: server.url, max: 2, name: 'endure' });
  closers.push(() => db.close());
  const redis = queue === 'redis' ? await startRedisServer() : undefined;
  closers.push(async () => redis?.close());
  const sandbox = await startSandbox({
    seed,
    rows: HISTORY,
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
  const text = JSON.stringify({
    sources: { [SOURCE]: { ...source, streams: { clicks: STREAM, leads: STREAM, sales: STREAM } } },
    sinks: {
      [SINKS.warehouse]: { type: 'postgres' },
      [SINKS.lake]: { type: 'parquet', path: './lake', partition: 'hour' },
    },
    state: { url: server.url },
    ...(redis && { queue: { url: redis.url } }),
    http: { port: 0 },
  });
  const config = join(dir, 'tributary.yaml');
  await writeFile(config, text);
  return {
    ...{ sandbox, db, redis, dir, tmp, diary, config },
    lake: join(dir, 'lake'),
    async close({ keepFolders }) {
      for (const closer of closers.reverse()) await closer();
      if (!keepFolders) for (const made of folders) await rm(made, { recursive: true, force: true });
    },
  };
}
