import { connect, type Session } from '../database.ts';
import type { Sql } from '../sql.ts';

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
