import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Plan } from '../../src/sandbox/answer.ts';
import type { Sandbox } from '../../src/sandbox/server.ts';
import { contractTable } from '../support/contract.ts';
import { type LimiterForm, limiterOf } from '../support/odd-service/limiters.ts';
import { ask, errorOf, plainSandbox } from '../support/sandbox.ts';

const ERRORS = contractTable('Errors');
const HEADERS = contractTable('Rate limit response headers');
const PLANS = contractTable('Analytics endpoints (`GET /analytics`, `GET /events`)');

afterEach(() => {
  vi.useRealTimers();
});

/** Time stands still while requests are counted, so that counts do not depend on the machine. */
function stopTheClock(): void {
  vi.useFakeTimers({ toFake: ['Date'] });
}

async function statuses(sandbox: Sandbox, number: number): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: number }, () => ask(sandbox, { limit: 1 })));
  await Promise.all(answers.map((answer) => answer.text()));
  return answers.map((answer) => answer.status).sort();
}

/** How each error of the contract comes about without an injected fault; the others have no endpoint here. */
const CAUSES: Record<string, (sandbox: Sandbox) => Promise<Response>> = {
  bad_request: (sandbox) => ask(sandbox, { key: 'abc' }),
  unauthorized: (sandbox) => ask(sandbox, {}, { headers: { authorization: 'Bearer wrong' } }),
  forbidden: async () => ask(await plainSandbox({ plan: 'free' })),
  not_found: (sandbox) =>
    fetch(`${sandbox.baseUrl}/nowhere`, { headers: { authorization: `Bearer ${sandbox.apiKey}` } }),
  unprocessable_entity: (sandbox) => ask(sandbox, { limit: 5000 }),
  rate_limit_exceeded: async (sandbox) => {
    stopTheClock();
    await statuses(sandbox, 2);
    return ask(sandbox);
  },
};

describe('errors', () => {
  test.each(ERRORS)('$code', async ({ code = '', ...row }) => {
    const sandbox = await plainSandbox({ requestsPerSecond: 2 });
    const status = Number(row['HTTP status']);
    sandbox.service.faults.add(...(CAUSES[code] ? [] : [{ status }]));
    const response = await (CAUSES[code] ?? ask)(sandbox);
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toBe('application/json');
    const error = await errorOf(response);
    expect(Object.keys(error).sort()).toEqual(['code', 'doc_url', 'message']);
    expect(error.code).toBe(code);
    expect(error.message).not.toBe('');
    expect(URL.canParse(error.doc_url)).toBe(true);
  });

  test('no key, a wrong scheme and another method are refused', async () => {
    const sandbox = await plainSandbox();
    expect((await fetch(`${sandbox.baseUrl}/events`)).status).toBe(401);
    const basic = { headers: { authorization: `Basic ${sandbox.apiKey}` } };
    expect((await ask(sandbox, {}, basic)).status).toBe(401);
    const post = await ask(sandbox, {}, { method: 'POST' });
    expect(post.status).toBe(405);
    expect((await errorOf(post)).code).toBe('bad_request');
  });
});

describe('rate limit headers', () => {
  test.each(HEADERS)('$Header', async ({ Header = '' }) => {
    stopTheClock();
    const sandbox = await plainSandbox({ requestsPerSecond: 3, limiter: limiterOf('fixed') });
    const granted = await ask(sandbox);
    await statuses(sandbox, 2);
    const limited = await ask(sandbox);
    expect([granted.status, limited.status]).toEqual([200, 429]);
    const reset = String(Math.floor(Date.now() / 1000) + 1);
    const expected = {
      'X-RateLimit-Limit': ['3', '3'],
      'X-RateLimit-Remaining': ['2', '0'],
      'X-RateLimit-Reset': [reset, reset],
      'Retry-After': [null, '1'],
    }[Header];
    expect([granted.headers.get(Header), limited.headers.get(Header)]).toEqual(expected);
  });
});

describe('budget by plan', () => {
  test.each(PLANS)('$Plan: $Limit', async ({ Plan: name = '', Limit = '' }) => {
    stopTheClock();
    const sandbox = await plainSandbox({ plan: name.toLowerCase() as Plan, requestsPerSecond: undefined });
    const perSecond = /^(\d+) requests per second/.exec(Limit)?.[1];
    if (perSecond) {
      const granted = Array(Number(perSecond)).fill(200);
      expect(await statuses(sandbox, granted.length + 3)).toEqual([...granted, 429, 429, 429]);
    } else if (name === 'Free') {
      const response = await ask(sandbox);
      expect(response.status).toBe(403);
      expect((await errorOf(response)).message).toMatch(/paid plan/);
    } else expect(await statuses(sandbox, 30)).toEqual(Array(30).fill(200));
  });

  test('an enterprise plan takes the limit it is given', async () => {
    stopTheClock();
    const sandbox = await plainSandbox({ plan: 'enterprise', requestsPerSecond: 1 });
    expect(await statuses(sandbox, 3)).toEqual([200, 429, 429]);
  });

  test('real time restores it', async () => {
    const sandbox = await plainSandbox({ requestsPerSecond: 1 });
    let answers: number[] = [];
    // Two at once cannot both be granted unless a second lies between them.
    while (!answers.includes(429)) answers = await statuses(sandbox, 2);
    await vi.waitFor(async () => expect((await ask(sandbox, { limit: 1 })).status).toBe(200), { timeout: 10_000 });
  });
});

describe('the three ways to count a second', () => {
  const granted = (form: LimiterForm, times: number[], perSecond = 4): number[] => {
    const limiter = limiterOf(form);
    return times.filter((at) => limiter.take(perSecond, at).allowed);
  };
  const burst = (at: number, number = 4): number[] => Array(number).fill(at);

  test('fixed: a fresh second grants a fresh burst', () => {
    expect(granted('fixed', [...burst(10_900, 5), ...burst(11_000, 5)])).toHaveLength(8);
  });

  test('sliding: any 1000 ms hold at most the limit', () => {
    expect(granted('sliding', [...burst(10_900, 5), ...burst(11_000), ...burst(11_899)])).toHaveLength(4);
    expect(granted('sliding', [...burst(10_900), ...burst(11_900)])).toHaveLength(8);
  });

  test('weighted: the last second counts by the part of it still in sight', () => {
    expect(granted('weighted', [...burst(10_900), ...burst(11_000)])).toHaveLength(4);
    expect(granted('weighted', [...burst(10_900), ...burst(11_500)])).toHaveLength(6);
    expect(granted('weighted', [...burst(10_900), ...burst(12_000)])).toHaveLength(8);
  });

  test.each(['fixed', 'sliding', 'weighted'] as const)('%s: evenly spaced requests are all granted', (form) => {
    const spaced = Array.from({ length: 60 }, (_, i) => 10_037 + i * 255);
    expect(granted(form, spaced)).toHaveLength(60);
  });
});
