import { Redis } from 'ioredis';
import { ConfigError, RetryLater } from '../model/errors.ts';

/** The one home of ioredis: how we connect, and what a Redis must be like before we rely on it. */

/** Below this, BullMQ's scripts lack commands they use. */
const OLDEST = [6, 2] as const;
const CONNECT_MS = 10_000;

/** For people: where it is, without user and password. */
export const redisPlace = (url: string): string => `Redis at ${new URL(url).host}`;

/** For adding jobs: fails at once while Redis is away. Jobs are hints, and the next tick gives them again. */
export const openProducer = (url: string): Redis => new Redis(url, { ...usual, enableOfflineQueue: false });

/** For taking jobs: waits for as long as Redis is away. */
export const openConsumer = (url: string): Redis => new Redis(url, usual);

const usual = {
  connectionName: 'tributary',
  maxRetriesPerRequest: null,
  connectTimeout: CONNECT_MS,
  retryStrategy: (times: number) => Math.min(times * 100, 2000),
};

/** Refuses a Redis that would lose jobs, with what to do about it. */
export async function checkRedis(url: string): Promise<void> {
  const place = redisPlace(url);
  const redis = new Redis(url, { ...usual, maxRetriesPerRequest: 0, lazyConnect: true, retryStrategy: () => null });
  let reason: string | undefined;
  redis.on('error', (error: NodeJS.ErrnoException) => {
    reason ??= error.code ?? error.message;
  });
  let info: string;
  try {
    await redis.connect();
    info = await redis.info();
  } catch (error) {
    throw refused(place, reason ?? (error instanceof Error ? error.message : String(error)));
  } finally {
    redis.disconnect();
  }
  judge(place, info);
}

function refused(place: string, reason: string): ConfigError | RetryLater {
  if (/WRONGPASS|NOAUTH|NOPERM/.test(reason)) {
    return new ConfigError(`${place} refused us: ${reason}`, { next: 'check the user and the password in queue.url' });
  }
  return new RetryLater(`${place} cannot be reached (${reason})`, {
    next: 'start it, correct queue.url, or leave queue out: the queue then lives in the state database',
  });
}

/** By INFO, which hosted servers allow where CONFIG is forbidden. */
export function judge(place: string, info: string): void {
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  const version = field('redis_version') ?? '0';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    throw new ConfigError(`${place} has version ${version}, and the queue needs ${OLDEST.join('.')} or newer`, {
      next: 'upgrade Redis, or leave queue out of the config: the queue then lives in the state database',
    });
  }
  const policy = field('maxmemory_policy');
  if (policy === undefined || policy === 'noeviction') return;
  throw new ConfigError(
    `${place} throws keys away when memory is short (maxmemory-policy is ${policy}): jobs would vanish`,
    {
      kept: 'everything; no job was added or taken',
      next: 'run `redis-cli config set maxmemory-policy noeviction`, and put the line maxmemory-policy noeviction into redis.conf',
    },
  );
}
