import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { ConfigError, type Fault, RetryLater } from '../../src/model/errors.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';

let home: TestDatabase;
let db: Database;

beforeAll(async () => {
  home = await freshDatabase();
  db = connect({ url: home.url });
  await db.query({ text: 'CREATE TABLE word (id int8 PRIMARY KEY, text text)' });
});

afterAll(async () => {
  await db.close();
  await home.drop();
});

const words = () => db.query<{ id: number; text: string }>({ text: 'SELECT * FROM word ORDER BY id' });
const add = (id: number, text: string) => ({ text: 'INSERT INTO word VALUES ($1, $2)', values: [id, text] });
const failure = (work: Promise<unknown>): Promise<Fault & { code?: string }> =>
  work.then(
    () => expect.unreachable('it was expected to fail'),
    (error) => error,
  );

describe('values', () => {
  it('keeps integers exact: as a number if safe, else as a bigint', async () => {
    const [row] = await db.query({
      text: `SELECT 9007199254740991::int8 AS safe, 9007199254740992::int8 AS large, (-9223372036854775808)::int8 AS least,
        count(*) AS count, array[1, null, 9007199254740993]::int8[] AS list, 12345678901234567890.123456789 AS exact FROM (VALUES (1)) v`,
    });
    expect(row).toEqual({
      safe: 9007199254740991,
      large: 9007199254740992n,
      least: -9223372036854775808n,
      count: 1,
      list: [1, null, 9007199254740993n],
      exact: '12345678901234567890.123456789',
    });
  });

  it('reads days and instants independent of the local time zone', async () => {
    const [row] = await db.query({ text: `SELECT date '2026-11-14' AS day, timestamptz '2026-11-14 10:00+02' AS at` });
    expect(row).toEqual({ day: '2026-11-14', at: new Date('2026-11-14T08:00:00Z') });
  });

  it('releases the locks of a process that hangs', async () => {
    const show = { text: 'show idle_in_transaction_session_timeout' };
    expect(await db.transaction((tx) => tx.query(show))).toEqual([{ idle_in_transaction_session_timeout: '5min' }]);
  });

  it('appears in pg_stat_activity by name', async () => {
    expect(await db.query({ text: 'SHOW application_name' })).toEqual([{ application_name: 'tributary' }]);
  });
});

describe('transaction', () => {
  it('keeps everything or nothing', async () => {
    const boom = new Error('boom');
    const failed = db.transaction(async (tx) => {
      await tx.query(add(1, 'lost'));
      throw boom;
    });
    await expect(failed).rejects.toBe(boom);
    expect(await words()).toEqual([]);
    expect(await db.transaction(async (tx) => tx.query(add(1, 'kept')).then(() => 'result'))).toBe('result');
    expect(await words()).toEqual([{ id: 1, text: 'kept' }]);
    await db.query({ text: 'TRUNCATE word' });
  });

  it('does not call a transaction committed that Postgres rolled back', async () => {
    const tx = await db.begin();
    await tx.query(add(2, 'lost'));
    expect((await failure(tx.query(add(2, 'twice')))).code).toBe('23505');
    await expect(tx.commit()).rejects.toThrow(/rolled back/);
    await tx.rollback();
    await expect(tx.query(add(3, 'late'))).rejects.toThrow(/has ended/);
    expect(await words()).toEqual([]);
  });

  it('survives the loss of its connection, and the pool serves the next', async () => {
    const small = connect({ url: home.url, max: 1 });
    const tx = await small.begin();
    const [me] = await tx.query<{ pid: number }>({ text: 'SELECT pg_backend_pid() AS pid' });
    await db.query({ text: 'SELECT pg_terminate_backend($1)', values: [me?.pid] });
    const lost = await failure(tx.query(add(4, 'lost')));
    expect(lost).toBeInstanceOf(RetryLater);
    await tx.rollback();
    expect(await small.query({ text: 'SELECT 1 AS one' })).toEqual([{ one: 1 }]);
    await small.close();
  });

  it('survives an idle connection that the server closes', async () => {
    const idle = connect({ url: home.url, max: 1 });
    const [me] = await idle.query<{ pid: number }>({ text: 'SELECT pg_backend_pid() AS pid' });
    await db.query({ text: 'SELECT pg_terminate_backend($1)', values: [me?.pid] });
    await sleep(100);
    expect(await idle.query({ text: 'SELECT 1 AS one' })).toEqual([{ one: 1 }]);
    await idle.close();
  });

  it('leaves no timer that keeps the process alive, even if the server closed first', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const brief = connect({ url: home.url, max: 1 });
    const session = await brief.session();
    const before = timers();
    const [us] = await session.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' });
    await db.query({ text: 'select pg_terminate_backend($1)', values: [us?.pid] });
    await session.ended;
    await session.close();
    await brief.close();
    expect(timers()).toBeLessThanOrEqual(before);
  });

  it('queues work for a free connection instead of failing it', async () => {
    const narrow = connect({ url: home.url, max: 1 });
    const pids = await Promise.all(
      [1, 2, 3].map(() => narrow.query<{ pid: number }>({ text: 'SELECT pg_backend_pid() AS pid, pg_sleep(0.05)' })),
    );
    expect(new Set(pids.flat().map(({ pid }) => pid)).size).toBe(1);
    await narrow.close();
  });
});

