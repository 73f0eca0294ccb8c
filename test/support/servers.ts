import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { connect } from '../../src/cursor/database/index.ts';
import { freePort } from './free-port.ts';

/** Servers installed on this machine, each on a free port and in a folder of its own. */

/** As user nobody, if a server refuses to run as root. */
function newHome(name: string, refusesRoot = true) {
  const dir = mkdtempSync(join(tmpdir(), `tributary-${name}-`));
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  const user = refusesRoot && process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid);
  return { dir, options: { ...user, cwd: dir, stdio: 'ignore' } as const };
}

/** Waits until it is ready. Returns a function that stops it. */
async function startServer(
  file: string,
  args: readonly string[],
  { dir, options }: ReturnType<typeof newHome>,
  isReady: (server: ChildProcess) => Promise<unknown>,
) {
  const server = spawn(file, args, options);
  const exited = once(server, 'exit');
  for (let left = 400; ; left--) {
    try {
      await isReady(server);
      break;
    } catch (error) {
      // Recovery: it is still starting, unless it has exited.
      if (server.exitCode !== null || left === 0) throw error;
      await sleep(25);
    }
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    server.kill(signal);
    await exited;
  };
  return {
    end,
    async close(signal: NodeJS.Signals) {
      await end(signal);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export type RedisSettings = Readonly<Record<string, string>>;
export type RedisServer = Awaited<ReturnType<typeof startRedisServer>>;

/** Without persistence by default. */
export async function startRedisServer(settings: RedisSettings = {}) {
  const home = newHome('redis', false);
  const port = await freePort();
  const url = `redis://${settings.requirepass ? `:${settings.requirepass}@` : ''}127.0.0.1:${port}`;
  const all = { port: String(port), bind: '127.0.0.1', dir: home.dir, save: '', appendonly: 'no', ...settings };
  const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
  const start = () => startServer('redis-server', args, home, (server) => isOwnRedis(url, server));
  let current = await start();
  return {
    url,
    /** Runs a Redis command. */
    command: (...words: string[]) => command(url, ...words),
    /** Stops it as a crash does. */
    stop: () => current.end('SIGKILL'),
    /** Restarts it on the same port. */
    async start() {
      current = await start();
    },
    close: () => current.close('SIGKILL'),
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

async function isOwnRedis(url: string, { pid }: ChildProcess): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on('error', () => {});
  try {
    await client.connect();
    if (!(await client.info('server')).includes(`process_id:${pid}\r`)) throw new Error(`another Redis is at ${url}`);
  } finally {
    client.disconnect();
  }
}

/** Where Debian and its derivatives install this version of Postgres. */
export const stockPostgres = (version: number): string | undefined => {
  const bin = `/usr/lib/postgresql/${version}/bin`;
  return existsSync(join(bin, 'postgres')) ? bin : undefined;
};

export type StockPostgres = Awaited<ReturnType<typeof startStock>>;

/** A server with the distribution's settings; with a primary, its hot standby. */
export async function startStock(bin: string, primary?: { url: string }) {
  const home = newHome('stock');
  const data = join(home.dir, 'data');
  const [make = '', ...how] = primary
    ? ['pg_basebackup', '-d', primary.url, '-D', data, '-R', '-c', 'fast']
    : ['initdb', '-D', data, '-U', 'stock', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'];
  execFileSync(join(bin, make), how, home.options);
  const port = await freePort();
  const url = `postgresql://stock@127.0.0.1:${port}/postgres`;
  const args = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', home.dir, '-F'];
  const db = connect({ url, max: 1 });
  const server = await startServer(join(bin, 'postgres'), args, home, () => db.query({ text: 'select 1' }));
  await db.close();
  return { url, close: () => server.close('SIGINT') };
}

const PGBOUNCER = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/usr/local/bin/pgbouncer'].find(existsSync);
export const hasPgBouncer = PGBOUNCER !== undefined;

/** PgBouncer in transaction mode in front of a database. By default it refuses startup parameters; those named here are ignored. */
export async function startPgBouncer(target: string, { ignores = [] as readonly string[] } = {}) {
  const { hostname, port, username, password, pathname } = new URL(target);
  const home = newHome('pgbouncer');
  const listen = await freePort();
  const file = join(home.dir, 'pgbouncer.ini');
  const settings = `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
; Fewer than clients: a connection changes hands at every transaction.
default_pool_size = 4
ignore_startup_parameters = ${ignores.join(',')}
`;
  writeFileSync(file, settings, { mode: 0o644 });
  const server = await startServer(PGBOUNCER ?? 'pgbouncer', [file], home, async () => {
    const socket = dial(listen, '127.0.0.1');
    await once(socket, 'connect').finally(() => socket.destroy());
  });
  return { url: `postgresql://${username}@127.0.0.1:${listen}${pathname}`, close: () => server.close('SIGTERM') };
}
