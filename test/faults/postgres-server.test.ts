import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSecureContext, TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { type EmbeddedPostgres, openEmbedded } from '../../src/cursor/embedded/index.ts';
import { dataDirectory } from '../../src/cursor/embedded/state-folder.ts';
import { ConfigError, RetryLater } from '../../src/model/errors.ts';
import { createAuthority } from '../support/certificates.ts';
import { freshPlace } from '../support/cli.ts';
import { postmasterOf } from '../support/embedded.ts';
import { openEngine } from '../support/engine.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { freePort } from '../support/free-port.ts';
import { listening } from '../support/front.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { recordCase } from '../support/proof.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { startWorker, until, workerConfig } from '../support/workers.ts';
import { idsIn, lossesOf } from './losses.ts';
import { isProving, KEY, messageOf } from './wire-scene.ts';

/** Failures of the database: no room, no TLS, no answer. */

const PASSWORD = 'canary-password-0815';

const engine = await forThisFile(openEngine());

const arriveIn = ({ service }: Sandbox, clicks: number): void =>
  void service.arrive('clicks', clicks, { from: service.now() - 60_000, to: service.now() });

/** As a user would write it. */
const textOf = (sandbox: Sandbox, url: string): string => {
  const source = { baseUrl: sandbox.baseUrl, apiKey: KEY, plan: 'enterprise', requestsPerSecond: 500, since: '30d' };
  return JSON.stringify({ sources: { main: source }, state: { url } });
};

describe('a server that stops answering', () => {
  const SILENCE = 300;

  async function openSilent(): Promise<{ proxy: Awaited<ReturnType<typeof startFaultProxy>>; db: Database }> {
    const proxy = await startFaultProxy(engine.url);
    return { proxy, db: connect({ url: proxy.url, max: 2, silenceMs: SILENCE }) };
  }

  it('is not waited for: the transaction ends on the server too, and releases its locks', async () => {
    const { proxy, db } = await openSilent();
    await db.query({ text: 'create table if not exists held (n int); insert into held values (1)' });
    const tx = await db.begin();
    await tx.query({ text: 'update held set n = n + 1' });
    // The proxy swallows the next bytes of this connection; others still pass.
    await proxy.fail({ kind: 'black hole', bytes: 0 });
    const fault = tx.query({ text: 'select 1' }).catch((error: unknown) => error);
    await sleep(SILENCE / 3);
    await proxy.fail({ kind: 'latency', ms: 0 });
    expect(await fault).toBeInstanceOf(RetryLater);
    expect((await fault) as RetryLater).toMatchObject({ message: expect.stringMatching(/nothing came for 0\.3 s/) });
    // The row is unlocked although the server received nothing more from us.
    await engine.db.query({ text: "set lock_timeout = '20s'; update held set n = 0" });
    await tx.rollback();
    await db.close();
    await proxy.close();
  });

  it('is waited for while it works, however long', async () => {
    const { proxy, db } = await openSilent();
    const slept = db.query({ text: `select pg_sleep(${(SILENCE * 5) / 1000})` });
    await expect(slept).resolves.toHaveLength(1);
    await db.close();
    await proxy.close();
  });
});

it('a server that answered while we were busy is not considered silent', async () => {
  const db = connect({ url: engine.url, max: 1, silenceMs: 300 });
  const tx = await db.begin();
  const answer = tx.query({ text: 'select pg_sleep(0.05)' });
  // The answer arrives while nothing is read. After an immediate, timers run before I/O.
  await new Promise(setImmediate);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
  await answer;
  await sleep(1500);
  await expect(tx.query({ text: 'select 1 as one' })).resolves.toEqual([{ one: 1 }]);
  await tx.rollback();
  await db.close();
});

describe('a server without free connections', () => {
  const few = (limit: number): Promise<unknown> =>
    engine.db.query({ text: `alter role few connection limit ${limit}` });
  /** Ends all connections of the role. */
  const sendAway = (): Promise<unknown> =>
    engine.db.query({ text: `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'few'` });
  let sandbox: Sandbox;
  let home: TestDatabase;
  let db: Database;
  /** For the database's owner: a superuser always gets a connection. */
  let url: string;
  beforeAll(async () => {
    sandbox = await smallSandbox({ apiKey: KEY, rows: { clicks: 60, leads: 20, sales: 10 }, days: 5 });
    await engine.db.query({ text: `create role few login password '${PASSWORD}'` });
    home = await freshDatabase();
    await engine.db.query({ text: `alter database ${new URL(home.url).pathname.slice(1)} owner to few` });
    db = connect({ url: home.url, max: 1 });
    url = Object.assign(new URL(home.url), { username: 'few', password: PASSWORD }).href;
  });
  afterAll(async () => {
    await db.close();
    await home.drop();
    await engine.db.query({ text: 'drop role few' });
  });
  const config = () =>
    workerConfig({ stateUrl: url, queueUrl: undefined, sandboxes: { main: { ...sandbox, apiKey: KEY } } });

  it.each([
    ['sync', 0],
    ['worker', 0],
    ['worker', 3],
  ])('fails %s with room for %i with a clear message, and can be run again', async (command, room) => {
    await few(room);
    const place = await freshPlace();
    await place.config(textOf(sandbox, url));
    const { code, stderr, text } = await place.run([command, '--config', 't.yaml']);
    await few(-1);
    recordCase({
      suite: 'wire',
      name: `room for ${room} connections: ${command}`,
      survived: code === 4,
      lost: 0,
      doubled: 0,
    });
    expect(messageOf(stderr)).toMatch(/^Postgres at .*too many connections for role "few"\n(kept: .*\n)?next: /);
    expect(code).toBe(4);
    expect(text).not.toContain(PASSWORD);
  });

  it.runIf(isProving)('a running worker recovers when there is room again', async () => {
    const worker = startWorker(config());
    await worker.ready();
    const losses = () => lossesOf(sandbox, idsIn(db));
    await until('everything is there', async () => (await losses()).lost === 0);
    await few(0);
    await sendAway();
    arriveIn(sandbox, 5);
    await sleep(2500);
    await few(-1);
    await until('what arrived is there', async () => (await losses()).lost === 0);
    worker.child.kill('SIGTERM');
    const { code, text } = await worker.done;
    recordCase({
      suite: 'wire',
      name: 'no connection left: worker at work',
      survived: code === 0,
      ...(await losses()),
    });
    expect(code, text).toBe(0);
    expect(text).toMatch(/too many connections/);
    expect(text).not.toContain(PASSWORD);
    expect(await losses()).toEqual({ lost: 0, doubled: 0 });
  });
});

