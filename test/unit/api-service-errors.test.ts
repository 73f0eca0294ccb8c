import type { RequestListener } from 'node:http';
import { createServer } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createClient } from '../../src/api/client.ts';
import { forbiddenMeaning, networkFault } from '../../src/api/service-errors.ts';
import { Fault, RetryLater, StopStream } from '../../src/model/errors.ts';
import { serve } from '../support/http-server.ts';

const KEY = 'sk_canary_4f9Zq/8+x=="7';
const query = { stream: 'clicks', start: 0, end: 1000, sortOrder: 'asc', page: 1, limit: 10, filters: {} } as const;

async function faultAt(baseUrl: string, timeouts = {}): Promise<RetryLater | StopStream> {
  const thrown = await createClient({ baseUrl, apiKey: KEY, timeouts })
    .get(query)
    .catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(Fault);
  // For every failure in this file: the key is nowhere in the error, at any depth.
  const everything = inspect(thrown, { depth: Infinity, showHidden: true }) + (thrown as Fault).describe();
  for (const form of [KEY, encodeURIComponent(KEY), KEY.slice(0, 14), KEY.toUpperCase()])
    expect(everything).not.toContain(form);
  return thrown as RetryLater | StopStream;
}
async function fault(status: number, body: string, headers: Record<string, string> = {}) {
  const listener: RequestListener = (_request, response) => response.writeHead(status, headers).end(body);
  return faultAt((await serve(listener)).baseUrl);
}
const envelope = (code: string, message: string) => JSON.stringify({ error: { code, message } });

describe('403 and its three meanings', () => {
  it.each([
    [
      'usage',
      'You have exceeded your monthly limit of events. Please upgrade your plan to continue.',
      /clears by itself/,
    ],
    ['usage', 'Usage quota reached', /clears by itself/],
    ['plan', 'You need to upgrade to the Business plan to use this endpoint', /plan is too low/],
    ['permission', 'You do not have the necessary permissions to complete this request.', /permission/],
  ])('%s: %s', async (meaning, message, next) => {
    const error = await fault(403, envelope('forbidden', message));
    expect(error).toBeInstanceOf(StopStream);
    expect(error.message).toContain(message);
    expect(error.next).toMatch(next);
    expect(forbiddenMeaning(error.answer?.message ?? '')).toBe(meaning);
  });
});

describe('answers outside the contract', () => {
  it.each([
    [502, '<html><body>Bad Gateway</body></html>', RetryLater, /502: an HTML page that begins <html>/],
    [503, '', RetryLater, /503: an empty body/],
    [408, '', RetryLater, /408/],
    [425, '', RetryLater, /425/],
    [529, 'overloaded', RetryLater, /529: a body that begins overloaded/],
    [402, 'pay', StopStream, /402/],
    [405, '', StopStream, /405/],
    [422, '{"error":"plain words"}', StopStream, /422: plain words/],
    [400, '{"error":{"code":7}}', StopStream, /400: a body that begins/],
    [500, '{"error":{"code":"brand_new","message":"odd"}}', RetryLater, /500: odd/],
    [418, envelope('teapot', 'short and stout'), StopStream, /418: short and stout/],
    [200, '<!doctype html><title>Log in</title>', RetryLater, /200 with an HTML page.*not JSON/],
    [200, '', RetryLater, /200 with an empty body.*not JSON/],
    [200, '[{"id":1},', RetryLater, /not JSON/],
    [200, '{"data":[]}', StopStream, /JSON that is not a list: \{"data":\[\]\}/],
    [200, 'null', StopStream, /not a list/],
    [200, '"text"', StopStream, /not a list/],
    [204, '', RetryLater, /empty body/],
    [200, envelope('unauthorized', 'no'), StopStream, /200 with the error unauthorized: no/],
    [200, envelope('rate_limit_exceeded', 'slow'), RetryLater, /200 with the error rate_limit_exceeded: slow/],
    [200, envelope('brand_new', 'odd'), RetryLater, /200 with the error brand_new: odd/],
  ])('%d %s', async (status, body, type, message) => {
    const error = await fault(status, body);
    expect(error).toBeInstanceOf(type);
    expect(error.message).toMatch(message);
    expect(error.next).toBeTruthy();
  });

  it('judges a 200 with an error by its code', async () => {
    expect((await fault(200, envelope('rate_limit_exceeded', 'slow'))).answer?.status).toBe(429);
    expect((await fault(200, envelope('forbidden', 'no'))).answer?.status).toBe(403);
  });

  it('leaves out a missing doc_url, and uses the status if the body has no code', async () => {
    const { answer } = await fault(401, '', { date: 'Wed, 18 Nov 2026 12:00:00 GMT' });
    expect(answer).toEqual({ status: 401, code: 'unauthorized', message: '', serverNow: Date.UTC(2026, 10, 18, 12) });
  });

  it('shows doc_url with the advice if it is a URL', async () => {
    const body = (doc_url: string) => JSON.stringify({ error: { code: 'forbidden', message: 'no', doc_url } });
    expect((await fault(403, body('https://docs.example.com/e#forbidden'))).next).toMatch(
      /; the service explains it at https:\/\/docs\.example\.com\/e#forbidden$/,
    );
    expect((await fault(403, body('javascript:alert(1)'))).next).not.toContain('explains');
  });

  it('shows the start of an unexpected body, without control characters', async () => {
    const error = await fault(500, `\u001b[31mred\u0007\u202e ${'x'.repeat(500)}`);
    expect(error.message).not.toMatch(/\p{C}/u);
    expect(error.message.length).toBeLessThan(200);
  });
});

