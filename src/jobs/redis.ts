import { Redis } from 'ioredis';
import { UNTRUSTED } from '../cursor/database-errors.ts';
import { ConfigError, RetryLater } from '../model/errors.ts';
import { queueFindings } from './queue-check.ts';

/** The one home of ioredis: how we connect, and what a Redis must be like before we rely on it. */

const CONNECT_MS = 10_000;
/** A line that says nothing for so long is dead, and is opened anew. Longer than a worker waits for its next job. */
const SILENCE_MS = 30_000;

/** For people: where it is, without user and password. */
export const redisPlace = (url: string): string => `Redis at ${new URL(url).host}`;

/** For adding jobs: fails while Redis is away, and does not wait. Jobs are hints, and the next tick gives them again. */
export const openProducer = (url: string): Redis =>
  new Redis(url, { ...usual, enableOfflineQueue: false, maxRetriesPerRequest: 0 });

/** For taking jobs: waits for as long as Redis is away. */
export const openConsumer = (url: string): Redis => new Redis(url, usual);

const usual = {
  connectionName: 'tributary',
  maxRetriesPerRequest: null,
  connectTimeout: CONNECT_MS,
  socketTimeout: SILENCE_MS,
  retryStrategy: (times: number) => Math.min(times * 100, 2000),
};

/** Refuses a Redis that would lose jobs, with what to do about it. */
export const checkRedis = async (url: string): Promise<void> => judge(redisPlace(url), await readInfo(url));

/** What it says of itself; one that cannot be reached is an error of ours. */
export async function readInfo(url: string): Promise<string> {
  const redis = new Redis(url, { ...usual, maxRetriesPerRequest: 0, lazyConnect: true, retryStrategy: () => null });
  let reason: string | undefined;
  redis.on('error', (error: NodeJS.ErrnoException) => {
    reason ??= error.code ?? error.message;
  });
  try {
    await redis.connect();
    return await redis.info();
  } catch (error) {
    throw refused(redisPlace(url), reason ?? (error instanceof Error ? error.message : String(error)));
  } finally {
    redis.disconnect();
  }
}

function refused(place: string, reason: string): ConfigError | RetryLater {
  if (/WRONGPASS|NOAUTH|NOPERM/.test(reason)) {
    return new ConfigError(`${place} refused us: ${reason}`, { next: 'check the user and the password in queue.url' });
  }
  if (UNTRUSTED.test(reason)) {
    return new ConfigError(`${place}: its TLS certificate is not trusted (${reason})`, {
      next: 'check the certificate, the host name in queue.url and the clock of this machine; name your own CA by NODE_EXTRA_CA_CERTS',
    });
  }
  return new RetryLater(`${place} cannot be reached (${reason})`, {
    next: 'start it, correct queue.url, or leave queue out: the queue then lives in the state database',
  });
}

/** The doctor's judgement: what is a fault there is refused here. */
export function judge(place: string, info: string): void {
  const fault = queueFindings(place, info).find(({ level }) => level === 'fault');
  if (!fault) return;
  throw new ConfigError(fault.says.startsWith(place) ? fault.says : `${place} ${fault.says}`, {
    kept: 'everything; no job was added or taken',
    ...(fault.fix && { next: fault.fix }),
  });
}
