import { Redis } from 'ioredis';
import { UNTRUSTED } from '../cursor/database/errors.ts';
import { ConfigError, type Finding, failing, note, ok, RetryLater } from '../model/errors.ts';

/** The only module that imports ioredis: connection options, and the requirements that a Redis server must meet. */

const CONNECT_MS = 10_000;
/** A connection without traffic for this long is considered dead and reopened. Longer than a worker blocks for its next job. */
const SILENCE_MS = 30_000;

/** Host and port for messages, without user and password. */
export const redisPlace = (url: string): string => `Redis at ${new URL(url).host}`;

/** For adding jobs: fails at once while Redis is unavailable. The state knows what is due, and the next tick enqueues it again. */
export const openProducer = (url: string): Redis =>
  new Redis(url, { ...usual, enableOfflineQueue: false, maxRetriesPerRequest: 0 });

/** For taking jobs: waits as long as Redis is unavailable. */
export const openConsumer = (url: string): Redis => endingAtOnce(new Redis(url, usual));

/** BullMQ's close() waits for 'end', also on its duplicate. ioredis never emits it for a connection that is waiting to reconnect. */
function endingAtOnce(redis: Redis): Redis {
  const [disconnect, duplicate] = [redis.disconnect.bind(redis), redis.duplicate.bind(redis)];
  redis.duplicate = (override) => endingAtOnce(duplicate(override));
  redis.disconnect = (reconnect) => {
    if (redis.status === 'reconnecting' && !reconnect) redis.status = 'wait';
    disconnect(reconnect);
  };
  return redis;
}

const usual = {
  connectionName: 'tributary',
  maxRetriesPerRequest: null,
  connectTimeout: CONNECT_MS,
  socketTimeout: SILENCE_MS,
  retryStrategy: (times: number) => Math.min(times * 100, 2000),
};

export const checkRedis = async (url: string): Promise<void> => judge(redisPlace(url), await readInfo(url));

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

function refused(place: string, reason: string, cause?: Error): ConfigError | RetryLater {
  if (/WRONGPASS|NOAUTH|NOPERM/.test(reason)) {
    return new ConfigError(`${place} refused the connection: ${reason}`, {
      next: 'check the user and the password in queue.url',
    });
  }
  if (UNTRUSTED.test(reason)) {
    return new ConfigError(`${place}: its TLS certificate is not trusted (${reason})`, {
      next: 'check the certificate, the host name in queue.url and the clock of this machine; name your own CA by NODE_EXTRA_CA_CERTS',
    });
  }
  return new RetryLater(`${place} cannot be reached (${reason})`, {
    next: 'start it, correct queue.url, or leave queue out: the queue then lives in the state database',
    cause,
  });
}

/** Errors of ioredis while Redis is unavailable, starting or failing over. */
const AWAY =
  /^(MaxRetriesPerRequestError|AbortError): |Connection is closed|Stream isn't writeable|[Tt]imed? ?out|ECONN|EPIPE|^ReplyError: (LOADING|READONLY|MASTERDOWN)/;

/** Commands that fail because Redis is unavailable may be retried; any other error is returned unchanged. */
export function redisFault(error: unknown, place: string): unknown {
  if (!(error instanceof Error) || !AWAY.test(`${error.name}: ${error.message}`)) return error;
  return refused(place, error.message, error);
}

export function judge(place: string, info: string): void {
  const fault = queueFindings(place, info).find(({ level }) => level === 'fault');
  if (!fault) return;
  throw new ConfigError(fault.says.startsWith(place) ? fault.says : `${place} ${fault.says}`, {
    kept: 'everything; no job was added or taken',
    ...(fault.fix && { next: fault.fix }),
  });
}

/** Older versions lack commands that BullMQ's scripts use. */
const OLDEST = [6, 2] as const;

/** Checks the output of INFO, which hosted servers allow even where they forbid CONFIG, against what the queue requires. */
export function queueFindings(place: string, info: string): Finding[] {
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1];
  return [
    versionFinding(place, field('redis_version') ?? '0'),
    evictionFinding(field('maxmemory_policy')),
    persistenceFinding(field('aof_enabled'), field('rdb_last_bgsave_status')),
  ];
}

function versionFinding(place: string, version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]))
    return ok('queue', `${place} answers (${version})`);
  const fix = `upgrade Redis to ${OLDEST.join('.')} or newer, or leave queue out: it then lives in the state database`;
  return failing('queue', `${place} has version ${version}, which is too old`, fix);
}

function evictionFinding(policy: string | undefined): Finding {
  if (policy === undefined || policy === 'noeviction') return ok('queue', 'keeps its keys when memory is short');
  const says = `throws keys away when memory is short (maxmemory-policy is ${policy}): jobs would vanish`;
  return failing(
    'queue',
    says,
    'run redis-cli config set maxmemory-policy noeviction, and put the line into redis.conf',
  );
}

/** Only a note: the state knows what is due, so a lost queue costs time, not rows. */
function persistenceFinding(aof: string | undefined, rdb: string | undefined): Finding {
  if (aof === '1') return ok('queue', 'writes its jobs to disk (AOF)');
  const says = rdb === 'ok' ? 'keeps its jobs in snapshots only' : 'keeps its jobs in memory only';
  return note(
    'queue',
    `${says}: some are lost in a crash, and given again from the state`,
    'turn on appendonly to lose none',
  );
}
