import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runStartApp } from '../../src/app-start.ts';
import { connect } from '../../src/cursor/database.ts';
import { quarantine } from '../../src/cursor/quarantine.ts';
import type { Session } from '../../src/http/api-types.ts';
import { ConfigError } from '../../src/model/errors.ts';
import { type HttpRoom, startHttpRoom } from '../support/http-room.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { until, workerConfig } from '../support/workers.ts';

const TOKEN = 'a-long-token-that-nobody-guesses';
const BEARER = { authorization: `Bearer ${TOKEN}` };
/** Readable by everybody: the page that asks for the token, and what a probe needs. */
const OPEN = ['/', '/main.js', '/healthz', '/readyz', '/api/session'];
const CLOSED = [
  '/api/overview',
  '/api/coverage',
  '/api/rows',
  '/api/budget',
  '/api/runs',
  '/api/backfills',
  '/api/quarantine',
  '/api/quarantine/1',
  '/api/schema-changes',
  '/api/links/top',
  '/api/events',
  '/api/openapi.json',
  '/metrics',
  '/queues/api/queues',
  '/queues/static/js/main.js',
  '/nothing',
];

let database: TestDatabase;
let locked: HttpRoom;
let open: HttpRoom;
let apiKey: string;
let configOf: (http: object) => ReturnType<typeof workerConfig>;

beforeAll(async () => {
  database = await freshDatabase();
  const sandbox = await smallSandbox();
  apiKey = sandbox.apiKey;
  configOf = (http) =>
    workerConfig({
      stateUrl: database.url,
      queueUrl: undefined,
      sandboxes: { main: sandbox },
      every: '1h',
      rest: { http },
    });
  open = await startHttpRoom(configOf({}));
  await until('every stream is synced', async () => {
    const { runs } = await open.json<{ runs: Array<{ state: string }> }>('/api/runs?state=done');
    return runs.length >= 3;
  });
  locked = await startHttpRoom(configOf({ host: '0.0.0.0', token: TOKEN }));
});
afterAll(async () => {
  await locked.close();
  await open.close();
  await database.drop();
});

