import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runStartApp } from '../../src/app/start.ts';
import type { AuditTrail, Session } from '../../src/http/api-types.ts';
import { ConfigError } from '../../src/model/errors.ts';
import type { Log } from '../../src/model/log.ts';
import { emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import {
  type HttpRoom,
  listenTo,
  NOBODY,
  ROOM_TOKEN,
  startControlRoom,
  startHttpRoom,
  syncedRoom,
} from '../support/http-room.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { workerConfig } from '../support/workers.ts';

/** Readable without a token: the sign-in page and the probes. */
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
  '/api/audit',
  '/metrics',
  '/queues/api/queues',
  '/queues/static/js/main.js',
  '/nothing',
];

const { url } = await forThisFile(emptyEngine());
const sandbox = await smallSandbox();

const TOKENS = {
  grafana: { token: 'metrics-token-of-grafana', role: 'metrics' },
  analyst: { token: 'read-token-of-an-analyst', role: 'read' },
  night: { token: 'operator-token-of-the-night', role: 'operator' },
  gone: { token: 'a-token-that-has-expired', role: 'admin', expires: '2026-01-01' },
} as const;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const configOf = (http: object) =>
  workerConfig({
    stateUrl: url,
    queueUrl: undefined,
    sandboxes: { main: sandbox },
    every: '1h',
    rest: { http },
  });

const room = await forThisFile(syncedRoom(configOf({ host: '0.0.0.0', token: ROOM_TOKEN, tokens: TOKENS })));

const signIn = (token: string, of = room): Promise<Response> => of.send('POST', '/api/session', { token }, NOBODY);

async function browser(token: string, of = room): Promise<{ cookie: string; csrf: string }> {
  const response = await signIn(token, of);
  const { csrf } = (await response.json()) as Session;
  return { cookie: (response.headers.get('set-cookie') ?? '').split(';')[0] ?? '', csrf: csrf ?? '' };
}

