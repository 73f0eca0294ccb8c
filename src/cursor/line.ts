import { Cancelled, RetryLater } from '../model/errors.ts';
import type { Database, Session } from './database.ts';
import type { Sql } from './sql.ts';

/**
 * A connection of its own to the state, opened when it is needed and again when it was lost. In the pool a question about
 * the budget would stand behind transactions that load rows, and a turn that comes late is a turn lost.
 */
export interface Line {
  query<T extends object = Record<string, unknown>>(sql: Sql): Promise<T[]>;
  close(): Promise<void>;
}

const LONGEST_ANSWER_MS = 5000;

export function createLine(db: Database): Line {
  let session: Promise<Session> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  async function open(): Promise<Session> {
    const opened = await db.session();
    // What a crash of the database takes back is less than a second old; when it is up again, every slot in it has passed. Through a
    // pooler the setting would reach commits of others.
    if (!(await opened.isPooled())) await opened.query({ text: 'set synchronous_commit = off' });
    return opened;
  }

  /** Without waiting: the end of a connection that hangs never comes. */
  function drop(lost: Promise<Session>): void {
    if (session === lost) session = undefined;
    lost.then((one) => one.close()).catch(() => {}); // It could not be opened, so there is nothing to close.
  }

  return {
    async query<T extends object>(sql: Sql) {
      // A request that comes home later would open a connection that nobody closes.
      if (isClosed) throw new Cancelled('the connection to the budget is closed');
      session ??= open();
      const current = session;
      // One question at a time, as a connection has it; each has its own time, whatever those before it took.
      const answer = last.then(() => inTime(current.then((one) => one.query<T>(sql))));
      last = answer.catch(() => {}); // Its own caller hears of it.
      try {
        return await answer;
      } catch (error) {
        drop(current);
        throw error;
      }
    },
    async close() {
      isClosed = true;
      if (session) await inTime(session.then((one) => one.close())).catch(() => {}); // Lost already: it is closed.
      session = undefined;
    },
  };
}

/** A server that is stopped, or behind a network that swallows packets, never answers. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    const seconds = LONGEST_ANSWER_MS / 1000;
    const fault = new RetryLater(`the state database did not answer within ${seconds} s`, {
      next: 'check the server and the network to it; then run again',
    });
    timer = setTimeout(() => reject(fault), LONGEST_ANSWER_MS);
  });
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
