import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { RetryLater } from '../model/errors.ts';
import { addressOf, databaseFault } from './database-errors.ts';
import { SILENCE_MS, type Standing, unlessSilent, type Watched } from './silence.ts';
import type { Sql } from './sql.ts';

/** The one home of `pg`. Everything else sees these few functions, and errors of the house. */
export interface Database extends Queryable {
  /** Runs `work` between BEGIN and COMMIT; whatever it throws rolls back and is thrown on. */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** A transaction that lives across calls. The caller must end it by commit() or rollback(), or a connection is lost to it. */
  begin(): Promise<OpenTransaction>;
  /** One connection of its own, for what belongs to a connection: advisory locks. */
  session(): Promise<Session>;
  /** Waits for work under way, then ends every connection. */
  close(): Promise<void>;
}

export interface Queryable {
  query<T extends object = Record<string, unknown>>(sql: Sql): Promise<T[]>;
}

export interface Transaction extends Queryable {
  /** `COPY … FROM STDIN`; reads the next chunk only when the server took the last. Returns the number of rows. */
  copyIn(text: string, chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<number>;
}

export interface OpenTransaction extends Transaction {
  commit(): Promise<void>;
  /** Never throws: a connection that cannot roll back is dropped, and the server then rolls back by itself. */
  rollback(): Promise<void>;
}

export interface Session extends Queryable {
  /** Settles when the connection is gone, whoever ended it. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

export interface ConnectOptions {
  url: string;
  /** What `pg_stat_activity` shows. */
  name?: string;
  /** The most connections at once; further work waits its turn. */
  max?: number;
  /** After so long without a word, the server is asked whether it still knows of our question. */
  silenceMs?: number;
}

/**
 * A process that is stopped in the middle of a transaction keeps its locks, and everybody who wants the stream waits for them. After
 * this the server takes them back. Longer than any file takes to be sent while a transaction waits for it.
 */
const LONGEST_PAUSE_MS = 300_000;

export function connect({ url, name = 'tributary', max = 10, silenceMs = SILENCE_MS }: ConnectOptions): Database {
  const address = addressOf(url);
  const pool = new pg.Pool({
    connectionString: url,
    application_name: name,
    max,
    keepAlive: true,
    idle_in_transaction_session_timeout: LONGEST_PAUSE_MS,
    types,
    Client,
  });
  // An idle connection that the server closes is replaced at the next query. Without a listener it would end the process.
  pool.on('error', () => {});

  /** On a connection of its own: those of the pool may all be waiting on a dead line. */
  const lookAt = async (pid: number): Promise<Standing> => {
    const client = new Client({ connectionString: url, application_name: name, query_timeout: CONNECT_MS });
    client.on('error', () => {});
    try {
      await client.connect();
      return (await client.query<{ standing: Standing }>(STANDING, [pid])).rows[0]?.standing ?? 'unknown';
    } catch (error) {
      // Recovery: a server that refuses us, for want of room perhaps, is there, and says nothing of our question.
      if (error instanceof pg.DatabaseError) return 'unknown';
      throw error;
    } finally {
      void client.end();
    }
  };

  const checkOut = async (): Promise<Connection> => {
    try {
      const client = await pool.connect();
      return connectionOf(client, (work) => unlessSilent(lineOf(client), silenceMs, lookAt, work));
    } catch (error) {
      throw databaseFault(error, address);
    }
  };

  const fault = (error: unknown) => databaseFault(error, address);

  const begin = async (): Promise<OpenTransaction> => {
    const connection = await checkOut();
    try {
      await connection.answered(connection.client.query('BEGIN'));
    } catch (error) {
      connection.discard();
      throw fault(error);
    }
    return openTransaction(connection, fault);
  };

  return {
    async query<T>(sql: Sql) {
      const connection = await checkOut();
      try {
        return await run<T>(connection, sql);
      } catch (error) {
        throw fault(error);
      } finally {
        connection.release();
      }
    },
    begin,
    async transaction(work) {
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
    async session() {
      const connection = await checkOut();
      const ended = new Promise<void>((resolve) => connection.client.once('end', () => resolve()));
      return {
        ended,
        query: <T>(sql: Sql) =>
          run<T>(connection, sql).catch((error: unknown) => {
            throw fault(error);
          }),
        async close() {
          // Discarded, not given back: its locks end with the connection and must not wander to the next user.
          connection.discard();
          await ended;
        },
      };
    },
    close: () => pool.end(),
  };
}

function openTransaction(connection: Connection, fault: (error: unknown) => unknown): OpenTransaction {
  let open = true;
  const end = (leave: () => void) => {
    open = false;
    leave();
  };
  const rethrow = (error: unknown): never => {
    throw fault(error);
  };
  const alive = () => {
    if (!open) throw new Error('this transaction has ended; begin another');
    return connection;
  };
  return {
    query: async <T>(sql: Sql) => run<T>(alive(), sql).catch(rethrow),
    async copyIn(text, chunks) {
      const { client, answered } = alive();
      const copy = client.query(copyFrom(text));
      try {
        await answered(pipeline(Readable.from(chunks, { objectMode: false }), copy));
      } catch (error) {
        throw fault(error);
      }
      return copy.rowCount;
    },
    async commit() {
      const { client, release, discard, answered } = alive();
      let tag: string;
      try {
        tag = (await answered(client.query('COMMIT'))).command;
      } catch (error) {
        end(discard);
        const lost = fault(error);
        // The answer is lost, not always the commit: only a look at the data tells.
        if (lost instanceof RetryLater) lost.kept = 'it is not known whether the last transaction was committed';
        throw lost;
      }
      end(release);
      // Postgres answers COMMIT of a failed transaction with a friendly "ROLLBACK". Taken for success, rows would be lost.
      if (tag !== 'COMMIT') throw new RetryLater('an earlier statement failed, so the transaction was rolled back');
    },
    async rollback() {
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

interface Connection {
  client: pg.PoolClient;
  /** Waits for what the server says to a question, unless the line is dead. */
  answered: <T>(work: Promise<T>) => Promise<T>;
  release: () => void;
  discard: () => void;
}

function connectionOf(client: pg.PoolClient, answered: Connection['answered']): Connection {
  // The pool listens only while a connection is idle. In our hands it may break too, and the query under way says so.
  const onError = () => {};
  client.on('error', onError);
  const give = (broken: boolean) => {
    client.release(broken);
    client.off('error', onError);
  };
  return { client, answered, release: () => give(false), discard: () => give(true) };
}

async function run<T>({ client, answered }: Connection, { text, values }: Sql): Promise<T[]> {
  const result = await answered(client.query(text, values === undefined ? undefined : [...values]));
  return result.rows as T[];
}

/**
 * A process that reads from us or writes to us, and gets nothing through, is at the other end of a dead line. It is ended, or it would
 * keep its locks until the server notices by itself.
 */
const STANDING = `
  select standing, standing = 'waiting for us' and pg_terminate_backend(pid) as ended
  from pg_stat_activity, lateral (
    select case when state is null or state = 'disabled' then 'unknown'
      when state = 'active' and wait_event_type is distinct from 'Client' then 'at work'
      else 'waiting for us' end as standing
  ) as seen
  where pid = $1`;

const lineOf = (client: pg.PoolClient): Watched => {
  const stream = client.connection.stream as Socket;
  return {
    pid: (client as unknown as { processID: number }).processID,
    bytesPassed: () => stream.bytesRead + stream.bytesWritten,
    cut: (reason) => void stream.destroy(reason),
  };
};

/**
 * How values arrive. int8 and int8[]: a number while it is exact, else a bigint. numeric: a string, exact. timestamptz: a
 * Date, so select `::text` where microseconds matter. date and timestamp: a string, since pg would read them in the time
 * zone of this machine. Set per pool: pg's global setting would change the parsers of other users of pg in this process.
 */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text') => {
    const usual = pg.types.getTypeParser(oid, format) as (text: string) => unknown;
    if (format !== undefined && format !== 'text') return usual;
    if (oid === pg.types.builtins.INT8) return integer;
    if (oid === INT8_ARRAY)
      return (text: string) => (usual(text) as (string | null)[]).map((item) => item && integer(item));
    if (oid === pg.types.builtins.DATE || oid === pg.types.builtins.TIMESTAMP) return (text: string) => text;
    return usual;
  }) as pg.CustomTypesConfig['getTypeParser'],
};

const INT8_ARRAY = 1016;

function integer(text: string): number | bigint {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : BigInt(text);
}

/** How long it may take to reach the server, and to say goodbye to it. */
const CONNECT_MS = 10_000;
const GOODBYE_MS = 5000;

/** The timeout is for reaching the server. Given to the pool, it would also fail work that only waits for a free connection. */
class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super({ ...config, connectionTimeoutMillis: CONNECT_MS, keepAliveInitialDelayMillis: 30_000 });
  }

  /** A server behind a dead line never says goodbye, and its socket would keep the process alive. The timer itself must not. */
  override end(callback?: (error: Error) => void): Promise<void> {
    const cut = setTimeout(() => this.connection.stream.destroy(), GOODBYE_MS).unref();
    this.connection.once('end', () => clearTimeout(cut));
    return super.end(callback as never) as unknown as Promise<void>;
  }
}
