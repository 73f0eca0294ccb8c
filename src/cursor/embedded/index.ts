import { basename, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Fault, RetryLater } from '../../model/errors.ts';
import type { Log } from '../../model/log.ts';
import { connect, type Session } from '../database/index.ts';
import { raw, sql } from '../database/sql.ts';
import { type Cluster, prepareCluster, removeUnfinished, USER } from './cluster.ts';
import { findBinaries, type Home, openHome } from './home.ts';
import {
  type HasExited,
  lookAtPostmaster,
  type Settings,
  startPostmaster,
  stopPostmaster,
  until,
  type Way,
  wayTo,
} from './server.ts';
import { DATABASE, prepareRole, WORKING_ROLE, workingPassword } from './working-role.ts';

export type EmbeddedPostgres = Awaited<ReturnType<typeof openIn>>;

interface EmbeddedOptions {
  /** The state folder; the data lies in `<dir>/postgres`. */
  dir: string;
  log: Log;
  /** For commands that only read: come in beside the process that owns the server, instead of being refused. */
  attach?: boolean;
  /** What another process is told that we do; by default our command line. */
  command?: string;
  /** For tests: server settings on top of ours, such as fsync=off. */
  settings?: Settings;
}

const START_ATTEMPTS = 5;
const ROUND_MS = 50;
const ROUNDS_FOR_LEAVING = 20;

export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const home = await openHome(resolve(options.dir));
  try {
    return await openIn(home, options);
  } catch (error) {
    await home.close();
    throw error;
  }
}

async function openIn(home: Home, options: EmbeddedOptions) {
  const { log, attach = false, command = commandLine(), settings = {} } = options;
  const { dir } = home;
  const programs = await findBinaries(home);
  const cluster = await prepareCluster(home, programs, settings.fsync !== 'off');
  const way = await wayTo(home);
  const lost = new AbortController();
  const enterAndOwn = async (): Promise<Place> => {
    const start = () => startPostmaster({ home, programs, settings, tcp: way.tcp });
    const place = await come({ cluster, way, start, name: presenceName(command), dir });
    try {
      if (!attach) await becomeOwner(place.presence, dir);
      if (!attach) await removeUnfinished(home);
    } catch (error) {
      await leavePlace(place, cluster, log);
      throw error;
    }
    return place;
  };
  const place = await enterAndOwn().catch(async (error: unknown) => {
    await way.close();
    throw error;
  });
  // At the same address, so that the URL which was given out stays true.
  const kept = keepPlace(place, enterAndOwn, log, (error) => lost.abort(error));
  log.debug({ dir, attach }, 'embedded Postgres is ready');
  const close = async () => {
    const last = await kept.release();
    if (last) await leavePlace(last, cluster, log);
    await way.close();
    await home.close();
  };
  let closing: Promise<void> | undefined;
  return {
    /** Holds the password of a role that is no superuser: for `connect`, not for messages. */
    url: place.urlOf(DATABASE),
    /** Aborted, with the reason, when the server went away and did not come back. */
    lost: lost.signal as AbortSignal,
    /** Close your own connections first. Stops the server unless another process still uses it. */
    close(): Promise<void> {
      closing ??= close();
      return closing;
    },
  };
}

interface Place {
  presence: Presence;
  urlOf(database: string): string;
  hasExited: HasExited;
}

interface Coming {
  cluster: Cluster;
  way: Way;
  start: () => Promise<HasExited>;
  name: string;
  dir: string;
}

/** Joins the server that runs, whoever started it, or starts it. Others come and go meanwhile: hence the rounds. */
async function come({ cluster, way, start, name, dir }: Coming): Promise<Place> {
  let hasExited: HasExited = () => true;
  let failedStarts = 0;
  for (const deadline = Date.now() + 150_000; Date.now() < deadline; await sleep(20)) {
    const found = await lookAtPostmaster(cluster.data);
    if (found.state === 'busy') continue;
    if (found.state !== 'ready') {
      try {
        hasExited = await start();
      } catch (error) {
        // Recovery: a port taken under our nose, or a faster process; both pass. What does not pass fails again.
        failedStarts += 1;
        if (failedStarts >= START_ATTEMPTS) throw error;
        // Sessions of a killed server may still be finishing their statement; Postgres waits for the last of them.
        await sleep(50 * 2 ** failedStarts);
      }
      continue;
    }
    const host = encodeURIComponent(way.socket ?? '127.0.0.1');
    const urls = (user: string, password: string) => (database: string) =>
      `postgresql://${user}:${password}@${host}:${found.port}/${database}?require_auth=scram-sha-256`;
    const working = workingPassword(cluster.password);
    const urlOf = urls(WORKING_ROLE, working);
    const prepare = () => prepareRole(urls(USER, cluster.password), working);
    const presence = await enter(prepare, urlOf('postgres'), name);
    if (presence) return { presence, urlOf, hasExited };
  }
  throw new RetryLater(`the embedded Postgres in ${dir} did not finish starting or stopping in time`, {
    next: 'see postgres.log in it, and run again',
  });
}

