import { afterAll } from 'vitest';
import { type RedisServer, type RedisSettings, startRedisServer } from './redis-server.ts';

export type TestRedis = RedisServer;

const running = new Set<TestRedis>();
afterAll(async () => {
  for (const redis of running) await redis.close();
});

/** One that ends with the test file at the latest. */
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
