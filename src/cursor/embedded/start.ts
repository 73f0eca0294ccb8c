import { spawn } from 'node:child_process';
import { open, readFile, rename, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { RetryLater } from '../../model/errors.ts';
import type { Binaries } from './binaries.ts';
import { serverEnv } from './cluster.ts';
import { lookAtPostmaster, type Postmaster, until } from './postmaster.ts';
import type { RunAs } from './run-as.ts';

export type Settings = Readonly<Record<string, string>>;

/** Given at each start, so that a new version of tributary changes them for existing data too. */
const SETTINGS: Settings = {
  listen_addresses: '127.0.0.1',
  // No socket file: its path may not be longer than 107 characters, and a state folder may lie deep.
  unix_socket_directories: '',
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

const LOG_LIMIT = 5_000_000;

export type HasExited = () => boolean;

export interface StartOptions {
  dir: string;
  data: string;
  programs: Binaries;
  runAs: RunAs;
  settings: Settings;
  /** A free one, unless it must be the same as before. */
  port?: number | undefined;
}

/**
 * Starts a server and waits until it is ready, or has lost to that of a faster process: Postgres lets one live. It gets its
 * own session, so that Ctrl-C in a terminal reaches us and not it; and if we are killed it lives on, to be taken over by the
 * next openEmbedded. Returns how to tell that our child has ended; only its parent can.
 */
export async function startPostmaster(options: StartOptions): Promise<HasExited> {
  const { dir, data, programs, runAs, settings } = options;
  const before = await lookAtPostmaster(data);
  if (isAlive(before)) return () => true;
  const logFile = join(dir, 'postgres.log');
  const log = await openLog(logFile);
  const { size: logStart } = await log.stat();
  // A free port at each start. Another program may take it in between; then the start fails and the caller tries again.
  const all = Object.entries({ ...SETTINGS, ...settings, port: String(options.port ?? (await freePort())) });
  const flags = all.flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const launch = runAs.launch(programs.postgres, ['-D', data, ...flags]);
  const env = serverEnv(programs);
  // Postgres takes a live pid in its lock file for a server, whatever it is, and refuses. We looked: that one is none. By
  // this variable it disregards exactly that pid, and still refuses if a faster process has put its own there.
  if (before.state === 'dead') env.PG_GRANDPARENT_PID = String(before.pid);
  const child = spawn(launch.file, launch.args, {
    ...launch.options,
    cwd: '/',
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
  if (over !== undefined && isAlive(await lookAtPostmaster(data))) return () => true;
  throw new RetryLater(`the embedded Postgres in ${dir} did not start: ${over ?? 'not ready after 120 s'}`, {
    kept: 'the data is as it was',
    next: `see ${logFile}, mend what it names and run again, or set state.url to a Postgres server`,
    cause: new Error((await readFile(logFile)).subarray(logStart).toString().trim()),
  });
}

const isAlive = ({ state }: Postmaster): boolean => state === 'ready' || state === 'busy';

/** Appends, and keeps one older file, so that years of warnings do not fill the disk. */
async function openLog(path: string) {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LOG_LIMIT) await rename(path, `${path}.old`);
  return open(path, 'a', 0o600);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a numeric port');
  return address.port;
}