/** fetch writes the Host header itself. */
const withHost = (url: string, host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const asking = request({ hostname, port, path: '/api/overview', headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asking.on('error', reject);
    asking.end();
  });

const signIn = (token: string): Promise<Response> => locked.send('POST', '/api/session', { token }, {});

describe('with a token', () => {
  it('nothing is told without it, but the page and health', async () => {
    const local = locked.url.replace('0.0.0.0', '127.0.0.1');
    const statuses = async (paths: readonly string[], headers: Record<string, string> = {}) =>
      Promise.all(paths.map(async (path) => (await fetch(local + path, { headers, redirect: 'manual' })).status));
    expect(await statuses(CLOSED)).toEqual(CLOSED.map((path) => (path.startsWith('/queues') ? 303 : 401)));
    expect(await statuses(OPEN)).toEqual(OPEN.map(() => 200));
    expect(await statuses(CLOSED.slice(0, 6), { authorization: `Bearer ${TOKEN}x` })).toEqual(Array(6).fill(401));
    expect(await statuses(CLOSED.slice(0, 6), BEARER)).toEqual(Array(6).fill(200));
    const { parts } = await locked.json<{ parts: object[] }>('/readyz');
    expect(parts.every((part) => 'message' in part && part.message === null)).toBe(true);
  });

  it('a browser trades it for a cookie that scripts and other sites cannot use', async () => {
    const response = await signIn(TOKEN);
    const cookie = response.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^tributary_session=[^;]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
    expect(cookie).not.toContain(TOKEN);
    const { csrf } = (await response.json()) as Session;
    const session = { cookie: cookie.split(';')[0] ?? '' };
    expect((await locked.get('/api/overview', session)).status).toBe(200);
    expect(await locked.json('/api/session', session)).toEqual({ needsToken: true, signedIn: true, csrf });

    const change = (headers: Record<string, string>) =>
      locked.send('POST', '/api/sync', {}, { ...session, ...headers });
    expect((await change({})).status).toBe(403);
    expect((await change({ 'x-csrf-token': 'x' })).status).toBe(403);
    expect((await change({ 'x-csrf-token': csrf ?? '', 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await change({ 'x-csrf-token': csrf ?? '' })).status).toBe(202);
    // The cookie of one session does not go with the proof of another.
    const other = ((await (await signIn(TOKEN)).json()) as Session).csrf ?? '';
    expect((await change({ 'x-csrf-token': other })).status).toBe(403);
    // A program that sends the token itself is no browser that was tricked.
    expect((await locked.send('POST', '/api/sync', {}, BEARER)).status).toBe(202);

    const forged = { cookie: `${session.cookie.slice(0, -2)}xx` };
    expect((await locked.get('/api/overview', forged)).status).toBe(401);
    expect(
      (await locked.send('DELETE', '/api/session', undefined, { ...session, 'x-csrf-token': csrf ?? '' })).status,
    ).toBe(204);
    expect((await locked.get('/api/overview', session)).status).toBe(401);
  });

  it('whoever guesses is slowed down, and whoever is in stays in', async () => {
    const cookie = ((await signIn(TOKEN)).headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const statuses: number[] = [];
    for (let i = 0; i < 14; i++) statuses.push((await signIn(`wrong ${i}`)).status);
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(10);
    expect(statuses.slice(-4)).toEqual([429, 429, 429, 429]);
    const right = await signIn(TOKEN);
    expect([right.status, right.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^\d+$/)]);
    expect((await locked.get('/api/overview', { cookie })).status).toBe(200);
  });
});

describe('without a token', () => {
  it('the server is for this machine only, and says how to change that', async () => {
    const start = runStartApp({
      config: configOf({ host: '0.0.0.0' }),
      log: silentLog,
      signal: new AbortController().signal,
    });
    const error = await start.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).describe()).toMatch(/0\.0\.0\.0.*http\.token[\s\S]*next: set http\.token/);
  });

  it('reading is open, changing needs the proof of our own page', async () => {
    expect((await open.get('/api/overview')).status).toBe(200);
    expect((await open.send('POST', '/api/sync', {}, {})).status).toBe(403);
    expect((await open.send('POST', '/api/sync', {}, { 'x-csrf-token': 'x' })).status).toBe(403);
    expect((await open.send('POST', '/api/sync', { source: 'main', streams: [] })).status).toBe(202);
  });

  it('a name that is not ours is refused: it may have been turned to this machine by a page elsewhere', async () => {
    for (const host of [
      'evil.example',
      'evil.example:7070',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '10.0.0.1',
    ])
      expect([host, await withHost(open.url, host)]).toEqual([host, 403]);
    for (const host of ['localhost:1', '127.0.0.1', 'LOCALHOST:7070', '[::1]:7070'])
      expect([host, await withHost(open.url, host)]).toEqual([host, 200]);
  });
});

describe('every answer', () => {
  it('has the headers that keep a page from being used against its reader', async () => {
    for (const path of ['/', '/api/overview', '/nothing', '/queues', '/metrics']) {
      const { headers } = await open.get(path);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toMatch(/default-src 'none'.*script-src 'self';.*frame-ancestors 'none'/);
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect([headers.get('x-content-type-options'), headers.get('referrer-policy')]).toEqual([
        'nosniff',
        'no-referrer',
      ]);
      expect(headers.get('access-control-allow-origin')).toBeNull();
    }
    expect((await open.get('/api/overview')).headers.get('cache-control')).toBe('no-store');
  });

  it('holds no secret and no person', async () => {
    const db = connect({ url: database.url, max: 1 });
    const record = { event: 'lead', ip: '203.0.113.9', customer: { name: 'Ada Example', email: 'ada@example.org' } };
    await quarantine(db, { source: 'main', stream: 'leads', runId: 'r' }, [{ record, reason: 'odd' }]);
    const [person] = await db.query<{ email: string; ip: string }>({
      text: `select customer_email as email, click_ip as ip from attribution.leads where customer_email is not null and click_ip <> '' limit 1`,
    });
    const [{ id } = { id: 0 }] = await db.query<{ id: number }>({ text: 'select id from tributary.quarantine' });
    await db.close();
    const { password } = new URL(database.url);
    const secrets = [apiKey, TOKEN, 'Ada Example', 'ada@example.org', '203.0.113.9', ...(password ? [password] : [])];
    expect(person).toBeDefined();
    const paths = CLOSED.filter((path) => path !== '/api/events').concat(`/api/quarantine/${id}`, '/readyz', '/queues');
    for (const path of paths) {
      const text = await (await open.get(path)).text();
      for (const secret of [...secrets, person?.email ?? '', person?.ip ?? ''])
        expect([path, text.includes(secret)]).toEqual([path, false]);
    }
  });

  it('of a page file is small, kept by the browser, and from no other folder', async () => {
    const page = await open.get('/', { 'accept-encoding': 'gzip' });
    expect(page.headers.get('content-encoding')).toBe('gzip');
    const again = await open.get('/', { 'if-none-match': page.headers.get('etag') ?? '' });
    expect(again.status).toBe(304);
    for (const path of ['/../server.ts', '/..%2fserver.ts', '/%2e%2e/api-types.ts', '/index.html/../../server.ts'])
      expect([path, (await open.get(path)).status]).toEqual([path, 404]);
  });
});
