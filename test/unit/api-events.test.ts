import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { CUT } from '../../src/api/cancel.ts';
import type { Client, EventsQuery, Page } from '../../src/api/client.ts';
import { createEventsApi } from '../../src/api/events-api.ts';
import { createLimiter, type Lane } from '../../src/api/limiter.ts';
import { Cancelled, ConfigError, type Fault, RetryLater, StopStream } from '../../src/model/errors.ts';
import type { Log } from '../../src/model/log.ts';
import { silentLog } from '../support/silent-log.ts';

const query: EventsQuery = { stream: 'sales', start: 0, end: 1000, sortOrder: 'asc', page: 3, limit: 10, filters: {} };
const PAGE: Page = { records: [1, 2], serverNow: undefined, bytes: 5, tookMs: 1 };
const answer = (status: number) => ({ status, code: `code_${status}`, message: 'said' });

/** An API whose client plays the given outcomes in turn, and repeats the last. */
function playing(outcomes: Array<Page | Error>, retries = { firstWaitMs: 5 }) {
  const lines: Array<{ fields: Record<string, unknown>; message: string }> = [];
  const log: Log = {
    debug: () => {},
    info: () => {},
    error: () => {},
    warn: (fields, message) => void lines.push({ fields: { ...fields }, message }),
    child: () => log,
  };
  const client: Client = {
    async get() {
      const outcome = outcomes.length > 1 ? outcomes.shift() : outcomes[0];
      if (outcome instanceof Error || !outcome) throw outcome;
      return outcome;
    },
  };
  const limiter = createLimiter({ requestsPerSecond: 500 });
  return { api: createEventsApi({ client, limiter, log, retries }), lines, limiter };
}

describe('pages of events', () => {
  it('retries transient errors, and logs one line each', async () => {
    const { api, lines } = playing([new RetryLater('cut'), new RetryLater('503', { answer: answer(503) }), PAGE]);
    expect(await api.page(query, { lane: 'fresh' })).toBe(PAGE);
    expect(api.stats()).toEqual({ requests: 3, tooManyRequests: 0 });
    expect(lines).toHaveLength(2);
    expect(lines[1]?.fields).toMatchObject({ stream: 'sales', page: 3, status: 503, code: 'code_503', attempt: 2 });
    expect(lines[1]?.fields.waitMs).toBeGreaterThan(0);
  });

  it.each([
    new StopStream('403', { answer: answer(403) }),
    new ConfigError('no'),
    new Cancelled('interrupted'),
    new TypeError('x is not a function'),
    new TypeError('fetch failed'),
    new Error('unknown'),
  ])('does not retry %s', async (error) => {
    const { api } = playing([error]);
    await expect(api.page(query, { lane: 'fresh' })).rejects.toBe(error);
    expect(api.stats()).toMatchObject({ requests: 1 });
  });

  it('gives up and reports the tries, the time and the last cause', async () => {
    const last = new RetryLater('the service answered 503: away', { answer: answer(503), next: 'wait' });
    const { api } = playing([last]);
    const error = (await api.page(query, { lane: 'backfill' }).catch((thrown) => thrown)) as RetryLater;
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.message).toMatch(/^gave up after 6 tries over \d+\.\d s: the service answered 503: away$/);
    expect(error).toMatchObject({ cause: last, answer: answer(503), next: 'wait', where: { stream: 'sales' } });
    expect(api.stats()).toMatchObject({ requests: 6 });
  });

  it('retries one refusal among good answers; a repeated or first one ends the run', async () => {
    const refused = new StopStream('403: an HTML page', { answer: answer(403) });
    const { api } = playing([PAGE, refused, PAGE, refused, refused, refused], { firstWaitMs: 1 });
    await api.page(query, { lane: 'fresh' });
    await api.page(query, { lane: 'fresh' });
    expect(api.stats()).toMatchObject({ requests: 3 });
    await expect(api.page(query, { lane: 'fresh' })).rejects.toBe(refused);
    expect(api.stats().requests).toBe(6);
    const { api: never } = playing([refused], { firstWaitMs: 1 });
    await expect(never.page(query, { lane: 'fresh' })).rejects.toBe(refused);
    expect(never.stats().requests).toBe(1);
  });

  it('waits as long as a 503 asks, instead of its own backoff', async () => {
    const { api } = playing([new RetryLater('503', { answer: answer(503), afterMs: 200 }), PAGE], {
      firstWaitMs: 9000,
    });
    const began = performance.now();
    await api.page(query, { lane: 'fresh' });
    expect(performance.now() - began).toBeGreaterThan(190);
    expect(performance.now() - began).toBeLessThan(9000);
  });

  it('leaves the wait after a 429 to the limiter, which delays every request', async () => {
    const { api, limiter, lines } = playing([new RetryLater('429', { answer: answer(429), afterMs: 300 }), PAGE], {
      firstWaitMs: 9000,
    });
    const began = performance.now();
    const first = api.page(query, { lane: 'fresh' });
    await delay(50);
    const other = api.page(query, { lane: 'backfill' });
    await Promise.all([first, other]);
    expect(performance.now() - began).toBeGreaterThan(290);
    expect(performance.now() - began).toBeLessThan(9000);
    expect(limiter.usage().pauses).toBe(1);
    expect(api.stats()).toMatchObject({ requests: 3, tooManyRequests: 1 });
    expect(lines[0]?.fields).toMatchObject({ status: 429, waitMs: 300 });
  });

  it('sends a request that times out at most three times', async () => {
    const { api, lines } = playing([new RetryLater('late', { answer: CUT })]);
    await expect(api.page(query, { lane: 'fresh' })).rejects.toThrow('gave up after 3 tries');
    expect([api.stats().requests, lines.length]).toEqual([3, 2]);
  });

  it('adds no wait to a 429 that names no time', async () => {
    const limiter = {
      ...createLimiter({ requestsPerSecond: 500 }),
      run: <T>(_lane: Lane, task: () => Promise<T>) => task(),
    };
    const answers = [() => Promise.reject(new RetryLater('429', { answer: answer(429) })), async () => PAGE];
    const client: Client = { get: () => answers.shift()?.() ?? Promise.resolve(PAGE) };
    const api = createEventsApi({ client, limiter, log: silentLog, retries: { firstWaitMs: 9000 } });
    const began = performance.now();
    await api.page(query, { lane: 'fresh' });
    expect(performance.now() - began).toBeLessThan(9000);
  });

  it.each([
    ['its own sleep', new RetryLater('503', { answer: answer(503), afterMs: 60_000 })],
    ['the pause of a 429', new RetryLater('429', { answer: answer(429), afterMs: 60_000 })],
  ])('abort during %s returns promptly as Cancelled', async (_name, error) => {
    const { api } = playing([error]);
    const controller = new AbortController();
    const reason = new Error('SIGTERM');
    setTimeout(() => controller.abort(reason), 80);
    const began = performance.now();
    const thrown = (await api.page(query, { lane: 'fresh', signal: controller.signal }).catch((e) => e)) as Fault;
    expect(thrown).toBeInstanceOf(Cancelled);
    expect(thrown.cause).toBe(reason);
    expect(performance.now() - began).toBeLessThan(9000);
  });

  it('sends nothing if the signal is already aborted', async () => {
    const { api } = playing([PAGE]);
    const page = api.page(query, { lane: 'fresh', signal: AbortSignal.abort() });
    await expect(page).rejects.toBeInstanceOf(Cancelled);
    expect(api.stats().requests).toBe(0);
  });
});
