import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { RetryLater } from '../../model/errors.ts';
import { type Connection, openPool, SILENCE_MS } from './connection.ts';
import { type Sql, sql } from './sql.ts';

export type Database = ReturnType<typeof connect>;

export interface Queryable {
  query<T extends object = Record<string, unknown>>(sql: Sql): Promise<T[]>;
}

export interface Transaction extends Queryable {
  /** `COPY … FROM STDIN`; reads the next chunk only when the server took the last. Returns the number of rows. */
  copyIn(text: string, chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<number>;
}

export type Session = Awaited<ReturnType<Database['session']>>;

interface ConnectOptions {
  url: string;
  /** What `pg_stat_activity` shows. */
  name?: string;
  max?: number;
  /** After so long without a word, the server is asked whether it still knows of our question. */
  silenceMs?: number;
}

/** After this the server takes back the locks of a stopped process. Much longer than any step: none sends a file. */
const LONGEST_PAUSE_MS = 300_000;

/** Nothing is set for longer than a transaction: behind a pooler the next one has another connection, and ours is somebody else's. */
const BEGIN = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${LONGEST_PAUSE_MS}`;

export function connect({ url, name = 'tributary', max = 10, silenceMs = SILENCE_MS }: ConnectOptions) {
  const pool = openPool({ url, name, max, silenceMs });
  /** Lives across calls. The caller must end it by commit() or rollback(), or a connection is lost to it. */
  const begin = async () => {
    const connection = await pool.checkOut();
    try {
      await connection.answered(connection.client.query(BEGIN));
    } catch (error) {
      connection.discard();
      throw error;
    }
    return openTransaction(connection);
  };
  return {
    async query<T extends object = Record<string, unknown>>(sql: Sql): Promise<T[]> {
      const connection = await pool.checkOut();
      try {
        return await run<T>(connection, sql);
      } finally {
        connection.release();
      }
    },
    begin,
    /** Runs `work` between BEGIN and COMMIT; whatever it throws rolls back and is thrown on. */
    async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
      const tx = await begin();
      try {
        const result = await work(tx);
        await tx.commit();
        return result;
      } catch (error) {
        await tx.rollback();
        throw error;
      }
    },
    /** One connection of its own, for what belongs to a connection: advisory locks. */
    async session() {
      const connection = await pool.checkOut();
      const ended = new Promise<void>((resolve) => connection.client.once('end', () => resolve()));
      return {
        /** Settles when the connection is gone, whoever ended it. */
        ended,
        /** Whether a pooler stands in between: then whoever answers is not the process that greeted us. */
        async isPooled(): Promise<boolean> {
          const [server] = await run<{ pid: number }>(connection, sql`select pg_backend_pid() as pid`);
          return server?.pid !== connection.pid;
        },
        query: <T extends object = Record<string, unknown>>(sql: Sql) => run<T>(connection, sql),
        async close(): Promise<void> {
          // Discarded, not given back: its locks end with the connection and must not wander to the next user.
          connection.discard();
          await ended;
        },
      };
    },
    close: (): Promise<void> => pool.end(),
  };
}

export async function ifTable<T>(db: Queryable, name: string, read: () => Promise<T[]>): Promise<T[]> {
  const found = await db.query(sql`select where to_regclass(${`tributary.${name}`}) is not null`);
  return found.length > 0 ? read() : [];
}

export const isBehindPooler = (url: string): Promise<boolean> =>
  withDatabase({ url, max: 1 }, async (db) => {
    const session = await db.session();
    return session.isPooled().finally(() => session.close());
  });

export async function withDatabase<T>(options: ConnectOptions, work: (db: Database) => Promise<T>): Promise<T> {
  const db = connect(options);
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

function openTransaction(connection: Connection) {
  let open = true;
  const end = (leave: () => void) => {
    open = false;
    leave();
  };
  const alive = () => {
    if (!open) throw new Error('this transaction has ended; begin another');
    return connection;
  };
  return {
    query: async <T extends object = Record<string, unknown>>(sql: Sql) => run<T>(alive(), sql),
    async copyIn(text: string, chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<number> {
      // Loaded here: commands that only look never copy.
      const { from } = await import('pg-copy-streams');
      const { client, answered } = alive();
      const copy = client.query(from(text));
      await answered(pipeline(Readable.from(chunks, { objectMode: false }), copy));
      return copy.rowCount;
    },
    async commit(): Promise<void> {
      const { client, release, discard, answered } = alive();
      let tag: string;
      try {
        tag = (await answered(client.query('COMMIT'))).command;
      } catch (error) {
        end(discard);
        // The answer is lost, not always the commit: only a look at the data tells.
        if (error instanceof RetryLater) error.kept = 'it is not known whether the last transaction was committed';
        throw error;
      }
      end(release);
      // Postgres answers COMMIT of a failed transaction with a friendly "ROLLBACK". Taken for success, rows would be lost.
      if (tag !== 'COMMIT') throw new RetryLater('an earlier statement failed, so the transaction was rolled back');
    },
    /** Never throws: a connection that cannot roll back is dropped, and the server then rolls back by itself. */
    async rollback(): Promise<void> {
      if (!open) return;
      try {
        await connection.answered(connection.client.query('ROLLBACK'));
        end(connection.release);
      } catch {
        // Recovery: drop the connection. The server rolls back what a vanished client left open.
        end(connection.discard);
      }
    },
  };
}

async function run<T>({ client, answered }: Connection, sql: Sql): Promise<T[]> {
  const { text, values, isSingle = false, hasSameNames = false } = sql;
  if (hasSameNames) return toRows(await answered(client.query({ text, rowMode: 'array' }))) as T[];
  // The extended protocol takes one statement; `pg` uses it by itself only where there are values.
  const query = isSingle ? Object.assign({ text }, { queryMode: 'extended' }) : text;
  const result = await answered(client.query(query, values === undefined ? undefined : [...values]));
  return result.rows as T[];
}

interface Answer {
  fields: ReadonlyArray<{ name: string }>;
  rows: readonly unknown[][];
}

function toRows({ fields, rows }: Answer): Record<string, unknown>[] {
  const seen = new Map<string, number>();
  const names = fields.map(({ name }) => {
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name}_${count}`;
  });
  return rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]])));
}
