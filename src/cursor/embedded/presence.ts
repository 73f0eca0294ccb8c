import type { Log } from '../../model/log.ts';
import { connect, type Session } from '../database/index.ts';
import type { Sql } from '../database/sql.ts';

/**
 * Who uses the embedded server is kept in the server: locks of a connection end with its process, however that dies. A file
 * with a pid would outlive it, and of two processes that find a stale one, the second may remove the first's fresh one.
 *
 * Everyone present holds `USE` in shared mode; the one who works, `OWN` alone. Whoever leaves last stops the server: that
 * is who can take `USE` alone.
 */
const CLASS = 0x7472_6962;
const USE = 1;
const OWN = 2;

export interface Presence {
  session: Session;
  close(): Promise<void>;
}

export interface Holder {
  /** The command and its pid, as `presenceName` wrote them. */
  who: string;
  since: Date;
}

/** Postgres keeps 63 bytes of it, and shows anything but ASCII as question marks. */
export function presenceName(command: string): string {
  return `pid ${process.pid}: ${command.replace(/[^ -~]+/g, ' ')}`.slice(0, 63).trim();
}

export async function enter(url: string, name: string): Promise<Presence> {
  const db = connect({ url, name, max: 1 });
  try {
    const session = await db.session();
    const close = async () => {
      await session.close();
      await db.close();
    };
    return { session, close };
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** False: the last user is about to stop the server; come again when it is gone. */
export const takeUse = (session: Session): Promise<boolean> => ask(session, lock('pg_try_advisory_lock_shared', USE));

export const takeOwn = (session: Session): Promise<boolean> => ask(session, lock('pg_try_advisory_lock', OWN));

/** Gives up what this connection holds. True: nobody else is here, and no one can enter before the server is stopped. */
export async function leave(session: Session): Promise<boolean> {
  await session.query({ text: 'SELECT pg_advisory_unlock_all()' });
  return ask(session, lock('pg_try_advisory_lock', USE));
}

export async function ownHolder(session: Session): Promise<Holder | undefined> {
  const [holder] = await session.query<Holder>({
    text: `SELECT a.application_name AS who, a.backend_start AS since
      FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE l.locktype = 'advisory' AND l.granted AND l.classid = $1 AND l.objid = $2 AND l.mode = 'ExclusiveLock'`,
    values: [CLASS, OWN],
  });
  return holder;
}

const lock = (name: string, key: number): Sql => ({ text: `SELECT ${name}($1, $2) AS yes`, values: [CLASS, key] });

async function ask(session: Session, sql: Sql): Promise<boolean> {
  const [answer] = await session.query<{ yes: boolean }>(sql);
  return answer?.yes === true;
}

/**
 * Keeps our place in the server until it is released. A server that crashes forgets who was there, even if it comes back by
 * itself: a second owner would be let in beside us, and when it left as the last, it would stop the server under our hands.
 */
export function keepPlace<Place extends { presence: Presence }>(first: Place, again: () => Promise<Place>, log: Log) {
  let wanted = true;
  let current: Promise<Place | undefined> = Promise.resolve(first);
  const watch = async ({ presence }: Place): Promise<void> => {
    await presence.session.ended;
    if (wanted) current = comeBack(presence);
  };
  const comeBack = async (lost: Presence): Promise<Place | undefined> => {
    log.warn({}, 'the embedded Postgres went away; coming back to it');
    try {
      await lost.close();
      const place = await again();
      void watch(place);
      return place;
    } catch (error) {
      // Recovery: go on without a place. Work fails at its next query and says why; what was committed stays.
      log.error({ err: error }, 'the embedded Postgres did not come back');
      return undefined;
    }
  };
  void watch(first);
  return {
    /** The place as it is now, to be left by the caller; undefined: there is none any more. */
    release(): Promise<Place | undefined> {
      wanted = false;
      return current;
    },
  };
}