/** fetch would set the Host header and normalise paths. */
const raw = (
  path: string,
  { method = 'GET', headers = {}, of = room }: { method?: string; headers?: object; of?: HttpRoom } = {},
) =>
  new Promise<number>((resolve, reject) => {
    const { port } = new URL(of.url);
    const asking = request({ hostname: '127.0.0.1', port, path, method, headers: { ...headers } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asking.on('error', reject);
    asking.end();
  });

describe('a token', () => {
  it('is required for everything but the page and health', async () => {
    const statuses = async (paths: readonly string[], headers: Record<string, string>) =>
      Promise.all(paths.map(async (path) => (await room.get(path, headers)).status));
    expect(await statuses(CLOSED, NOBODY)).toEqual(CLOSED.map((path) => (path.startsWith('/queues') ? 303 : 401)));
    expect(await statuses(OPEN, NOBODY)).toEqual(OPEN.map(() => 200));
    expect(await statuses(CLOSED.slice(0, 6), bearer(`${ROOM_TOKEN}x`))).toEqual(Array(6).fill(401));
    expect(await statuses(CLOSED.slice(0, 6), bearer(ROOM_TOKEN))).toEqual(Array(6).fill(200));
    const { parts } = await room.json<{ parts: object[] }>('/readyz', NOBODY);
    expect(parts.every((part) => 'message' in part && part.message === null)).toBe(true);
  });

  it('is exchanged by a browser for a cookie that scripts and other sites cannot use', async () => {
    const response = await signIn(ROOM_TOKEN);
    const cookie = response.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^tributary_session=[^;]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
    expect(cookie).not.toContain(ROOM_TOKEN);
    const { csrf } = (await response.json()) as Session;
    const session = { cookie: cookie.split(';')[0] ?? '' };
    expect((await room.get('/api/overview', session)).status).toBe(200);
    expect(await room.json('/api/session', session)).toEqual({ signedIn: true, name: 'owner', role: 'admin', csrf });

    const change = (headers: Record<string, string>) => room.send('POST', '/api/sync', {}, { ...session, ...headers });
    expect((await change({})).status).toBe(403);
    expect((await change({ 'x-csrf-token': 'x' })).status).toBe(403);
    expect((await change({ 'x-csrf-token': csrf ?? '', 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await change({ 'x-csrf-token': csrf ?? '' })).status).toBe(202);
    // The cookie of one session fails with the CSRF token of another.
    expect((await change({ 'x-csrf-token': (await browser(ROOM_TOKEN)).csrf })).status).toBe(403);
    // A program that sends the token itself needs no CSRF token.
    expect((await room.send('POST', '/api/sync', {})).status).toBe(202);
    expect((await room.get('/api/overview', { cookie: `${session.cookie.slice(0, -2)}xx` })).status).toBe(401);
  });

  it('allows what its role allows, and nothing after it has expired', async () => {
    const asks = [
      ['GET', '/metrics'],
      ['GET', '/api/overview'],
      ['GET', '/queues/api/queues'],
      ['POST', '/api/sync'],
      ['GET', '/api/audit'],
      ['POST', '/api/cursors/reset'],
      ['POST', '/api/forget'],
    ] as const;
    const allowed = async (token: string) => {
      const statuses = await Promise.all(
        asks.map(async ([method, path]) =>
          method === 'GET'
            ? (await room.get(path, bearer(token))).status
            : (await room.send('POST', path, path === '/api/sync' ? {} : { source: 1 }, bearer(token))).status,
        ),
      );
      return asks.filter((_, i) => ![303, 401, 403, 429].includes(statuses[i] ?? 0)).map(([, path]) => path);
    };
    expect(await allowed(TOKENS.grafana.token)).toEqual(['/metrics']);
    expect(await allowed(TOKENS.analyst.token)).toEqual(['/metrics', '/api/overview', '/queues/api/queues']);
    expect(await allowed(TOKENS.night.token)).toEqual(['/metrics', '/api/overview', '/queues/api/queues', '/api/sync']);
    expect(await allowed(ROOM_TOKEN)).toEqual(asks.map(([, path]) => path));
    expect(await allowed(TOKENS.gone.token)).toEqual([]);
  });

  it('that is wrong is logged with its address, once a minute, and never shown', async () => {
    const logged: string[] = [];
    const note = (fields: object, message: string): void => void logged.push(`${message} ${JSON.stringify(fields)}`);
    const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log };
    const other = await startHttpRoom(configOf({}), log);
    for (let i = 0; i < 12; i++) await other.get('/metrics', bearer(`wrong-bearer-${i}`));
    await signIn('wrong-sign-in', other);
    await other.close();
    expect(logged.filter((line) => line.includes('sent a wrong token to the control room'))).toEqual([
      expect.stringContaining('"address":"127.0.0.1","path":"/metrics"'),
    ]);
    expect(logged.join()).not.toContain('wrong-');
  });

  it('that is wrong is answered with 429 after ten tries; the right one and open sessions never are, at the same address too', async () => {
    const { cookie } = await browser(ROOM_TOKEN);
    const statuses: number[] = [];
    for (let i = 0; i < 14; i++) statuses.push((await signIn(`wrong ${i}`)).status);
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(10);
    expect(statuses.slice(-4)).toEqual([429, 429, 429, 429]);
    const wrong = await room.get('/metrics', bearer('wrong as well'));
    expect([wrong.status, wrong.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^\d+$/)]);
    // A program with an outdated token is not guessing: it gets 401 every time.
    for (let i = 0; i < 20; i++) {
      const again = await room.get('/metrics', bearer('wrong as well'));
      expect([again.status, again.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    }
    // Nor can it be guessed at open paths.
    for (const path of ['/api/session', '/healthz', '/api/nothing'])
      expect((await room.get(path, bearer(`wrong at ${path}`))).status).toBe(429);
    expect((await signIn(ROOM_TOKEN)).status).toBe(200);
    expect((await room.get('/metrics')).status).toBe(200);
    for (const path of ['/metrics', '/queues/'])
      expect((await room.get(path)).headers.get('cache-control')).toBe('no-store');
    expect((await room.get('/queues/static/..%2fx')).status).toBe(404);
    expect((await room.get('/queues/static/%2e%2e/x')).status).toBe(404);
    // Sent literally: fetch would remove the `..`.
    const climbed = await new Promise((resolve, reject) => {
      const headers = bearer(ROOM_TOKEN);
      request(new URL(room.url), { path: '/queues/static/../x', headers }, (answer) => resolve(answer.statusCode))
        .on('error', reject)
        .end();
    });
    expect(climbed).toBe(404);
    expect((await room.get('/healthz', bearer('wrong as well'))).status).toBe(200);
    expect((await room.get('/api/overview', { cookie })).status).toBe(200);
  });
});

describe('a sign-out', () => {
  it('is permanent: the cookie is invalid, also after a restart, and open event streams end', async () => {
    const { cookie, csrf } = await browser(ROOM_TOKEN);
    const other = await startHttpRoom(configOf({}));
    const streams = await Promise.all([room, other].map(({ url }) => listenTo(url, undefined, { cookie })));
    expect((await other.get('/api/overview', { cookie })).status).toBe(200);
    expect((await room.send('DELETE', '/api/session', undefined, { cookie, 'x-csrf-token': csrf })).status).toBe(204);
    expect((await room.get('/api/overview', { cookie })).status).toBe(401);
    await Promise.all(streams.map(({ ended }) => ended));
    expect((await other.get('/api/overview', { cookie })).status).toBe(401);
    await other.close();
    const restarted = await startHttpRoom(configOf({}));
    expect((await restarted.get('/api/overview', { cookie })).status).toBe(401);
    await restarted.close();
  });
});

describe('without a token in the config', () => {
  it('the server refuses other addresses, and names the setting', async () => {
    const start = runStartApp({
      config: configOf({ host: '0.0.0.0' }),
      log: silentLog,
      signal: new AbortController().signal,
    });
    const error = await start.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).describe()).toMatch(/0\.0\.0\.0.*http\.token[\s\S]*next: set http\.token/);
  });

  it('one is generated and required, also on this machine, and other Host names are refused', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'own-token-'));
    const own = await startControlRoom(
      { ...configOf({}), http: { ...configOf({}).http, port: 0 } },
      { tokenFolder: folder },
    );
    const token = readFileSync(join(folder, 'http-token'), 'utf8').trim();
    expect(own.link).toBe(`${own.url}/#token=${token}`);
    const ask = (path: string, init: RequestInit = {}) => fetch(own.url + path, init);
    // What any local user could do before: get the CSRF token without a token, and everything with it.
    const session = (await (await ask('/api/session')).json()) as Session;
    expect(session).toEqual({ signedIn: false, name: null, role: null, csrf: null });
    const forget = { method: 'POST', body: JSON.stringify({ source: 'main', everything: true, confirm: 'main' }) };
    const headers = { 'content-type': 'application/json', 'x-csrf-token': 'x' };
    expect((await ask('/api/forget', { ...forget, headers })).status).toBe(401);
    expect((await ask('/api/overview')).status).toBe(401);
    expect((await ask('/api/overview', { headers: bearer(token) })).status).toBe(200);
    const of = { ...room, url: own.url };
    for (const host of [
      'evil.example',
      'evil.example:7070',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '10.0.0.1',
    ])
      expect([host, await raw('/api/overview', { headers: { ...bearer(token), host }, of })]).toEqual([host, 403]);
    for (const host of ['localhost:1', '127.0.0.1', 'LOCALHOST:7070', '[::1]:7070'])
      expect([host, await raw('/api/overview', { headers: { ...bearer(token), host }, of })]).toEqual([host, 200]);
    const twoHosts = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(own.url).port), '127.0.0.1').on('error', reject);
      socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n');
      socket.once('data', (bytes) => resolve(bytes.toString()));
    });
    expect(twoHosts).toMatch(/^HTTP\/1\.1 400 /);
    await own.close();
    rmSync(folder, { recursive: true });
  });
});