describe('a server stopped immediately', () => {
  let dir: string;
  let server: EmbeddedPostgres;
  /** The role that creates databases. */
  let superuser: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'tributary-faults-'));
    const port = await freePort();
    const settings = { fsync: 'off', listen_addresses: '127.0.0.1', port: String(port) };
    server = await openEmbedded({ dir, log: silentLog, command: 'vitest', settings });
    const password = await readFile(join(dataDirectory(dir), 'tributary.password'), 'utf8');
    superuser = `postgresql://tributary:${password}@127.0.0.1:${port}/tributary`;
  });
  afterAll(async () => {
    await server.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('in the middle of COPY: the batch is rolled back, and the next run writes it', async () => {
    const [home, place] = await Promise.all([freshDatabase(superuser), freshPlace()]);
    const sandbox = await smallSandbox({ apiKey: KEY, rows: { clicks: 200, leads: 10, sales: 5 }, days: 5 });
    await place.config(textOf(sandbox, home.url));
    const sync = () => place.run(['sync', '--config', 't.yaml']);
    expect((await sync()).code).toBe(0);
    const db = connect({ url: home.url, max: 1 });
    // Slows down every row, so that the stop falls into the middle.
    await db.query({ text: SLOW_ROWS });
    arriveIn(sandbox, 500);
    const stopped = sync();
    await until('rows are being copied', async () => {
      return (await db.query({ text: 'select from pg_stat_progress_copy where tuples_processed > 10' })).length > 0;
    });
    const pid = await postmasterOf(dir);
    process.kill(pid ?? -1, 'SIGQUIT');
    const { code, stderr } = await stopped;
    await until('Postgres is back', async () => ![undefined, pid].includes(await postmasterOf(dir)));
    await until('it answers', () =>
      db.query({ text: 'drop trigger slow on attribution.clicks' }).then(
        () => true,
        () => false,
      ),
    );
    const again = await sync();
    const losses = await lossesOf(sandbox, idsIn(db));
    recordCase({ suite: 'wire', name: 'Postgres restarts in COPY', survived: again.code === 0, ...losses });
    await db.close();
    expect(messageOf(stderr)).toMatch(/^main\/clicks.*Postgres at .*\nkept: .*\nnext: /m);
    expect(code).toBe(4);
    expect({ code: again.code, ...losses }).toEqual({ code: 0, lost: 0, doubled: 0 });
  });
});

const SLOW_ROWS = `
  create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.005); return new; end $$;
  create trigger slow before insert on attribution.clicks for each row execute function slow()`;

it('a server without TLS, where the URL requires it, needs the user to act', async () => {
  const db = connect({ url: `${inject('postgresUrl')}?sslmode=verify-full`, max: 1 });
  const fault = await db.query({ text: 'select 1' }).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(ConfigError);
  expect((fault as ConfigError).describe()).toMatch(/does not speak TLS as expected\nnext: turn on ssl in the server/);
  await db.close();
});

it('a server with an untrusted certificate needs the user to act', async () => {
  const authority = createAuthority();
  const secureContext = createSecureContext(authority.sign({ isSelfSigned: true }));
  const server = createServer((socket) => {
    // Postgres answers yes to a request for TLS. Then TLS begins.
    socket.once('data', () => {
      socket.write('S');
      new TLSSocket(socket, { isServer: true, secureContext }).on('error', () => {});
    });
  });
  const url = `postgresql://few:${PASSWORD}@127.0.0.1:${await listening(server)}/few?sslmode=verify-full`;
  const db = connect({ url, max: 1 });
  const fault = await db.query({ text: 'select 1' }).catch((error: unknown) => error);
  await db.close();
  server.close();
  await rm(authority.folder, { recursive: true });
  expect(fault).toBeInstanceOf(ConfigError);
  expect((fault as ConfigError).describe()).toMatch(
    /certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)\nnext: /,
  );
  expect((fault as ConfigError).describe()).not.toContain(PASSWORD);
});
