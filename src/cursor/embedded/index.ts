import { basename, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Fault, RetryLater } from '../../model/errors.ts';
import type { Log } from '../../model/log.ts';
import { connect, type Session } from '../database/index.ts';
import { raw, sql } from '../database/sql.ts';
import { type Cluster, prepareCluster, removeUnfinished, USER } from './cluster.ts';
import {
  type Endpoint,
  type HasExited,
  lookAtPostmaster,
  openEndpoint,
  type Settings,
  startPostmaster,
  stopPostmaster,
  until,
} from './server.ts';
import { findBinaries, openStateFolder, type StateFolder } from './state-folder.ts';
import { DATABASE, prepareRole, WORKING_ROLE, workingPassword } from './working-role.ts';

export type EmbeddedPostgres = Awaited<ReturnType<typeof openIn>>;

interface EmbeddedOptions {
  /** The state folder; the data lies in `<dir>/postgres`. */
  dir: string;
  log: Log;
  /** For commands that only read: use the server although another process owns it, instead of failing. */
  attach?: boolean;
  /** The command shown to other processes that find the server in use; by default our command line. */
  command?: string;
  /** For tests: server settings on top of ours, such as fsync=off. */
  settings?: Settings;
}

const START_ATTEMPTS = 5;
const ROUND_MS = 50;
const ROUNDS_FOR_SHUTDOWN = 20;

export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const folder = await openStateFolder(resolve(options.dir));
  try {
    return await openIn(folder, options);
  } catch (error) {
    await folder.close();
    throw error;
  }
}

async function openIn(folder: StateFolder, options: EmbeddedOptions) {
  const { log, attach = false, command = commandLine(), settings = {} } = options;
  const { dir } = folder;
  const programs = await findBinaries(folder);
  const cluster = await prepareCluster(folder, programs, settings.fsync !== 'off');
  const endpoint = await openEndpoint(folder);
  const lost = new AbortController();
  const join = async (): Promise<Attachment> => {
    const start = () => startPostmaster({ folder, programs, settings, tcp: endpoint.tcp });
    const attachment = await joinOrStart({ cluster, endpoint, start, name: presenceName(command), dir });
    try {
      if (!attach) await becomeOwner(attachment.presence, dir);
      if (!attach) await removeUnfinished(folder);
    } catch (error) {
      await leaveServer(attachment, cluster, log);
      throw error;
    }
    return attachment;
  };
  const attachment = await join().catch(async (error: unknown) => {
    await endpoint.close();
    throw error;
  });
  // Rejoins at the same address, so that the URL stays valid.
  const kept = rejoinOnLoss(attachment, join, log, (error) => lost.abort(error));
  log.debug({ dir, attach }, 'embedded Postgres is ready');
  const close = async () => {
    const last = await kept.release();
    if (last) await leaveServer(last, cluster, log);
    await endpoint.close();
    await folder.close();
  };
  let closing: Promise<void> | undefined;
  return {
    /** Contains the password of a role that is not a superuser: for `connect`, not for messages. */
    url: attachment.urlOf(DATABASE),
    /** Aborted, with the reason, when the connection to the server is lost and cannot be restored. */
    lost: lost.signal as AbortSignal,
    /** Stops the server unless another process still uses it. Callers must close their own connections first. */
    close(): Promise<void> {
      closing ??= close();
      return closing;
    },
  };
}

interface Attachment {
  presence: Presence;
  urlOf(database: string): string;
  hasExited: HasExited;
}

interface JoinOptions {
  cluster: Cluster;
  endpoint: Endpoint;
  start: () => Promise<HasExited>;
  name: string;
  dir: string;
}

/** Joins the running server, whoever started it, or starts one. Loops, because other processes start and stop it concurrently. */
async function joinOrStart({ cluster, endpoint, start, name, dir }: JoinOptions): Promise<Attachment> {
  let hasExited: HasExited = () => true;
  let failedStarts = 0;
  for (const deadline = Date.now() + 150_000; Date.now() < deadline; await sleep(20)) {
    const found = await lookAtPostmaster(cluster.data);
    if (found.state === 'busy') continue;
    if (found.state !== 'ready') {
      try {
        hasExited = await start();
      } catch (error) {
        // Recovery: the port was just taken, or another process started the server; both are temporary. Other errors repeat.
        failedStarts += 1;
        if (failedStarts >= START_ATTEMPTS) throw error;
        // Backends of a killed server may still be finishing their statement; Postgres does not start before the last one ends.
        await sleep(50 * 2 ** failedStarts);
      }
      continue;
    }
    const host = encodeURIComponent(endpoint.socket ?? '127.0.0.1');
    const urls = (user: string, password: string) => (database: string) =>
      `postgresql://${user}:${password}@${host}:${found.port}/${database}?require_auth=scram-sha-256`;
    const working = workingPassword(cluster.password);
    const urlOf = urls(WORKING_ROLE, working);
    const prepare = () => prepareRole(urls(USER, cluster.password), working);
    const presence = await tryJoin(prepare, urlOf('postgres'), name);
    if (presence) return { presence, urlOf, hasExited };
  }
  throw new RetryLater(`the embedded Postgres in ${dir} did not finish starting or stopping in time`, {
    next: 'see postgres.log in it, and run again',
  });
}

