import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runStartApp } from '../../src/app/start.ts';
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
const OPEN = ['/', '/healthz', '/readyz', '/api/session'];
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
  '/api/verifications',
  '/api/cursors',
  '/api/export/clicks?from=1d&to=now&format=csv',
  '/api/doctor',
  '/api/config',
  '/api/schema',
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
let configOf: (http: object) => ReturnType<typeof workerConfig>;

beforeAll(async () => {
  database = await freshDatabase();
  const sandbox = await smallSandbox();
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

  it('a page of another site asks for nothing in the name of its reader', async () => {
    for (const [site, status] of [
      ['cross-site', 403],
      ['same-site', 403],
      ['same-origin', 200],
      ['none', 200],
    ] as const)
      expect([site, (await open.get('/api/overview', { 'sec-fetch-site': site })).status]).toEqual([site, status]);
    // A link from elsewhere to the page itself is what people send each other.
    expect((await open.get('/', { 'sec-fetch-site': 'cross-site' })).status).toBe(200);
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

  it('comes packed for those who can unpack it, unless it is small or has no end', async () => {
    const encodingOf = async (path: string, accepted: string) => {
      const { headers, body } = await open.get(path, { 'accept-encoding': accepted });
      await body?.cancel();
      return [headers.get('content-encoding'), headers.get('vary')];
    };
    for (const path of ['/', '/api/openapi.json', '/metrics', '/queues']) {
      expect([path, await encodingOf(path, 'gzip, deflate, br, zstd')]).toEqual([path, ['br', 'accept-encoding']]);
      expect([path, await encodingOf(path, 'br;q=0, gzip;q=0.5')]).toEqual([path, ['gzip', 'accept-encoding']]);
      expect([path, await encodingOf(path, 'identity')]).toEqual([path, [null, 'accept-encoding']]);
    }
    // What holds the token of a session must not tell of it by its length.
    expect((await encodingOf('/api/session', 'br'))[0]).toBeNull();
    expect((await encodingOf('/api/events', 'br'))[0]).toBeNull();
    expect(await open.json('/api/openapi.json', { 'accept-encoding': 'gzip' })).toEqual(
      await open.json('/api/openapi.json', { 'accept-encoding': 'identity' }),
    );
  });

  it('of a page file is small, kept by the browser, and from no other folder', async () => {
    const page = await open.get('/');
    expect(page.headers.get('cache-control')).toBe('no-cache');
    expect((await open.get('/', { 'if-none-match': page.headers.get('etag') ?? '' })).status).toBe(304);
    const files = [...(await page.text()).matchAll(/(?:href|src)="(\/files-[^"]+)"/g)].map(([, path]) => path ?? '');
    expect(files.filter((path) => /\.(css|js|svg)$/.test(path)).length).toBe(10);
    for (const path of files) {
      const file = await open.get(path);
      expect([path, file.status, file.headers.get('cache-control')]).toEqual([
        path,
        200,
        expect.stringMatching(/immutable/),
      ]);
    }
    for (const path of ['/../server.ts', '/..%2fserver.ts', '/%2e%2e/api-types.ts', '/index.html/../../server.ts'])
      expect([path, (await open.get(path)).status]).toEqual([path, 404]);
  });
});