describe('any spelling of a path', () => {
  const SPELLINGS = ['/api/export/leads', '/%61pi/export/leads', '/ap%69/export/leads', '/api/%65xport/leads'];
  const query = '?from=2d&to=now&format=csv';

  it('is refused to a page of another site', async () => {
    const { cookie } = await browser(ROOM_TOKEN);
    const before = sandbox.service.requests.length;
    for (const path of SPELLINGS)
      for (const site of ['cross-site', 'same-site'])
        expect([path, await raw(path + query, { headers: { cookie, 'sec-fetch-site': site } })]).toEqual([path, 403]);
    expect(sandbox.service.requests.length).toBe(before);
    expect(await raw('/api/overview', { headers: { cookie, 'sec-fetch-site': 'same-origin' } })).toBe(200);
    // A link to the page itself from another site is allowed.
    expect(await raw('/', { headers: { 'sec-fetch-site': 'cross-site' } })).toBe(200);
  });

  it('requires a token, and the view of the queues is read-only', async () => {
    for (const path of [...SPELLINGS, '//api/overview', '/./api/overview', '/api/../api/overview', '/API/overview'])
      expect([path, await raw(path + query)]).toEqual([path, 401]);
    for (const path of [
      '/queues/api/queues/pause',
      '/%71ueues/api/queues/pause',
      '/queue%73/api/queues/sync/clean/failed',
    ])
      for (const method of ['PUT', 'POST', 'DELETE'])
        expect([path, [404, 405].includes(await raw(path, { method, headers: bearer(ROOM_TOKEN) }))]).toEqual([
          path,
          true,
        ]);
    expect(await raw('/%71ueues/api/queues/pause', { method: 'PUT', headers: bearer(ROOM_TOKEN) })).toBe(405);
  });
});

