import type { Socket } from 'node:net';
import pg from 'pg';
import { type Guarded, guardPassword } from './authentication.ts';
import { addressOf, databaseFault } from './errors.ts';

/** The connection pool for `index.ts`: configures how values are parsed, and detects servers that never answer. */

interface PoolOptions {
  url: string;
  name: string;
  max: number;
  silenceMs: number;
}

export interface Connection {
  client: pg.PoolClient;
  pid: number;
  /** Waits for the answer to a query; rejects if the connection turns out to be dead. */
  answered: <T>(work: Promise<T>) => Promise<T>;
  release: () => void;
  discard: () => void;
}

export function openPool({ url, name, max, silenceMs }: PoolOptions) {
  const address = addressOf(url);
  const pool = new pg.Pool({ connectionString: url, application_name: name, max, keepAlive: true, types, Client });
  // The pool replaces idle connections that the server closes. Without a listener, the error would end the process.
  pool.on('error', () => {});

  /**
   * Uses a separate connection: all of the pool may be dead. Terminates a backend that waits for us, as it would keep its locks, unless
   * its answer has arrived meanwhile: in a busy process, timers run before data that has already arrived is processed.
   */
  const inspect: Inspect = async (pid, isStillSilent) => {
    const client = new Client({ connectionString: url, application_name: name, query_timeout: CONNECT_MS });
    try {
      await client.connect();
      const [row] = (await client.query<{ activity: BackendActivity }>(BACKEND_ACTIVITY, [pid])).rows;
      const activity = row?.activity ?? 'unknown';
      if (activity === 'waiting for us' && isStillSilent())
        await client.query('select pg_terminate_backend($1)', [pid]);
      return activity;
    } catch (error) {
      // Recovery: a server that refuses the connection (too many, perhaps) is alive, but the state of our query is unknown.
      if (error instanceof pg.DatabaseError) return 'unknown';
      throw error;
    } finally {
      void client.end();
    }
  };

  const rethrow = (error: unknown): never => {
    throw databaseFault(error, address);
  };
  return {
    /** Errors, also those of queries on the connection, are faults that tell the user what to do. */
    async checkOut(): Promise<Connection> {
      const client = await pool.connect().catch(rethrow);
      return {
        client,
        pid: processOf(client),
        answered: (work) => unlessDead(client, silenceMs, inspect, work).catch(rethrow),
        release: () => client.release(),
        discard: () => client.release(true),
      };
    },
    end: () => pool.end(),
  };
}

/** The state of a server process by pg_stat_activity: executing our query, waiting for the client, or not found. */
type BackendActivity = 'at work' | 'waiting for us' | 'unknown';
type Inspect = (pid: number, isStillSilent: () => boolean) => Promise<BackendActivity>;

/** After this long without traffic, the state of the server process is checked. */
export const SILENCE_MS = 60_000;

/** Behind a pooler, the server process cannot be found: after this many silent intervals in a row, the connection counts as dead. */
const MOST_UNKNOWN = 5;

/**
 * A connection cut by a firewall or a crashed machine is silent for ever: after a silence, a second connection queries pg_stat_activity
 * to see what the server process does. A timeout for queries would also end those that merely take long.
 */
async function unlessDead<T>(client: pg.PoolClient, silenceMs: number, inspect: Inspect, work: Promise<T>): Promise<T> {
  const stream = client.connection.stream as Socket;
  const bytesPassed = (): number => stream.bytesRead + stream.bytesWritten;
  let seen = bytesPassed();
  let unknown = 0;
  const check = async (): Promise<void> => {
    const passed = bytesPassed();
    if (passed !== seen) {
      [seen, unknown] = [passed, 0];
      return;
    }
    // Recovery: if the second connection fails as well, the server is unreachable.
    const isStillSilent = (): boolean => bytesPassed() === seen;
    const activity = await inspect(processOf(client), isStillSilent).catch(() => 'waiting for us' as const);
    unknown = activity === 'unknown' ? unknown + 1 : 0;
    const isDead = activity === 'waiting for us' || unknown >= MOST_UNKNOWN;
    if (isDead && isStillSilent()) stream.destroy(silenceError(silenceMs));
  };
  const timer = setInterval(() => void check(), silenceMs);
  timer.unref();
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}

/** Has the SQLSTATE of a lost connection. */
const silenceError = (ms: number): Error =>
  Object.assign(new Error(`nothing came for ${ms / 1000} s and the server is not executing our query`), {
    code: '08006',
  });

const BACKEND_ACTIVITY = `
  select case when state is null or state = 'disabled' then 'unknown'
    when state = 'active' and wait_event_type is distinct from 'Client' then 'at work'
    else 'waiting for us' end as activity
  from pg_stat_activity
  where pid = $1 and usename = current_user and datname = current_database()`;

/** The pid of the server process, as received when connecting; pg's types do not declare it. */
const processOf = (client: pg.PoolClient): number => (client as unknown as { processID: number }).processID;

/**
 * int8: a number if exact, else a bigint. numeric: a string, exact. timestamptz: a Date, so select `::text` for microseconds. date and
 * timestamp: a string, as pg would parse them in the local time zone. Set per pool: the global setting affects other users of pg.
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

const CONNECT_MS = 10_000;
const CLOSE_WITHIN_MS = 5000;

/** The timeout covers connecting to the server. Set on the pool, it would also apply to the wait for a free connection. */
export class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super({ ...config, connectionTimeoutMillis: CONNECT_MS, keepAliveInitialDelayMillis: 30_000 });
    // The pool only listens to idle connections. If the server closes one in use, the current query rejects.
    this.on('error', () => {});
    // If authentication fails in pg, it leaves the connection open, or even uses it if the server then reports that it is ready.
    this.connection.once('error', () => {
      this.connection.removeAllListeners('readyForQuery');
      this.connection.stream.destroy();
    });
    guardPassword(this as unknown as Guarded, config?.connectionString ?? '');
  }

  /** On a dead connection the close is never confirmed, and the socket would keep the process alive; the timer must not, hence unref(). */
  override end(callback?: (error: Error) => void): Promise<void> {
    const timer = setTimeout(() => this.connection.stream.destroy(), CLOSE_WITHIN_MS).unref();
    this.connection.once('end', () => clearTimeout(timer));
    return super.end(callback as never) as unknown as Promise<void>;
  }
}
