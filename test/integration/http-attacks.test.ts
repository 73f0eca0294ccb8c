import { connect as connectSocket, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { ApiError, Overview, Readiness } from '../../src/http/api-types.ts';
import { emptyEngine } from '../support/engine.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { type ApiDescription, ROOM_TOKEN, startHttpRoom, syncedRoom } from '../support/http-room.ts';
import { startRedis } from '../support/redis.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { until, workerConfig } from '../support/workers.ts';

/** Attacks on the control room from a review, with the required outcomes. SECURITY.md names these tests. */
const [{ url }, redis, sandbox] = await Promise.all([forThisFile(emptyEngine()), startRedis(), smallSandbox()]);
const line = await forThisFile(startFaultProxy(url));

const configOf = (http: object = {}) =>
  workerConfig({ stateUrl: line.url, queueUrl: redis.url, sandboxes: { main: sandbox }, every: '1h', rest: { http } });
const room = await forThisFile(syncedRoom(configOf()));

const messageOf = async (response: Response): Promise<[number, string]> => [
  response.status,
  ((await response.json()) as ApiError).error.message,
];

describe('a dependency that hangs', () => {
  // The promise is two seconds; a machine that is busy with other tests gets more.
  const within = <T>(work: Promise<T>): Promise<T> =>
    Promise.race([
      work,
      new Promise<never>((_, reject) => setTimeout(() => reject(new Error('no answer in 6 s')), 6000).unref()),
    ]);

  it('Redis, stopped by a signal: every request is answered, and those that need it say that it is unavailable', async () => {
    const pid = Number(/process_id:(\d+)/.exec(String(await redis.command('INFO', 'server')))?.[1]);
    process.kill(pid, 'SIGSTOP');
    try {
      expect(await (await within(room.get('/metrics'))).text()).toMatch(/tributary_up{part="queue"} 0/);
      const ready = await within(room.get('/readyz'));
      expect([ready.status, ((await ready.json()) as Readiness).parts.map(({ ok }) => ok)]).toEqual([
        503,
        [true, false],
      ]);
      expect((await within(room.get('/healthz'))).status).toBe(200);
      expect((await within(room.get('/api/overview'))).status).toBe(200);
      for (const asked of [room.send('POST', '/api/sync', { streams: ['leads'] }), room.get('/queues/api/queues')])
        expect(await messageOf(await within(asked))).toEqual([503, expect.stringMatching(/the queue.*is unavailable/)]);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await until('it is back', async () => (await room.get('/readyz')).status === 200);
  });

  it('Postgres, silent: every request is answered, and those that need it say that it is unavailable', async () => {
    await line.fail({ kind: 'half-open' });
    try {
      expect(await (await within(room.get('/metrics'))).text()).toMatch(/tributary_up{part="state"} 0/);
      const ready = await within(room.get('/readyz'));
      expect([ready.status, ((await ready.json()) as Readiness).parts[0]?.ok]).toEqual([503, false]);
      expect((await within(room.get('/healthz'))).status).toBe(200);
      for (const path of ['/api/overview', '/api/runs', '/api/coverage', '/api/audit'])
        expect([path, await messageOf(await within(room.get(path)))]).toEqual([
          path,
          [503, expect.stringMatching(/Postgres.*is unavailable/)],
        ]);
      const sync = await messageOf(await within(room.send('POST', '/api/sync', { streams: ['leads'] })));
      expect(sync).toEqual([503, expect.stringMatching(/Postgres.*is unavailable/)]);
    } finally {
      await line.heal();
    }
    await until('it is back', async () => (await room.get('/readyz')).status === 200);
  });
});

describe('requests with values that no query accepts', () => {
  it('are refused as such, and none is a bug', async () => {
    const large = '9223372036854775807';
    for (const path of [
      '/api/runs?source=%00',
      '/api/runs?before=%00',
      '/api/runs/%00',
      '/api/quarantine?source=%00',
      '/api/links/top?source=%00',
      '/api/backfills/%00',
      '/api/runs?limit=1e400',
      '/api/quarantine?limit=1e400',
      '/api/schema-changes?limit=1e400',
      '/api/links/top?limit=1e400',
      `/api/quarantine?before=${large}`,
      `/api/quarantine?before=${large}0`,
      '/api/runs?limit=0x10',
      '/api/audit?before=1e9',
      '/api/coverage?from=yesterday',
      '/api/runs?limit=5&limit=6',
      '/api/runs?nothing=1',
      '/api/%zz',
    ])
      expect([path, (await room.get(path)).status]).toEqual([path, 400]);
    for (const body of [
      { source: 'main', customer: 'a\u0000b' },
      { source: 'ma\u0000in', everything: true, confirm: 'main' },
      { source: 'main', everything: true, confirm: 'main', customer: 'a' },
    ])
      expect((await room.send('POST', '/api/forget', body)).status).toBe(400);
    const refused = await messageOf(await room.get('/api/runs?limit=1e400'));
    expect(refused[1]).toBe('the query, limit: must be of the type number');
    for (const [path, words] of [
      ['/api/runs?limit=501', 'the query, limit: must be at most 500'],
      ['/api/runs?stream=nope', 'the query, stream: must be one of clicks, leads, sales, links'],
      ['/api/runs?nothing=1', 'the query: there is no nothing'],
    ])
      expect((await messageOf(await room.get(path ?? '')))[1]).toBe(words);
  });
});

describe('the OpenAPI document is exact (found by schemathesis)', () => {
  it('accepts the largest integer that it allows, and describes files as readers return them', async () => {
    expect((await room.get(`/api/quarantine?before=${Number.MAX_SAFE_INTEGER}`)).status).toBe(200);
    expect((await room.get('/api/quarantine?before=9007199254740992')).status).toBe(400);
    const { paths } = await room.json<ApiDescription>('/api/openapi.json');
    const contents = Object.entries(paths['/api/schema']?.get?.responses['200']?.content ?? {});
    expect(contents.map(([type, { schema }]) => [type.split(';')[0], schema])).toEqual([
      ['application/sql', { type: 'string' }],
      ['text/markdown', { type: 'string' }],
      ['application/json', {}],
      ['application/yaml', {}],
    ]);
    const [stream] = paths['/api/export/{stream}']?.get?.parameters ?? [];
    expect(stream?.schema.enum).toEqual(['clicks', 'leads', 'sales']);
  });

  it('a path names its methods, and a fixed one is not taken for an id', async () => {
    const allowed = async (path: string) => {
      const { status, headers } = await fetch(room.url + path, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${ROOM_TOKEN}` },
      });
      return [status, headers.get('allow')];
    };
    expect(await allowed('/api/backfills/price')).toEqual([405, 'POST']);
    expect(await allowed('/api/backfills/some-id')).toEqual([405, 'GET']);
    expect(await allowed('/api/session')).toEqual([405, 'GET, POST, DELETE']);
  });

  it('a well-formed filter with an impossible value is a conflict, not malformed', async () => {
    const statusOf = async (filter: string): Promise<number> =>
      (await room.get(`/api/export/leads?from=1d&to=now&format=csv&filter=${filter}`)).status;
    expect(await statusOf('country')).toBe(400);
    expect(await statusOf('nothing=DE')).toBe(400);
    expect(await statusOf('country=UK')).toBe(409);
  });
});

describe('readiness', () => {
  it('reflects dependencies: streams that the service refuses remove no server from its Service', async () => {
    sandbox.service.faults.add({ status: 403, times: 50 });
    await room.send('POST', '/api/sync', {});
    await until('every stream is parked', async () => {
      const { streams } = await room.json<Overview>('/api/overview');
      return streams.every(({ parked }) => parked !== null);
    });
    const ready = await room.get('/readyz');
    expect([ready.status, await ready.json()]).toEqual([200, expect.objectContaining({ ready: true })]);
    sandbox.service.faults.clear();
    await room.send('POST', '/api/sync', {});
  });
});

describe('connections', () => {
  it('are limited per address, and closed if they send no request', async () => {
    const { port } = new URL(room.url);
    const sockets = Array.from({ length: 400 }, (): Socket => connectSocket(Number(port), '127.0.0.1'));
    let closed = 0;
    for (const socket of sockets) {
      socket.on('error', () => {}).resume();
      socket.once('close', () => {
        closed += 1;
      });
      socket.once('connect', () => socket.write('GET / HTTP/1.1\r\nhost: x\r\nx-slow: '));
    }
    await until('those above the limit are refused', () => closed >= 90);
    expect(closed).toBeLessThan(200);
    // 10 seconds for the headers of a request, checked every two.
    await until('the slow ones are closed too', () => closed === 400, 40_000);
    expect((await room.get('/healthz')).status).toBe(200);
  });
});

describe('behind a proxy', () => {
  it('works under a path prefix, whether or not the proxy strips it', async () => {
    const under = await startHttpRoom(configOf({ basePath: '/etl' }));
    expect(under.url).toMatch(/\/etl$/);
    const bare = { ...under, url: under.url.slice(0, -4) };
    const page = await (await under.get('/')).text();
    const [, script = ''] = /src="(files-[^"]+\/main\.js)"/.exec(page) ?? [];
    for (const url of [under.url, bare.url]) {
      expect((await fetch(`${url}/${script}`)).status).toBe(200);
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
    }
    expect(page).not.toMatch(/(?:href|src)="\//);
    const signedIn = await under.send('POST', '/api/session', { token: 'a-long-token-that-nobody-guesses' });
    expect(signedIn.headers.get('set-cookie')).toContain('; Path=/etl/;');
    const board = await (await under.get('/queues')).text();
    expect(board).toContain('/etl/queues');
    expect((await fetch(`${under.url}/queues`, { redirect: 'manual' })).headers.get('location')).toBe('/etl/');
    const slash = await fetch(under.url, { redirect: 'manual' });
    expect([slash.status, slash.headers.get('location')]).toEqual([308, '/etl/']);
    await under.close();
  });

  it('trusts the client address of a proxy only if configured', async () => {
    const forwarded = { 'x-forwarded-for': '203.0.113.7' };
    const wrong = (guess: number) => ({ authorization: `Bearer wrong ${guess}`, ...forwarded });
    const trusting = await startHttpRoom(configOf({ trustProxy: ['127.0.0.1'] }));
    for (const [of, from] of [
      [trusting, '203.0.113.7'],
      [room, '127.0.0.1'],
    ] as const) {
      await of.send(
        'POST',
        '/api/sync',
        { streams: ['sales'] },
        { ...forwarded, authorization: 'Bearer a-long-token-that-nobody-guesses' },
      );
      const { entries } = await of.json<{ entries: Array<{ from: string }> }>('/api/audit?limit=1');
      expect(entries[0]?.from).toBe(from);
    }
    for (let i = 0; i < 12; i++) await trusting.get('/metrics', wrong(i));
    expect((await trusting.get('/metrics', wrong(12))).status).toBe(429);
    expect((await trusting.get('/metrics', { ...wrong(13), 'x-forwarded-for': '203.0.113.8' })).status).toBe(401);
    await trusting.close();
  });
});
