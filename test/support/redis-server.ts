import { type ChildProcess, spawn } from 'node:child_process';
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
  /** Ends it as a crash does. */
  stop(): Promise<void>;
  /** Starts it again, on the same port. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export type RedisSettings = Readonly<Record<string, string>>;

export async function startRedisServer(settings: RedisSettings = {}): Promise<RedisServer> {
  const dir = await mkdtemp(join(tmpdir(), 'tributary-redis-'));
  const port = await freePort();
  const url = `redis://${settings.requirepass ? `:${settings.requirepass}@` : ''}127.0.0.1:${port}`;
  const all = { port: String(port), bind: '127.0.0.1', dir, save: '', appendonly: 'no', ...settings };
  const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
  const start = async () => {
    const server = spawn('redis-server', args, { stdio: 'ignore' });
    const exited = once(server, 'exit');
    await untilReady(url, server);
    return { server, exited };
  };
  let current = await start();
  const stop = async (): Promise<void> => {
    current.server.kill('SIGKILL');
    await current.exited;
  };
  return {
    url,
    command: (...words) => command(url, ...words),
    stop,
    async start() {
      current = await start();
    },
    async close() {
      await stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export async function command(url: string, name = 'PING', ...words: string[]): Promise<unknown> {
  const client = new Redis(url, { maxRetriesPerRequest: 1 });
  try {
    return await client.call(name, ...words);
  } finally {
    client.disconnect();
  }
}

async function untilReady(url: string, server: ChildProcess): Promise<void> {
  for (;;) {
    const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
    client.on('error', () => {});
    try {
      await client.connect();
      if ((await client.info('server')).includes(`process_id:${server.pid}\r`)) return;
      throw new Error(`another Redis answers on ${url}`);
    } catch (error) {
      // Recovery: it is still starting, unless it has ended.
      if (server.exitCode !== null) throw error;
      await sleep(25);
    } finally {
      client.disconnect();
    }
  }
}