async function becomeOwner({ session }: Presence, dir: string): Promise<void> {
  for (let round = 0; round < 50; round += 1) {
    if (await tryLock(session, OWN)) return;
    const holder = await ownHolder(session);
    // No holder: it left between the two questions. And one that is leaving takes a moment.
    if (holder === undefined || round < ROUNDS_FOR_LEAVING) {
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

async function leavePlace({ presence, hasExited }: Place, { data }: Cluster, log: Log): Promise<void> {
  let last: boolean;
  try {
    last = await leave(presence.session);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    // Recovery: our connection is gone, so the server crashed. If it came back, it stays for the next to take over.
    log.warn({ data, reason: error.message }, 'the connection to the embedded Postgres was lost before its end');
    last = false;
  }
  if (last && !(await stopPostmaster(data))) {
    log.warn({ data }, 'the embedded Postgres takes long to stop; the next command takes it over');
  } else if (last) {
    // Our child is collected by us; left to a container without an init, it would stay in the process table.
    await until(1000, async () => hasExited());
  }
  await presence.close();
}

/** `node dist/cli/main.js sync clicks` → `tributary sync clicks`. Keys and passwords never stand on our command line. */
const commandLine = (): string =>
  [basename(process.argv[1] ?? '').replace(/^main\..*/, 'tributary'), ...process.argv.slice(2)].join(' ');

/**
 * Kept in the server: locks end with their process. A file with a pid would outlive it, and the second to find it stale may remove a fresh one.
 * Everyone present holds `USE` in shared mode; the one who works, `OWN` alone. Whoever can take `USE` alone is the last, and stops the server.
 */
const CLASS = 0x7472_6962;
const USE = 1;
const OWN = 2;

type Presence = NonNullable<Awaited<ReturnType<typeof enter>>>;

/** Postgres keeps 63 bytes of it, and shows anything but ASCII as question marks. */
function presenceName(command: string): string {
  return `pid ${process.pid}: ${command.replace(/[^ -~]+/g, ' ')}`.slice(0, 63).trim();
}

/** Undefined: the last user is about to stop the server, or it has stopped; the next round sees that, and starts it. */
async function enter(prepare: () => Promise<void>, url: string, name: string) {
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

/** Gives up what this connection holds. True: nobody else is here, and no one can enter before the server is stopped. */
async function leave(session: Session): Promise<boolean> {
  await session.query(sql`SELECT pg_advisory_unlock_all()`);
  return tryLock(session, USE);
}

/** Who owns it: the command and its pid, as `presenceName` wrote them. */
async function ownHolder(session: Session): Promise<{ who: string; since: Date } | undefined> {
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

/** Keeps our place: a server that crashed and came back has forgotten us, would let in a second owner, and stop under us when that one leaves. */
function keepPlace(first: Place, again: () => Promise<Place>, log: Log, onLost: (error: unknown) => void) {
  let wanted = true;
  let current: Promise<Place | undefined> = Promise.resolve(first);
  const watch = async ({ presence }: Place): Promise<void> => {
    await presence.session.ended;
    if (wanted) current = comeBack(presence);
  };
  const comeBack = async (lost: Presence): Promise<Place | undefined> => {
    log.warn({}, 'the connection to the embedded Postgres was lost; reconnecting');
    try {
      await lost.close();
      const place = await again();
      void watch(place);
      return place;
    } catch (error) {
      // Recovery: whoever works here ends, and is started again; what was committed stays.
      log.error({ err: error }, 'the connection to the embedded Postgres could not be restored');
      onLost(error);
      return undefined;
    }
  };
  void watch(first);
  return {
    release(): Promise<Place | undefined> {
      wanted = false;
      return current;
    },
  };
}
