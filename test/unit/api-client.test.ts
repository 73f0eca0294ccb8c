import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createDeadline } from '../../src/api/cancel.ts';
import { ANSWER_TOO_LARGE, type ClientOptions, createClient, type EventsQuery } from '../../src/api/client.ts';
import { Cancelled, ConfigError, type Fault, RetryLater, StopStream } from '../../src/model/errors.ts';
import { serve } from '../support/http-server.ts';

const START = Date.UTC(2026, 10, 14);
const query: EventsQuery = {
  stream: 'clicks',
  start: START,
  end: START + 1000,
  sortOrder: 'asc',
  page: 1,
  limit: 1000,
  filters: {},
};

async function ask(listener: RequestListener, options: Partial<ClientOptions> = {}, signal?: AbortSignal) {
  const server = await serve(listener);
  return createClient({ baseUrl: server.baseUrl, apiKey: 'key_1', ...options }).get(query, signal);
}
const failure = (asked: Promise<unknown>): Promise<Fault> =>
  asked.then(
    () => Promise.reject(new Error('it should have failed')),
    (error: Fault) => error,
  );
const answering =
  (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) => {
    response.writeHead(status, headers).end(body);
  };

describe('one request, one page', () => {
  it('sends the key as a bearer token, asks for gzip, and keeps large integers exact', async () => {
    let seen: { url?: string | undefined; auth?: string | undefined; encoding?: unknown } = {};
    const page = await ask((request, response) => {
      seen = { url: request.url, auth: request.headers.authorization, encoding: request.headers['accept-encoding'] };
      response.writeHead(200, { 'content-encoding': 'gzip', date: 'Sat, 14 Nov 2026 10:30:00 GMT' });
      response.end(gzipSync('\ufeff[{"id":9007199254740993},{"id":2}]'));
    });
    expect(page.records).toEqual([{ id: 9007199254740993n }, { id: 2 }]);
    expect(page.serverNow).toBe(Date.UTC(2026, 10, 14, 10, 30));
    expect(page.bytes).toBe(37);
    expect(seen.url).toMatch(/^\/events\?event=clicks&start=2026-11-14T00%3A00%3A00.000Z&end=/);
    expect(seen.auth).toBe('Bearer key_1');
    expect(seen.encoding).toBe('br, gzip');
  });

  it('accepts a brotli page', async () => {
    const listener: RequestListener = (_request, response) =>
      response.writeHead(200, { 'content-encoding': 'br' }).end(brotliCompressSync('["ä"]'));
    expect(await ask(listener)).toMatchObject({ records: ['ä'], bytes: 6 });
  });

  it('keeps the path of the base URL, and accepts an empty page without a Date header', async () => {
    const server = await serve((_request, response) => {
      response.sendDate = false;
      response.end('[]');
    });
    const client = createClient({ baseUrl: `${server.baseUrl}/v2/`, apiKey: 'key_1' });
    expect(await client.get(query)).toEqual({
      records: [],
      serverNow: undefined,
      bytes: 2,
      tookMs: expect.any(Number),
    });
    expect(server.seen[0]).toMatch(/^GET \/v2\/events\?/);
  });

  it('reuses connections for successive requests', async () => {
    const ports = new Set<number | undefined>();
    const server = await serve((request, response) => {
      ports.add(request.socket.remotePort);
      response.end('[]');
    });
    const client = createClient({ baseUrl: server.baseUrl, apiKey: 'key_1' });
    for (let i = 0; i < 8; i++) await client.get(query);
    expect(ports.size).toBe(1);
  });

  it('refuses a bad query, base URL or key before anything is sent', async () => {
    const server = await serve(answering(200, '[]'));
    const client = createClient({ baseUrl: server.baseUrl, apiKey: 'key_1' });
    await expect(client.get({ ...query, limit: 1001 })).rejects.toBeInstanceOf(ConfigError);
    expect(server.seen).toEqual([]);
    expect(() => createClient({ baseUrl: 'http://example.com', apiKey: 'k' })).toThrow(ConfigError);
    for (const apiKey of ['', 'sk_se\ncret', 'sk secret', 'sk_secrét']) {
      expect(() => createClient({ baseUrl: server.baseUrl, apiKey })).toThrow(/^apiKey is empty or contains/);
    }
  });
});

