import type { Socket } from 'node:net';
import pg from 'pg';
import { type Guarded, guardPassword } from './authentication.ts';
import { addressOf, databaseFault } from './errors.ts';

/** Connections for `index.ts`: values parsed as we need them, and a time limit for servers that never answer. */

interface PoolOptions {
  url: string;
  name: string;
  max: number;
  silenceMs: number;
}

export interface Connection {
  client: pg.PoolClient;
  pid: number;
  /** Waits for what the server says to a question, unless the line is dead. */
  answered: <T>(work: Promise<T>) => Promise<T>;
  release: () => void;
  discard: () => void;
}

export function openPool({ url, name, max, silenceMs }: PoolOptions) {
  const address = addressOf(url);
  const pool = new pg.Pool({ connectionString: url, application_name: name, max, keepAlive: true, types, Client });
  // An idle connection that the server closes is replaced at the next query. Without a listener it would end the process.
  pool.on('error', () => {});

  /**
   * On a connection of its own: those of the pool may all wait on a dead line. A process that gets nothing through is ended, as it would keep
   * its locks; not so if its answer came while we looked: a busy process of ours comes to its timers before it comes to what has arrived.
   */
  const lookAt: LookAt = async (pid, isStillSilent) => {
    const client = new Client({ connectionString: url, application_name: name, query_timeout: CONNECT_MS });
    try {
      await client.connect();
      const [row] = (await client.query<{ activity: BackendActivity }>(BACKEND_ACTIVITY, [pid])).rows;
      const activity = row?.activity ?? 'unknown';
      if (activity === 'waiting for us' && isStillSilent())
        await client.query('select pg_terminate_backend($1)', [pid]);
      return activity;
    } catch (error) {
      // Recovery: a server that refuses us, for want of room perhaps, is there, and says nothing of our question.
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
    /** It throws, as do queries on it, errors that say what to do. */
    async checkOut(): Promise<Connection> {
      const client = await pool.connect().catch(rethrow);
      return {
        client,
        pid: processOf(client),
        answered: (work) => unlessSilent(client, silenceMs, lookAt, work).catch(rethrow),
        release: () => client.release(),
        discard: () => client.release(true),
      };
    },
    end: () => pool.end(),
  };
}

/** What the server says of its process: at work on what we asked, waiting for us, or not to be found. */
type BackendActivity = 'at work' | 'waiting for us' | 'unknown';
type LookAt = (pid: number, isStillSilent: () => boolean) => Promise<BackendActivity>;

/** A server is asked about at this interval while it says nothing. */
export const SILENCE_MS = 60_000;

/** Behind a pooler a process cannot be found: then so many silences in a row say that the line is dead. */
const MOST_UNKNOWN = 5;

/**
 * A line that a firewall or a dead machine has swallowed says nothing for ever: after a silence, the server is asked on another connection
 * what it is doing. A limit on the time of a query would end those that are only long.
 */
async function unlessSilent<T>(client: pg.PoolClient, silenceMs: number, lookAt: LookAt, work: Promise<T>): Promise<T> {
  const stream = client.connection.stream as Socket;
  const bytesPassed = (): number => stream.bytesRead + stream.bytesWritten;
  let seen = bytesPassed();
  let unknown = 0;
  const look = async (): Promise<void> => {
    const passed = bytesPassed();
    if (passed !== seen) {
      [seen, unknown] = [passed, 0];
      return;
    }
    // Recovery: a server that cannot be asked either is not there.
    const isStillSilent = (): boolean => bytesPassed() === seen;
    const activity = await lookAt(processOf(client), isStillSilent).catch(() => 'waiting for us' as const);
    unknown = activity === 'unknown' ? unknown + 1 : 0;
    const isDead = activity === 'waiting for us' || unknown >= MOST_UNKNOWN;
    if (isDead && isStillSilent()) stream.destroy(silent(silenceMs));
  };
  const timer = setInterval(() => void look(), silenceMs);
  timer.unref();
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}

/** By the code of a lost connection, since that is what it is. */
const silent = (ms: number): Error =>
  Object.assign(new Error(`nothing came for ${ms / 1000} s and the server does not know of our question`), {
    code: '08006',
  });

const BACKEND_ACTIVITY = `
  select case when state is null or state = 'disabled' then 'unknown'
    when state = 'active' and wait_event_type is distinct from 'Client' then 'at work'
    else 'waiting for us' end as activity
  from pg_stat_activity
  where pid = $1 and usename = current_user and datname = current_database()`;

/** The server's process that greeted us; pg has no type for it. */
const processOf = (client: pg.PoolClient): number => (client as unknown as { processID: number }).processID;

/**
 * int8: a number while it is exact, else a bigint. numeric: a string, exact. timestamptz: a Date, so select `::text` for microseconds. date and
 * timestamp: a string; pg would read them in this machine's zone. Set per pool: pg's global setting is for all who use pg in this process.
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

/** The timeout is for reaching the server. Given to the pool, it would also fail work that only waits for a free connection. */
export class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super({ ...config, connectionTimeoutMillis: CONNECT_MS, keepAliveInitialDelayMillis: 30_000 });
    // The pool listens only to idle connections. The server may end one in our hands, too: the query under way says so.
    this.on('error', () => {});
    // Where pg cannot answer a server's question, it leaves the line open, or takes it for good if `ready` follows.
    this.connection.once('error', () => {
      this.connection.removeAllListeners('readyForQuery');
      this.connection.stream.destroy();
    });
    guardPassword(this as unknown as Guarded, config?.connectionString ?? '');
  }

  /** A server behind a dead connection never confirms the close, and its socket would keep the process alive. The timer itself must not. */
  override end(callback?: (error: Error) => void): Promise<void> {
    const cut = setTimeout(() => this.connection.stream.destroy(), CLOSE_WITHIN_MS).unref();
    this.connection.once('end', () => clearTimeout(cut));
    return super.end(callback as never) as unknown as Promise<void>;
  }
}