async function becomeOwner({ session }: Presence, dir: string): Promise<void> {
  for (let round = 0; round < 50; round += 1) {
    if (await tryLock(session, OWN)) return;
    const holder = await readOwner(session);
    // Without a holder, it released the lock between the two queries. One that is shutting down takes a moment.
    if (holder === undefined || round < ROUNDS_FOR_SHUTDOWN) {
      await sleep(ROUND_MS);
      continue;
    }
    const [, pid = '', command = ''] = /^pid (\d+): (.*)$/.exec(holder.who) ?? [];
    throw new RetryLater(
      `the embedded Postgres in ${dir} is in use by another process: pid ${pid} (${command}), since ${holder.since.toISOString().slice(0, 16).replace('T', ' ')} UTC`,
      {
        kept: 'nothing was changed; the other process is not affected',
        next: `wait until it ends, stop it (kill ${pid}), or set state.url to a Postgres server that processes can share`,
      },
    );
  }
  throw new RetryLater(`other processes keep restarting the embedded Postgres in ${dir}`, { next: 'run again' });
}

async function leaveServer({ presence, hasExited }: Attachment, { data }: Cluster, log: Log): Promise<void> {
  let last: boolean;
  try {
    last = await releaseLocks(presence.session);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    // Recovery: our connection is lost, so the server crashed. If it restarted, the next command takes it over.
    log.warn({ data, reason: error.message }, 'the connection to the embedded Postgres was lost before its end');
    last = false;
  }
  if (last && !(await stopPostmaster(data))) {
    log.warn({ data }, 'the embedded Postgres takes long to stop; the next command takes it over');
  } else if (last) {
    // Waits until Node has reaped our child: in a container without an init, it would stay in the process table as a zombie.
    await until(1000, async () => hasExited());
  }
  await presence.close();
}

/** `node dist/cli/main.js sync clicks` → `tributary sync clicks`. Our command line never contains keys or passwords. */
const commandLine = (): string =>
  [basename(process.argv[1] ?? '').replace(/^main\..*/, 'tributary'), ...process.argv.slice(2)].join(' ');

/**
 * Advisory locks end with their process. A pid file would outlive it, and if two processes find it stale, one may remove the other's.
 * Every user of the server holds `USE` in shared mode; the owner also holds `OWN`. Whoever gets `USE` exclusively is the last and stops it.
 */
const CLASS = 0x7472_6962;
const USE = 1;
const OWN = 2;

type Presence = NonNullable<Awaited<ReturnType<typeof tryJoin>>>;

/** The application_name. Postgres truncates it to 63 bytes and replaces non-ASCII characters by question marks. */
function presenceName(command: string): string {
  return `pid ${process.pid}: ${command.replace(/[^ -~]+/g, ' ')}`.slice(0, 63).trim();
}

/** Returns undefined if the last user is stopping the server or has stopped it: the next round then starts it. */
async function tryJoin(prepare: () => Promise<void>, url: string, name: string) {
  const db = connect({ url, name, max: 1 });
  let close = (): Promise<void> => db.close();
  try {
    await prepare();
    const session = await db.session();
    close = async () => {
      await session.close();
      await db.close();
    };
    if (await tryLock(session, USE, '_shared')) return { session, close };
  } catch (error) {
    if (!(error instanceof RetryLater)) {
      await close();
      throw error;
    }
  }
  await close();
  return undefined;
}

/** Releases our locks. Returns true if there is no other user; then nobody can join before the server is stopped. */
async function releaseLocks(session: Session): Promise<boolean> {
  await session.query(sql`SELECT pg_advisory_unlock_all()`);
  return tryLock(session, USE);
}

/** The owner of the server: its pid and command in the format of `presenceName`. */
async function readOwner(session: Session): Promise<{ who: string; since: Date } | undefined> {
  const [holder] = await session.query<{ who: string; since: Date }>(sql`
    SELECT a.application_name AS who, a.backend_start AS since FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted AND l.classid = ${CLASS} AND l.objid = ${OWN} AND l.mode = 'ExclusiveLock'`);
  return holder;
}

async function tryLock(session: Session, key: number, mode = ''): Promise<boolean> {
  const take = raw(`pg_try_advisory_lock${mode}`);
  const [answer] = await session.query<{ yes: boolean }>(sql`SELECT ${take}(${CLASS}, ${key}) AS yes`);
  return answer?.yes === true;
}

/** Rejoins after a crash: the restarted server has lost our locks, so a second owner could join, and stop the server while we use it. */
function rejoinOnLoss(first: Attachment, again: () => Promise<Attachment>, log: Log, onLost: (error: unknown) => void) {
  let isReleased = false;
  let current: Promise<Attachment | undefined> = Promise.resolve(first);
  const watch = async ({ presence }: Attachment): Promise<void> => {
    await presence.session.ended;
    if (!isReleased) current = rejoin(presence);
  };
  const rejoin = async (lost: Presence): Promise<Attachment | undefined> => {
    log.warn({}, 'the connection to the embedded Postgres was lost; reconnecting');
    try {
      await lost.close();
      const attachment = await again();
      void watch(attachment);
      return attachment;
    } catch (error) {
      // Recovery: `lost` ends the work of this process; what was committed stays, and the next start continues from it.
      log.error({ err: error }, 'the connection to the embedded Postgres could not be restored');
      onLost(error);
      return undefined;
    }
  };
  void watch(first);
  return {
    release(): Promise<Attachment | undefined> {
      isReleased = true;
      return current;
    },
  };
}