describe('redirects', () => {
  it.each([301, 302, 303, 307, 308])('%d to another host is refused; that host receives no request', async (status) => {
    const other = await serve(answering(200, '[]'));
    const location = `${other.baseUrl}/login?next=x`;
    const error = await failure(ask(answering(status, 'moved', { location })));
    expect(error).toBeInstanceOf(StopStream);
    expect(error.message).toContain(`127.0.0.1:${other.port}`);
    expect(error.next).toContain('baseUrl');
    expect(other.seen).toEqual([]);
  });
  it('refuses a redirect without a target', async () => {
    expect((await failure(ask(answering(302, '')))).message).toContain('missing');
  });
});

describe('timeouts, each with its own message', () => {
  it('no connection', async () => {
    // Accepts connections and never starts TLS.
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await once(silent, 'listening');
    const baseUrl = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const client = createClient({ baseUrl, apiKey: 'key_1', timeouts: { connectMs: 80 } });
    const error = await failure(client.get(query));
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(/no connection to the service within 0.08 s/);
    expect(error).toMatchObject({ answer: undefined });
  });
  it('no headers', async () => {
    const error = await failure(ask(() => {}, { timeouts: { headersMs: 80 } }));
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(/did not begin to answer within 0.08 s/);
    expect(error).toMatchObject({ answer: { status: 0, code: 'answer_cut' } });
  });
  it('a body that stalls', async () => {
    const error = await failure(ask((_request, response) => response.write('[1,'), { timeouts: { idleMs: 80 } }));
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(/stalled: nothing came for 0.08 s/);
  });
  it('a body that drips for ever', async () => {
    const drip: RequestListener = (_request, response) => {
      response.write('[');
      const timer = setInterval(() => response.write('1,'), 15);
      response.on('close', () => clearInterval(timer));
    };
    const error = await failure(ask(drip, { timeouts: { idleMs: 2000, totalMs: 200 } }));
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(/not complete after 0.2 s/);
  });
  it('our own waits do not restart the overall limit', async () => {
    const deadline = createDeadline({ connectMs: 60_000, headersMs: 60_000, idleMs: 60_000, totalMs: 200 });
    for (let i = 0; i < 20; i++) {
      await delay(20);
      await deadline.pauseFor(Promise.resolve());
    }
    expect(deadline.signal.reason?.message).toMatch(/not complete after 0.2 s/);
    deadline.close();
  });
  it('a slow body that is never idle is accepted', async () => {
    const steady: RequestListener = async (_request, response) => {
      response.write('[0');
      // Longer in total than the idle limit, each wait far below it: a busy machine stretches both.
      for (let i = 1; i <= 12; i++) {
        await delay(200);
        response.write(`,${i}`);
      }
      response.end(']');
    };
    expect((await ask(steady, { timeouts: { idleMs: 2000 } })).records).toHaveLength(13);
  });
  it('an error response with a stalled body keeps its status', async () => {
    const refuse: RequestListener = (_request, response) => response.writeHead(401).write('{');
    expect(await failure(ask(refuse, { timeouts: { idleMs: 80 } }))).toMatchObject({ answer: { status: 401 } });
  });
});