describe('how long to wait', () => {
  const date = 'Sat, 14 Nov 2026 10:30:00 GMT';
  it.each([
    ['seconds', { 'retry-after': '7' }, 7000],
    ["a date, measured on the service's clock", { date, 'retry-after': 'Sat, 14 Nov 2026 10:30:20 GMT' }, 20_000],
    ['a reset', { date, 'x-ratelimit-reset': String(Date.UTC(2026, 10, 14, 10, 30, 5) / 1000) }, 5000],
    ['nothing', { 'x-ratelimit-limit': '4' }, undefined],
  ])('%s', async (_name, headers, afterMs) => {
    expect(await fault(429, '', headers)).toMatchObject({ afterMs, answer: { status: 429 } });
    expect(await fault(503, '', headers)).toMatchObject({ afterMs, answer: { status: 503 } });
  });
});

describe('the key', () => {
  it.each([
    ['in the message', 401, envelope('unauthorized', `Invalid key ${KEY}!`)],
    [
      'escaped in the message',
      401,
      envelope('x', 'Invalid key K').replace('K', `\\u0073${JSON.stringify(KEY).slice(2, -1)}`),
    ],
    [
      'in the code and the doc_url',
      400,
      JSON.stringify({ error: { code: KEY, message: KEY, doc_url: `https://d/?k=${encodeURIComponent(KEY)}` } }),
    ],
    ['on an HTML page', 200, `<html>${KEY}</html>`],
    ['at the edge of what is shown', 500, `${'x'.repeat(110)}${KEY}`],
    ['cut by an invisible character', 500, `${KEY.slice(0, 9)}\u200b${KEY.slice(9)}`],
    ['in capitals', 500, `you sent ${KEY.toUpperCase()}`],
    ['in base64', 500, `Basic ${btoa(KEY)}`],
    ['in base64 behind a user', 500, `Basic ${btoa(`user:${KEY}`)}`],
    ['in base64 before a password', 500, `Basic ${btoa(`me:${KEY}:`)}`],
    ['in JSON that is no list', 200, JSON.stringify({ you: KEY })],
    ['in JSON that is broken', 200, `[{"you":"${KEY}`],
  ])('is redacted %s', async (_name, status, body) => {
    const error = await fault(status, body);
    expect(error.message + error.answer?.message).toContain('*');
  });
  it('is not shown by a redirect that contains it', async () => {
    const error = await fault(302, '', { location: `https://login.example.com/?key=${encodeURIComponent(KEY)}` });
    expect(error.message).toContain('redirected to login.example.com,');
  });
});

describe('events in an unexpected body', () => {
  const event = { click: { id: 'c', ip: '203.0.113.9' }, link: { password: 'hunter\\"2' }, customer: { name: 'Ada' } };
  const list = JSON.stringify([event]);
  it.each<[string, number, string, string]>([
    ['a truncated list', 200, list.slice(0, -4), '[{"click":{"id":"***","ip":"***"},"link":{"password":"***"}'],
    ['a list truncated inside a text', 200, list.slice(0, list.indexOf('hunter') + 4), '"link":{"password":"***"'],
    ['a wrapped list', 200, `{"data":${list}}`, '{"data":[{"click":{"id":"***"'],
    ['a list with an error status', 500, list, '[{"click":{"id":"***"'],
  ])('show their shape without personal data: %s', async (_name, status, body, shape) => {
    const error = await fault(status, body);
    const said = `${error.describe()} ${JSON.stringify(error.answer ?? {})}`;
    expect(error.message).toContain(shape);
    expect(said).not.toMatch(/203\.0|hunt|Ada/);
  });
});

describe('the network', () => {
  it('no server listens', async () => {
    const server = await serve(() => {});
    await server.close();
    const error = await faultAt(server.baseUrl);
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toContain(`127.0.0.1:${server.port}: nothing listens there (ECONNREFUSED)`);
    expect(error.next).toContain('baseUrl');
  });
  it('unknown host', async () => {
    const error = await faultAt('https://no-such-host.invalid');
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(/no-such-host\.invalid:443: .*(ENOTFOUND|EAI_AGAIN)/);
    expect(error.next).toContain('DNS');
  });
  it('connection closed before the answer', async () => {
    const server = await serve((request) => request.socket.destroy());
    const error = await faultAt(server.baseUrl);
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(/the connection was cut \(/);
  });
  it('no TLS on the port of an https URL', async () => {
    const server = await serve(() => {});
    const error = await faultAt(server.baseUrl.replace('http:', 'https:'));
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(/TLS/);
  });
  it('no HTTP at all', async () => {
    const server = createServer((socket) => socket.end('220 smtp ready\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    expect((await faultAt(`http://127.0.0.1:${port}`)).message).toMatch(/not HTTP/);
  });
  it.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /certificate is not trusted/],
    ['CERT_HAS_EXPIRED', /certificate is not trusted/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /certificate is not trusted/],
    ['ETIMEDOUT', /cannot be reached/],
    ['ESOMETHINGNEW', /the request failed \(ESOMETHINGNEW\)/],
  ])('%s', (code, message) => {
    const failed = Object.assign(new Error('low level'), { code });
    const error = networkFault(failed, new URL('https://api.example.com/events'), 0);
    expect(error?.message).toMatch(message);
    expect(error?.message).toContain('api.example.com:443');
    expect(error?.next).toBeTruthy();
  });
  it('does not report a bug as a network error', () => {
    const url = new URL('https://api.example.com');
    expect(networkFault(new TypeError('x is not a function'), url, 0)).toBeUndefined();
    expect(networkFault(Object.assign(new TypeError('bug'), { code: 'ERR_INVALID_ARG_TYPE' }), url, 0)).toBeUndefined();
  });
});