describe('copyIn', () => {
  async function* text(rows: number) {
    for (let id = 1; id <= rows; id += 1) yield Buffer.from(`${id}\tword ${id} é\n`);
  }

  it('takes text rows from a generator, and counts them', async () => {
    const count = await db.transaction((tx) => tx.copyIn('COPY word FROM STDIN', text(5000)));
    expect(count).toBe(5000);
    expect((await words()).at(-1)).toEqual({ id: 5000, text: 'word 5000 é' });
    await db.query({ text: 'TRUNCATE word' });
  });

  it('takes binary rows split at any byte', async () => {
    const bytes = Buffer.concat([
      Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1'),
      Buffer.from([0, 2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 0x68, 0x69]),
      Buffer.from([0xff, 0xff]),
    ]);
    const chunks = [...bytes].map((byte) => Buffer.from([byte]));
    expect(await db.transaction((tx) => tx.copyIn('COPY word FROM STDIN (FORMAT binary)', chunks))).toBe(1);
    expect(await words()).toEqual([{ id: 7, text: 'hi' }]);
    await db.query({ text: 'TRUNCATE word' });
  });

  it('applies backpressure to the source while the server is slow', async () => {
    let sent = 0;
    async function* large() {
      for (; sent < 400; sent += 1) yield Buffer.from(`${sent}\t${'x'.repeat(100_000)}\n`);
    }
    const blocker = await db.begin();
    await blocker.query({ text: 'LOCK word IN ACCESS EXCLUSIVE MODE' });
    const copying = db.transaction((tx) => tx.copyIn('COPY word FROM STDIN', large()));
    await sleep(300);
    // The server waits for the lock and reads nothing: of 40 MB only the buffers in transit are filled.
    expect(sent).toBeLessThan(60);
    await blocker.rollback();
    expect(await copying).toBe(400);
    await db.query({ text: 'TRUNCATE word' });
  });

  it('rolls back when the source fails, and throws its error', async () => {
    async function* broken() {
      yield* text(10);
      throw new Error('the source broke');
    }
    await expect(db.transaction((tx) => tx.copyIn('COPY word FROM STDIN', broken()))).rejects.toThrow(
      'the source broke',
    );
    expect(await words()).toEqual([]);
  });

  it('rolls back when the server refuses a row, and names the row', async () => {
    const refused = failure(db.transaction((tx) => tx.copyIn('COPY word FROM STDIN', [Buffer.from('1\ta\n1\tb\n')])));
    expect((await refused).code).toBe('23505');
    expect(await words()).toEqual([]);
  });

  it('fails instead of hanging when the connection breaks midway', async () => {
    const [lost] = await Promise.all([
      failure(
        db.transaction(async (tx) => {
          const [me] = await tx.query<{ pid: number }>({ text: 'SELECT pg_backend_pid() AS pid' });
          async function* dying() {
            yield* text(10);
            await db.query({ text: 'SELECT pg_terminate_backend($1)', values: [me?.pid] });
            for (;;) {
              yield Buffer.from(`9\t${'x'.repeat(10_000)}\n`);
              await sleep(1);
            }
          }
          await tx.copyIn('COPY word FROM STDIN', dying());
        }),
      ),
    ]);
    expect(lost).toBeInstanceOf(RetryLater);
    expect(await words()).toEqual([]);
  });
});

describe('connection errors', () => {
  const SECRET = 'sEcr3t-Pa55';
  const at = (change: (url: URL) => void) => {
    const url = new URL(home.url);
    url.password = SECRET;
    change(url);
    return url.href;
  };
  const tryIt = async (url: string) => {
    let opened: Database | undefined;
    const error = await failure(
      (async () => {
        opened = connect({ url });
        await opened.query({ text: 'SELECT 1' });
      })(),
    );
    await opened?.close();
    // Everything that a log or a crash report could print of it.
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(SECRET);
    expect(`${error.stack} ${JSON.stringify(error)} ${error.describe()}`).not.toContain(SECRET);
    return error;
  };

  it('report a wrong password without showing or retrying it', async () => {
    const error = await tryIt(at(() => {}));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toMatch(/refused user "tributary"/);
  });

  it('report a missing password immediately', async () => {
    const began = performance.now();
    const error = await tryIt(at((url) => (url.password = '')));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toMatch(/requires a password for user "tributary", and the database URL has none/);
    // The server itself waits for a minute.
    expect(performance.now() - began).toBeLessThan(20_000);
  });

  it('name an unknown database', async () => {
    const url = new URL(home.url);
    url.pathname = '/nowhere';
    const error = await tryIt(url.href);
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toMatch(/no database "nowhere"/);
  });

  it('are retryable for a closed port, with host and port', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    for (const host of ['127.0.0.1', 'localhost']) {
      const error = await tryIt(
        at((url) => {
          url.host = `${host}:${port}`;
        }),
      );
      expect(error).toBeInstanceOf(RetryLater);
      expect(error.message).toContain(`${host}:${port} cannot be reached (ECONNREFUSED)`);
    }
  });

  it('are retryable without a free connection on the server', async () => {
    await db.query({ text: `CREATE ROLE few_here LOGIN PASSWORD '${SECRET}' CONNECTION LIMIT 0` });
    const error = await tryIt(
      at((url) => {
        url.username = 'few_here';
      }),
    );
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(/too many connections/);
    await db.query({ text: 'DROP ROLE few_here' });
  });

  it.each([
    [`postgresql://me:${SECRET}#x@localhost/db`],
    [`postgresql://me:12/${SECRET}@localhost/db`],
    [`postgresql://me:12?${SECRET}@localhost/db`],
    [`postgresql://me:%zz${SECRET}@localhost/%zz`],
    [`mysql://me:${SECRET}@localhost/db`],
    [`me:${SECRET}`],
    [''],
  ])('name the format for an invalid URL: %#', async (url) => {
    const error = await tryIt(url);
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.describe()).toContain('postgresql://user:password@host:5432/database');
  });
});
