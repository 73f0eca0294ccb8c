import { afterAll, inject } from 'vitest';
import { command, type RedisServer, type RedisSettings, startRedisServer } from './servers.ts';

export type TestRedis = RedisServer;

/** Whether this machine has Redis; tests that need it are skipped without it. */
export const hasRedis = inject('redisUrl') !== '';

/** An empty database of the run's Redis. Tests that restart, flush or reconfigure a server start their own. */
export async function freshRedis(): Promise<Pick<TestRedis, 'url' | 'command'>> {
  const server = inject('redisUrl');
  const url = `${server}/${await command(server, 'INCR', 'databases given out')}`;
  return { url, command: (...words) => command(url, ...words) };
}

const running = new Set<TestRedis>();
afterAll(async () => {
  for (const redis of running) await redis.close();
});

/** A separate server, which ends with the test file at the latest. */
export async function startRedis(settings: RedisSettings = {}): Promise<TestRedis> {
  const server = await startRedisServer(settings);
  const redis: TestRedis = {
    ...server,
    async close() {
      running.delete(redis);
      await server.close();
    },
  };
  running.add(redis);
  return redis;
}