describe('every change', () => {
  it('is in the audit trail: who, what, from where, and whether it failed', async () => {
    await room.send('POST', '/api/sync', { streams: ['leads'] }, bearer(TOKENS.night.token));
    await room.send('POST', '/api/forget', { source: 'nope', customer: 'ada@example.org' });
    await browser(TOKENS.analyst.token);
    const { entries } = await room.json<AuditTrail>('/api/audit');
    const [signedIn, failed, forget, sync] = entries;
    expect(signedIn).toMatchObject({ actor: 'analyst', action: 'session.start', from: '127.0.0.1' });
    expect(forget).toMatchObject({ actor: 'owner', action: 'customer.forget', target: 'nope' });
    expect(failed).toMatchObject({
      action: 'customer.forget',
      detail: { failed: expect.stringMatching(/no such source/) },
    });
    expect(sync).toMatchObject({ actor: 'night', action: 'sync.start', target: '*/leads', from: '127.0.0.1' });
    // The trail does not keep the forgotten id.
    expect(JSON.stringify(entries)).not.toContain('ada@example.org');
    const next = await room.json<AuditTrail>('/api/audit?limit=1');
    expect((await room.json<AuditTrail>(`/api/audit?limit=1&before=${next.next}`)).entries[0]?.id).toBe(failed?.id);
  });
});

describe('every answer', () => {
  it('has the headers that protect its reader from other pages', async () => {
    for (const path of ['/', '/api/overview', '/nothing', '/queues', '/metrics']) {
      const { headers } = await room.get(path);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toMatch(/default-src 'none'.*script-src 'self';.*frame-ancestors 'none'/);
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect([headers.get('x-content-type-options'), headers.get('referrer-policy')]).toEqual([
        'nosniff',
        'no-referrer',
      ]);
      expect(headers.get('access-control-allow-origin')).toBeNull();
    }
    expect((await room.get('/api/overview')).headers.get('cache-control')).toBe('no-store');
  });

  it('is compressed for clients that accept it, unless it is small or endless', async () => {
    const encodingOf = async (path: string, accepted: string) => {
      const { headers, body } = await room.get(path, { 'accept-encoding': accepted });
      await body?.cancel();
      return [headers.get('content-encoding'), headers.get('vary')];
    };
    for (const path of ['/', '/api/openapi.json', '/metrics', '/queues']) {
      expect([path, await encodingOf(path, 'gzip, deflate, br, zstd')]).toEqual([path, ['br', 'accept-encoding']]);
      expect([path, await encodingOf(path, 'br;q=0, gzip;q=0.5')]).toEqual([path, ['gzip', 'accept-encoding']]);
      expect([path, await encodingOf(path, 'identity')]).toEqual([path, [null, 'accept-encoding']]);
    }
    // The length of an answer with a session token must not reveal it.
    expect((await encodingOf('/api/session', 'br'))[0]).toBeNull();
    expect((await encodingOf('/api/events', 'br'))[0]).toBeNull();
    expect(await room.json('/api/openapi.json', { 'accept-encoding': 'gzip' })).toEqual(
      await room.json('/api/openapi.json', { 'accept-encoding': 'identity' }),
    );
  });

  it('for a page file is small, cached by the browser, and from no other folder', async () => {
    const page = await room.get('/');
    expect(page.headers.get('cache-control')).toBe('no-cache');
    expect((await room.get('/', { 'if-none-match': page.headers.get('etag') ?? '' })).status).toBe(304);
    const files = [...(await page.text()).matchAll(/(?:href|src)="(files-[^"]+)"/g)].map(([, path]) => `/${path}`);
    expect(files.filter((path) => /\.(css|js|svg)$/.test(path)).length).toBe(8);
    // Modules import each other by path; this one comes from its package.
    files.push(`/${/files-\w+/.exec(files[0] ?? '')?.[0]}/uPlot.js`);
    for (const path of files) {
      const file = await room.get(path);
      expect([path, file.status, file.headers.get('cache-control')]).toEqual([
        path,
        200,
        expect.stringMatching(/immutable/),
      ]);
    }
    for (const path of ['/../server.ts', '/..%2fserver.ts', '/%2e%2e/server.ts', '/index.html/../../server.ts'])
      expect([path, (await room.get(path)).status]).toEqual([path, 404]);
  });
});
