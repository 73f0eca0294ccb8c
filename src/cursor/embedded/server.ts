import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { open, readFile, readlink, realpath, rename, stat } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RetryLater } from '../../model/errors.ts';
import { isAlive } from '../database/holders.ts';
import { type Binaries, dataDirectory, type Home, handOver, launchOn, serverEnv } from './home.ts';

/** What Postgres' own lock file says of the server on a data directory. Postgres lets only one server live there. */
type Postmaster =
  | { state: 'absent' }
  /** The file is a leaving of a crash. `pid` may by now be somebody else's. */
  | { state: 'dead'; pid: number }
  | { state: 'busy' | 'ready'; pid: number; port: number };

export async function lookAtPostmaster(data: string): Promise<Postmaster> {
  let lines: string[];
  try {
    lines = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { state: 'absent' };
    throw error;
  }
  // Line 1: pid. Line 4: port. Line 8: starting, ready, stopping. Lines come one by one while the server starts.
  const pid = Number(lines[0]);
  if (!(await serves(pid, data))) return { state: 'dead', pid };
  const state = lines[7]?.trim() === 'ready' ? 'ready' : 'busy';
  return { state, pid, port: Number(lines[3]) };
}

/** Whether this pid is a server on this directory: a server's working directory is its data directory. */
async function serves(pid: number, data: string): Promise<boolean> {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  if (process.platform !== 'linux') return isAlive(pid);
  // In a new container the pid of a crashed server is soon another's. A dead process has no such folder.
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  return cwd !== undefined && cwd === (await realpath(data));
}

/** A fast shutdown: open transactions roll back, everything committed is on disk. False: it did not end in time. */
export async function stopPostmaster(data: string, timeoutMs = 60_000): Promise<boolean> {
  const found = await lookAtPostmaster(data);
  if (found.state === 'absent' || found.state === 'dead') return true;
  process.kill(found.pid, 'SIGINT');
  return until(timeoutMs, async () => !(await serves(found.pid, data)));
}

export async function until(timeoutMs: number, condition: () => Promise<boolean>): Promise<boolean> {
  for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await sleep(10)) {
    if (await condition()) return true;
  }
  return false;
}

export type Settings = Readonly<Record<string, string>>;

/** Given at each start, so that a new version of tributary changes them for existing data too. */
const SETTINGS: Settings = {
  // A socket in its data directory, which nobody else can enter: any user could take its place on a port after a crash.
  listen_addresses: '',
  unix_socket_directories: '.',
  unix_socket_permissions: '0700',
  authentication_timeout: '10s',
  max_connections: '50',
  shared_buffers: '128MB',
  // Parallel workers talk by way of /dev/shm, which a container keeps at 64 MB.
  max_parallel_workers_per_gather: '0',
  jit: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  TimeZone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'warning',
  log_checkpoints: 'off',
  // Statements and details of errors hold rows: names, e-mail addresses. They do not belong in a log.
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
};

const LOG_FILE = 'postgres.log';
const LOG_LIMIT = 5_000_000;

export type HasExited = () => boolean;

export interface StartOptions {
  home: Home;
  programs: Binaries;
  settings: Settings;
  /** Where no socket can be reached: on a port of the loopback, which is given out and must stay the same. */
  tcp: { port: number } | undefined;
}

/** Returns how to tell that our child has ended. It has a session of its own: Ctrl-C does not reach it, and it outlives us if we are killed. */
export async function startPostmaster(options: StartOptions): Promise<HasExited> {
  const { home, programs, settings } = options;
  const data = dataDirectory(home.path);
  const before = await lookAtPostmaster(data);
  if (isRunning(before)) return () => true;
  if (home.user) await handOver(data, home.user);
  const log = await openLog(join(home.path, LOG_FILE));
  const { size: logStart } = await log.stat();
  const listen = options.tcp ? { listen_addresses: '127.0.0.1', port: String(options.tcp.port) } : {};
  const all = Object.entries({ ...SETTINGS, ...listen, ...settings });
  const flags = all.flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const launch = launchOn(data, home.user);
  const env = serverEnv(programs);
  // Postgres takes any live pid in its lock file for a server. We looked: it is none. Only this pid is disregarded.
  if (before.state === 'dead') env.PG_GRANDPARENT_PID = String(before.pid);
  const child = spawn(programs.postgres, ['-D', launch.data, ...flags], {
    ...launch.options,
    env,
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  });
  let over: string | undefined;
  child.on('error', (error) => {
    over = error.message;
  });
  child.on('exit', (code, signal) => {
    over = `it ended with ${code ?? signal}`;
  });
  child.unref();
  await log.close();
  const ours = async () => {
    const found = await lookAtPostmaster(data);
    return found.state === 'ready' && found.pid === child.pid;
  };
  // Recovery after a crash reads the log of changes; that may take its time.
  const ready = await until(120_000, async () => over !== undefined || (await ours()));
  if (over === undefined && ready) return () => over !== undefined;
  // Only now that our child has ended: a slow one could still win the directory when the faster one has left it.
  if (over !== undefined && isRunning(await lookAtPostmaster(data))) return () => true;
  throw new RetryLater(`the embedded Postgres in ${home.dir} did not start: ${over ?? 'not ready after 120 s'}`, {
    kept: 'the data is as it was',
    next: `see ${join(home.dir, LOG_FILE)}, fix what it names and run again, or set state.url to a Postgres server`,
    cause: new Error((await readFile(join(home.path, LOG_FILE))).subarray(logStart).toString().trim()),
  });
}

const isRunning = ({ state }: Postmaster): boolean => state === 'ready' || state === 'busy';

/** Appends, and keeps one older file, so that years of warnings do not fill the disk. */
async function openLog(path: string) {
  const found = await stat(path).catch(() => undefined);
  if (found && found.size > LOG_LIMIT) await rename(path, `${path}.old`);
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;
  return open(path, O_APPEND | O_CREAT | O_NOFOLLOW | O_RDWR, 0o600);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}

/** How our connections reach the server: by the socket in its folder, or by a port where there is no way to name that. */
export type Way = Awaited<ReturnType<typeof wayTo>>;

/** The operating system takes no longer path of a socket, its last byte included: 104 on macOS, 108 on Linux. */
const LONGEST = 103;

/** A state folder may lie deep. Linux has a short name for every open folder, which is good in this process. */
export async function wayTo(home: Home) {
  const data = dataDirectory(home.dir);
  const nothing = async (): Promise<void> => {};
  if (Buffer.byteLength(join(data, '.s.PGSQL.5432')) <= LONGEST)
    return { socket: data, tcp: undefined, close: nothing };
  if (process.platform !== 'linux') return { socket: undefined, tcp: { port: await freePort() }, close: nothing };
  const folder = await open(dataDirectory(home.path));
  return { socket: `/proc/self/fd/${folder.fd}`, tcp: undefined, close: () => folder.close() };
}
