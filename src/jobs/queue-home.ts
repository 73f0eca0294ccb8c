import {
  type BackendClasses,
  createPostgresBackend,
  createRedisBackend,
  type IQueueBackend,
  withBackend,
} from 'bullmq';
import { Client } from '../cursor/database/connection.ts';
import { addressOf, databaseFault } from '../cursor/database/errors.ts';
import { leadsThroughPooler } from '../cursor/database/index.ts';
import { ConfigError } from '../model/errors.ts';
import { openConsumer, openProducer, redisFault, redisPlace } from './redis.ts';

/** Where the queue lives, Redis or the state database: connections, and what a server that is away makes of them. */
export interface QueueHome {
  place: string;
  classes: BackendClasses<IQueueBackend, unknown>;
  /** Connections, or what they are made from. */
  produce(): unknown;
  consume(): unknown;
  leave(connection: unknown): void;
  /** What its driver throws, as one of our error types. */
  fault(error: unknown): unknown;
}

export function onRedis(url: string): QueueHome {
  const open = new Map<unknown, () => void>();
  const keep = (redis: ReturnType<typeof openProducer>): unknown => {
    // Without a listener every lost connection would be printed; the queue's own listener tells of it.
    redis.on('error', () => {});
    open.set(redis, () => redis.disconnect());
    return redis;
  };
  return {
    place: redisPlace(url),
    classes: withBackend(createRedisBackend) as unknown as QueueHome['classes'],
    produce: () => keep(openProducer(url)),
    consume: () => keep(openConsumer(url)),
    leave: (connection) => open.get(connection)?.(),
    fault: (error) => redisFault(error, redisPlace(url)),
  };
}

/** LISTEN wakes the workers, and a pooler swallows it: jobs would wait for a long time. */
export async function checkDirect(stateUrl: string): Promise<void> {
  if (!(await leadsThroughPooler(stateUrl))) return;
  throw new ConfigError('the state database is behind a connection pooler, where the queue cannot live', {
    kept: 'everything; no job was added or taken',
    next: 'set state.directUrl to the database itself, for the queue alone, or queue.url to a Redis',
  });
}

const SCHEMA = 'tributary_queue';

/** BullMQ sends only short queries: without an answer for this long, waiting for its small pool included, the connection is dead. */
const SILENCE_MS = 60_000;

/** BullMQ opens its own few connections: its LISTEN and its short queries shall not wait behind our commits. */
export function onPostgres(url: string): QueueHome {
  const connection = {
    connectionString: url,
    schema: SCHEMA,
    migrate: true,
    max: 2,
    application_name: 'tributary queue',
    connectionTimeoutMillis: SILENCE_MS,
    query_timeout: SILENCE_MS,
  };
  return {
    place: 'the state database',
    classes: withBackend(createGuardedBackend) as unknown as QueueHome['classes'],
    produce: () => connection,
    consume: () => connection,
    leave: () => {},
    fault: (error) => databaseFault(error, addressOf(url)),
  };
}

/**
 * With our client, which does not answer a stranger in the server's place: its pool takes the client from its settings, LISTEN from the module
 * that it has loaded.
 */
export const createGuardedBackend: typeof createPostgresBackend = (
  name,
  { connection: settings, ...rest },
  options,
) => {
  const backend = createPostgresBackend(name, { ...rest, connection: Object.assign({ Client }, settings) }, options);
  const { connection } = backend as unknown as { connection: { pgModule: unknown } };
  if (!('pgModule' in connection)) throw new Error('this version of BullMQ makes its LISTEN client in another way');
  connection.pgModule = { Client };
  return backend;
};
