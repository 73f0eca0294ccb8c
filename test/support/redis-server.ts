import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';

/** A real Redis on a free port of this machine, without persistence unless asked for. */
export interface RedisServer {
  url: string;
  /** Runs one command, as an operator would. */
  command(...words: string[]): Promise<unknown>;
  /** Ends it as a crash does, and starts it again on the same port after a while. */
  restart(awayMs?: number): Promise<void>;
  close(): Promise<void>;
}

export type RedisSettings = Readonly<Record<string, string>>;

export async function startRedisServer(settings: RedisSettings = {}): Promise<RedisServer> {
  const dir = await mkdtemp(join(tmpdir(), 'tributary-redis-'));
  const port = await freePort();
  const url = `redis://${settings.requirepass ? `:${settings.requirepass}@` : ''}127.0.0.1:${port}`;
  const all = { port: String(port), bind: '127.0.0.1', dir, save: '', appendonly: 'no', ...settings };
  const start = async () => {
    const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
    const server = spawn('redis-server', args, { stdio: 'ignore' });
    // A server that is not installed is an error of `once` too: global-redis.ts has said what to do.
    const exited = once(server, 'exit');
    await untilReady(url);
    return { server, exited };
  };
  let current = await start();
  const stop = async (): Promise<void> => {
    current.server.kill('SIGKILL');
    await current.exited;
  };
  return {
    url,
    async command(name, ...words) {
      const client = new Redis(url, { maxRetriesPerRequest: 1 });
      try {
        return await client.call(name ?? 'PING', ...words);
      } finally {
        client.disconnect();
      }
    },
    async restart(awayMs = 300) {
      await stop();
      await sleep(awayMs);
      current = await start();
    },
    async close() {
      await stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function untilReady(url: string): Promise<void> {
  for (let left = 200; ; left--) {
    const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.ping();
      return;
    } catch (error) {
      // Recovery: it is still starting.
      if (left === 0) throw error;
      await sleep(25);
    } finally {
      client.disconnect();
    }
  }
}
