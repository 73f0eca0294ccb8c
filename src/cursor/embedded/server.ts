import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { open, readFile, readlink, realpath, rename, stat } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RetryLater } from '../../model/errors.ts';
import { isAlive } from '../database/holders.ts';
import { type Binaries, dataDirectory, handOver, launchOn, type StateFolder, serverEnv } from './state-folder.ts';

/** The server on a data directory, according to the lock file of Postgres, which allows only one at a time. */
type Postmaster =
  | { state: 'absent' }
  /** The lock file was left behind by a crash. `pid` may belong to another program by now. */
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
  // Line 1: pid. Line 4: port. Line 8: starting, ready, stopping. The server writes the lines one by one as it starts.
  const pid = Number(lines[0]);
  if (!(await serves(pid, data))) return { state: 'dead', pid };
  const state = lines[7]?.trim() === 'ready' ? 'ready' : 'busy';
  return { state, pid, port: Number(lines[3]) };
}

/** Whether this pid is a server on this data directory, which then is its working directory. */
async function serves(pid: number, data: string): Promise<boolean> {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  if (process.platform !== 'linux') return isAlive(pid);
  // In a new container, the pid of a crashed server is soon reused. A dead process has no entry in /proc.
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  return cwd !== undefined && cwd === (await realpath(data));
}

/** A fast shutdown: open transactions are rolled back, and commits are on disk. Returns false if it did not end in time. */
export async function stopPostmaster(data: string): Promise<boolean> {
  const found = await lookAtPostmaster(data);
  if (found.state === 'absent' || found.state === 'dead') return true;
  process.kill(found.pid, 'SIGINT');
  return until(60_000, async () => !(await serves(found.pid, data)));
}

export async function until(timeoutMs: number, condition: () => Promise<boolean>): Promise<boolean> {
  for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await sleep(10)) {
    if (await condition()) return true;
  }
  return false;
}

export type Settings = Readonly<Record<string, string>>;

/** Passed at each start, so that a new version of tributary can change them for existing data directories. */
const SETTINGS: Settings = {
  // A socket in the data directory, where no other user has access: on a port, any user could impersonate a crashed server.
  listen_addresses: '',
  unix_socket_directories: '.',
  unix_socket_permissions: '0700',
  authentication_timeout: '10s',
  max_connections: '50',
  shared_buffers: '128MB',
  // Parallel workers communicate through /dev/shm, which containers limit to 64 MB.
  max_parallel_workers_per_gather: '0',
  jit: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  TimeZone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'warning',
  log_checkpoints: 'off',
  // Statements and error details contain rows with names and e-mail addresses, which must not be logged.
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
};

const LOG_FILE = 'postgres.log';
const LOG_LIMIT = 5_000_000;

export type HasExited = () => boolean;

export interface StartOptions {
  folder: StateFolder;
  programs: Binaries;
  settings: Settings;
  /** If no socket can be used: a loopback port, which is part of the URL and so must not change. */
  tcp: { port: number } | undefined;
}

/** Returns a function that tells whether our child has exited. In its own session, the child gets no Ctrl-C and survives us if killed. */
export async function startPostmaster(options: StartOptions): Promise<HasExited> {
  const { folder, programs, settings } = options;
  const data = dataDirectory(folder.path);
  const before = await lookAtPostmaster(data);
  if (isRunning(before)) return () => true;
  if (folder.user) await handOver(data, folder.user);
  const log = await openLog(join(folder.path, LOG_FILE));
  const { size: logStart } = await log.stat();
  const listen = options.tcp ? { listen_addresses: '127.0.0.1', port: String(options.tcp.port) } : {};
  const all = Object.entries({ ...SETTINGS, ...listen, ...settings });
  const flags = all.flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const launch = launchOn(data, folder.user);
  const env = serverEnv(programs);
  // Postgres takes any live pid in its lock file for a server; we know that this one is none. The variable excludes only this pid.
  if (before.state === 'dead') env.PG_GRANDPARENT_PID = String(before.pid);
  const child = spawn(programs.postgres, ['-D', launch.data, ...flags], {
    ...launch.options,
    env,
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  });
  let reason: string | undefined;
  child.on('error', (error) => {
    reason = error.message;
  });
  child.on('exit', (code, signal) => {
    reason = `it ended with ${code ?? signal}`;
  });
  child.unref();
  await log.close();
  const isOursReady = async () => {
    const found = await lookAtPostmaster(data);
    return found.state === 'ready' && found.pid === child.pid;
  };
  // Crash recovery replays the WAL, which may take long.
  const ready = await until(120_000, async () => reason !== undefined || (await isOursReady()));
  if (reason === undefined && ready) return () => reason !== undefined;
  // Only once our child has exited: a slow one could still lock the directory after the faster server has stopped.
  if (reason !== undefined && isRunning(await lookAtPostmaster(data))) return () => true;
  throw new RetryLater(`the embedded Postgres in ${folder.dir} did not start: ${reason ?? 'not ready after 120 s'}`, {
    kept: 'the data is as it was',
    next: `see ${join(folder.dir, LOG_FILE)}, fix what it names and run again, or set state.url to a Postgres server`,
    cause: new Error((await readFile(join(folder.path, LOG_FILE))).subarray(logStart).toString().trim()),
  });
}

const isRunning = ({ state }: Postmaster): boolean => state === 'ready' || state === 'busy';

/** Appends to the log. Keeps one older file, so that years of warnings do not fill the disk. */
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

/** How our connections reach the server: by the socket in the data directory, or by a port if its path cannot be used. */
export type Endpoint = Awaited<ReturnType<typeof openEndpoint>>;

/** Operating systems limit socket paths to 104 bytes on macOS and 108 on Linux, including the terminating NUL. */
const LONGEST = 103;

/** For a state folder with a long path, Linux has a short path for every open folder, which is valid in this process. */
export async function openEndpoint(folder: StateFolder) {
  const data = dataDirectory(folder.dir);
  const nothing = async (): Promise<void> => {};
  if (Buffer.byteLength(join(data, '.s.PGSQL.5432')) <= LONGEST)
    return { socket: data, tcp: undefined, close: nothing };
  if (process.platform !== 'linux') return { socket: undefined, tcp: { port: await freePort() }, close: nothing };
  const handle = await open(dataDirectory(folder.path));
  return { socket: `/proc/self/fd/${handle.fd}`, tcp: undefined, close: () => handle.close() };
}