describe('abort by the caller', () => {
  it.each([
    ['before the request', () => {}, 0],
    ['before the headers', () => {}, 50],
    ['inside the body', (_request, response) => response.write('[1,'), 80],
    ['inside the body of an error', (_request, response) => response.writeHead(500).write('{'), 80],
  ] satisfies Array<[string, RequestListener, number]>)('%s → Cancelled', async (_name, listener, ms) => {
    const controller = new AbortController();
    const reason = new Error('SIGTERM');
    if (ms === 0) controller.abort(reason);
    else setTimeout(() => controller.abort(reason), ms);
    const started = performance.now();
    const error = await failure(ask(listener, {}, controller.signal));
    expect(error).toBeInstanceOf(Cancelled);
    expect(error.cause).toBe(reason);
    expect(performance.now() - started).toBeLessThan(2000);
  });
});

describe('bodies', () => {
  it('stops reading at the limit, and closes the connection', async () => {
    let sent = 0;
    const flood: RequestListener = (_request, response) => {
      const chunk = Buffer.alloc(64 * 1024, 0x20);
      const more = (): void => {
        while (!response.destroyed && sent < 500e6) {
          sent += chunk.length;
          if (!response.write(chunk)) return void response.once('drain', more);
        }
      };
      more();
    };
    const error = await failure(ask(flood, { maxBodyBytes: 1_000_000 }));
    expect(error).toBeInstanceOf(StopStream);
    expect(error).toMatchObject({ answer: { status: 200, code: ANSWER_TOO_LARGE } });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sent).toBeLessThan(50e6);
  });

  it('counts unpacked bytes', async () => {
    const bomb = gzipSync(Buffer.alloc(20_000_000, 0x20));
    expect(bomb.length).toBeLessThan(50_000);
    const before = process.memoryUsage().arrayBuffers;
    const listener: RequestListener = (_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    const error = await failure(ask(listener, { maxBodyBytes: 1_000_000 }));
    expect(error).toMatchObject({ answer: { code: ANSWER_TOO_LARGE } });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(15_000_000);
  });

  it('accepts a body of exactly the limit', async () => {
    expect((await ask(answering(200, '[1,2]'), { maxBodyBytes: 5 })).records).toEqual([1, 2]);
    await expect(ask(answering(200, '[1,2]'), { maxBodyBytes: 4 })).rejects.toBeInstanceOf(StopStream);
  });

  it.each([
    ['with a length', { 'content-length': '5000' }],
    ['in chunks', {}],
  ])('a truncated body, %s', async (_name, headers) => {
    const cut: RequestListener = (request, response) => {
      response.writeHead(200, headers).write('[1,2');
      setTimeout(() => request.socket.destroy(), 50);
    };
    const error = await failure(ask(cut));
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(/127\.0\.0\.1:\d+: the connection was cut after 4 bytes/);
  });

  it.each([
    ['gzip, truncated', gzipSync(JSON.stringify([...Array(5000).keys()])).subarray(0, 2000), /not JSON/],
    ['gzip, invalid', Buffer.from('[1,2,3]'), /damaged after 7 bytes/],
    ['brotli, invalid', Buffer.from('[1,2,3] and more'), /damaged/],
  ])('%s', async (name, body, message) => {
    const encoding = name.startsWith('gzip') ? 'gzip' : 'br';
    const listener: RequestListener = (_request, response) =>
      response.writeHead(200, { 'content-encoding': encoding }).end(body);
    const error = await failure(ask(listener));
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(message);
  });

  it('accepts a body without a length that ends with its connection', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n';
    const end =
      (body: Buffer): RequestListener =>
      (_request, response) =>
        void response.socket?.end(Buffer.concat([Buffer.from(head), body]));
    expect((await ask(end(gzipSync('[1,2]')))).records).toEqual([1, 2]);
    expect((await failure(ask(end(Buffer.from('this is not gzip'))))).message).toMatch(/damaged/);
  });

  it('unpacks the body of an error', async () => {
    const listener: RequestListener = (_request, response) =>
      response
        .writeHead(401, { 'content-encoding': 'gzip' })
        .end(gzipSync('{"error":{"code":"unauthorized","message":"revoked"}}'));
    expect(await failure(ask(listener))).toMatchObject({ answer: { status: 401, message: 'revoked' } });
  });
});
