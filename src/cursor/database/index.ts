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
  /** `COPY … FROM STDIN` with backpressure: reads a chunk only when the server has taken the last one. Returns the row count. */
  copyIn(text: string, chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<number>;
}

export type Session = Awaited<ReturnType<Database['session']>>;

interface ConnectOptions {
  url: string;
  /** The application_name in `pg_stat_activity`. */
  name?: string;
  max?: number;
  /** After this long without traffic, the server is asked whether it is still executing our query. */
  silenceMs?: number;
}

/** After this the server releases the locks of a suspended process. Much longer than any pause of ours: no transaction sends files. */
const LONGEST_PAUSE_MS = 300_000;

/** All settings are local to the transaction: behind a pooler, other clients use the same server connection afterwards. */
const BEGIN = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${LONGEST_PAUSE_MS}`;

export function connect({ url, name = 'tributary', max = 10, silenceMs = SILENCE_MS }: ConnectOptions) {
  const pool = openPool({ url, name, max, silenceMs });
  /** Begins a transaction that outlives the call. Without commit() or rollback(), its connection leaks. */
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
    /** Runs `work` between BEGIN and COMMIT; rolls back and rethrows if it throws. */
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
    /** A dedicated connection, for session-level state such as advisory locks. */
    async session() {
      const connection = await pool.checkOut();
      const ended = new Promise<void>((resolve) => connection.client.once('end', () => resolve()));
      return {
        /** Resolves when the connection is closed, by either side. */
        ended,
        /** Whether there is a pooler in between: then the answering backend is not the one with the pid from the handshake. */
        async isPooled(): Promise<boolean> {
          const [server] = await run<{ pid: number }>(connection, sql`select pg_backend_pid() as pid`);
          return server?.pid !== connection.pid;
        },
        query: <T extends object = Record<string, unknown>>(sql: Sql) => run<T>(connection, sql),
        async close(): Promise<void> {
          // Not returned to the pool: its locks must end with the connection instead of passing to the next user.
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
  const end = (disposeConnection: () => void) => {
    open = false;
    disposeConnection();
  };
  const openConnection = () => {
    if (!open) throw new Error('this transaction has ended; begin another');
    return connection;
  };
  return {
    query: async <T extends object = Record<string, unknown>>(sql: Sql) => run<T>(openConnection(), sql),
    async copyIn(text: string, chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<number> {
      // Loaded lazily: commands that only read never copy.
      const { from } = await import('pg-copy-streams');
      const { client, answered } = openConnection();
      const copy = client.query(from(text));
      await answered(pipeline(Readable.from(chunks, { objectMode: false }), copy));
      return copy.rowCount;
    },
    async commit(): Promise<void> {
      const { client, release, discard, answered } = openConnection();
      let tag: string;
      try {
        tag = (await answered(client.query('COMMIT'))).command;
      } catch (error) {
        end(discard);
        // The answer is lost, but the transaction may have been committed: only the data can tell.
        if (error instanceof RetryLater) error.kept = 'it is not known whether the last transaction was committed';
        throw error;
      }
      end(release);
      // Postgres answers COMMIT of a failed transaction with the tag "ROLLBACK" and no error; its rows are not stored.
      if (tag !== 'COMMIT') throw new RetryLater('an earlier statement failed, so the transaction was rolled back');
    },
    /** Never throws: a connection that cannot roll back is closed, and the server then rolls back by itself. */
    async rollback(): Promise<void> {
      if (!open) return;
      try {
        await connection.answered(connection.client.query('ROLLBACK'));
        end(connection.release);
      } catch {
        // Recovery: close the connection. The server rolls back the open transaction of a disconnected client.
        end(connection.discard);
      }
    },
  };
}

async function run<T>({ client, answered }: Connection, sql: Sql): Promise<T[]> {
  const { text, values, isSingle = false, hasSameNames = false } = sql;
  if (hasSameNames) return toRows(await answered(client.query({ text, rowMode: 'array' }))) as T[];
  // The extended protocol only accepts a single statement; `pg` uses it by default only for queries with values.
  const query = isSingle ? Object.assign({ text }, { queryMode: 'extended' }) : text;
  const result = await answered(client.query(query, values === undefined ? undefined : [...values]));
  return result.rows as T[];
}

function toRows({ fields, rows }: { fields: { name: string }[]; rows: unknown[][] }): Record<string, unknown>[] {
  const seen = new Map<string, number>();
  const names = fields.map(({ name }) => {
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name}_${count}`;
  });
  return rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]])));
}
