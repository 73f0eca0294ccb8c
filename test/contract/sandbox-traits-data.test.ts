import { describe, expect, test, vi } from 'vitest';
import { parseJson } from '../../src/model/json.ts';
import type { JsonObject } from '../../src/sandbox/data/types.ts';
import { ask, at, errorOf, rows, STREAMS, sandboxWith, smallSandbox } from '../support/sandbox.ts';

const ALIASES = 'click_id link_id domain key url continent country city device browser os qr ip'.split(' ');

describe('shape', () => {
  test('note 19, unknownFields', async () => {
    const sandbox = await sandboxWith(['unknownFields']);
    for (const event of STREAMS) {
      for (const row of await rows(sandbox, { event, limit: 20 })) {
        expect(at(row, 'click.ua')).toBeTypeOf('string');
        expect(at(row, 'link.utmId')).toBeTypeOf('string');
        expect(row.ingestedBy).toBeTypeOf('object');
      }
    }
  });

  test('note 19, unknownEnums', async () => {
    const sandbox = await sandboxWith(['unknownEnums']);
    const triggers = new Set((await rows(sandbox)).map((row) => at(row, 'click.trigger')));
    expect(triggers).toEqual(new Set(['link', 'qr', 'pageview', 'deeplink']));
  });

  test('note 19, nulls where the contract says required', async () => {
    const sandbox = await sandboxWith(['nulls']);
    const found = await rows(sandbox);
    for (const field of ['expiresAt', 'disabledAt', 'testStartedAt', 'testCompletedAt', 'lastClicked']) {
      const values = found.map((row) => at(row, `link.${field}`));
      expect(values.filter((value) => value === null).length, field).toBeGreaterThan(0);
      expect(
        values.filter((value) => value === undefined),
        field,
      ).toEqual([]);
    }
  });

  test('note 19, absentKeys and emptyStrings', async () => {
    const sandbox = await sandboxWith(['absentKeys']);
    const bare = await rows(sandbox, { event: 'leads' });
    expect(bare.some((row) => !('metadata' in row))).toBe(true);
    expect(bare.some((row) => !('externalId' in (row.link as JsonObject)))).toBe(true);
    expect(bare.flatMap((row) => Object.values(row.link as JsonObject)).includes(null)).toBe(false);
    sandbox.service.traits = { emptyStrings: true };
    const empty = await rows(sandbox, { event: 'leads' });
    expect(empty.some((row) => at(row, 'link.externalId') === '')).toBe(true);
    expect(empty.some((row) => at(row, 'link.expiresAt') === '')).toBe(true);
    expect(empty.flatMap((row) => Object.values(row.link as JsonObject)).includes(null)).toBe(false);
  });

  test.each([
    ['full', ['customer', 'invoice_id', 'payment_processor', 'sale', 'saleAmount']],
    ['canonical', ['customer', 'sale']],
    ['flat', ['customer', 'invoice_id', 'payment_processor', 'saleAmount']],
    ['no-customer', ['invoice_id', 'payment_processor', 'sale', 'saleAmount']],
  ])('note 20, saleShape=%s', async (shape, expected) => {
    const sandbox = await sandboxWith([`saleShape=${shape}`]);
    const fields = ['sale', 'saleAmount', 'invoice_id', 'payment_processor', 'customer'];
    for (const row of await rows(sandbox, { event: 'sales' })) {
      expect(fields.filter((name) => name in row).sort()).toEqual(expected);
    }
    expect((await rows(sandbox, { event: 'leads', limit: 1 }))[0]).toHaveProperty('customer');
  });

  test('note 20, noAliases and oldAliasesOnly', async () => {
    const sandbox = await sandboxWith(['noAliases']);
    for (const event of STREAMS) {
      const [row = {}] = await rows(sandbox, { event, limit: 1 });
      expect(ALIASES.filter((name) => name in row)).toEqual([]);
      expect(at(row, 'click.id')).toBeTypeOf('string');
    }
    sandbox.service.traits = { oldAliasesOnly: true };
    for (const event of STREAMS) {
      const [row = {}] = await rows(sandbox, { event, limit: 1 });
      expect(ALIASES.filter((name) => !(name in row))).toEqual([]);
      for (const path of ['click.id', 'click.url', 'click.country', 'click.ip', 'link.id', 'link.key', 'sale.amount']) {
        expect(at(row, path), path).toBeUndefined();
      }
    }
  });

  test('note 20, contradict: on some rows an alias differs from its canonical field', async () => {
    const sandbox = await sandboxWith(['contradict=0.2']);
    const found = await rows(sandbox);
    const differ = found.filter((row) => row.country !== at(row, 'click.country'));
    expect(differ.length).toBeGreaterThan(100);
    expect(differ.length).toBeLessThan(300);
  });
});

describe('limits and errors', () => {
  test('note 21, limiter: the form of counting can be switched', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 1, 0, 0, 0, 900) });
    try {
      for (const [form, granted] of Object.entries({ fixed: 4, sliding: 2, weighted: 2 })) {
        vi.setSystemTime(Date.UTC(2026, 0, 1, 0, 0, 0, 900));
        const sandbox = await sandboxWith([`limiter=${form}`], { requestsPerSecond: 2 });
        const statuses: number[] = [];
        for (let i = 0; i < 6; i++) {
          if (i === 3) vi.setSystemTime(Date.UTC(2026, 0, 1, 0, 0, 1, 0));
          statuses.push((await ask(sandbox, { limit: 1 })).status);
        }
        expect(
          statuses.filter((status) => status === 200),
          form,
        ).toHaveLength(granted);
      }
    } finally {
      vi.useRealTimers();
    }
  });

  test.each([
    ['retryAfter=seconds', 'retry-after', /^1$/],
    ['retryAfter=date', 'retry-after', /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} .* GMT$/],
    ['retryAfter=epoch', 'retry-after', /^\d{10}$/],
    ['retryAfter=epoch-ms', 'retry-after', /^\d{13}$/],
    ['retryAfter=none', 'retry-after', /^null$/],
    ['retryAfter=garbage', 'retry-after', /^\D+$/],
    ['retryAfter=zero', 'retry-after', /^0$/],
    ['reset=seconds', 'x-ratelimit-reset', /^\d{10}$/],
    ['reset=ms', 'x-ratelimit-reset', /^\d{13}$/],
    ['reset=none', 'x-ratelimit-reset', /^null$/],
    ['reset=garbage', 'x-ratelimit-reset', /^\D+$/],
    ['rateHeaders=none', 'x-ratelimit-limit', /^null$/],
    ['rateHeaders=only-429', 'x-ratelimit-limit', /^0$/],
  ])('note 22, %s', async (trait, header, pattern) => {
    const sandbox = await sandboxWith([trait], { requestsPerSecond: 0 });
    const response = await ask(sandbox);
    expect(response.status).toBe(429);
    expect(String(response.headers.get(header))).toMatch(pattern);
  });

  test('note 22, a 200 may carry no rate headers', async () => {
    const sandbox = await sandboxWith(['rateHeaders=only-429'], { requestsPerSecond: 50 });
    const response = await ask(sandbox);
    expect(response.status).toBe(200);
    expect([...response.headers.keys()].filter((name) => name.startsWith('x-ratelimit'))).toEqual([]);
  });

  test('note 23, forbidden has three meanings and one code', async () => {
    const messages = new Set<string>();
    for (const meaning of ['permission', 'plan', 'usage']) {
      const response = await ask(await sandboxWith([`forbidden=${meaning}`]));
      expect(response.status).toBe(403);
      const { code, message } = await errorOf(response);
      expect(code).toBe('forbidden');
      messages.add(message);
    }
    expect(messages.size).toBe(3);
  });

  test('note 24, errorBody: html, empty, envelope200, unknown-code, no-doc-url', async () => {
    const answer = async (form: string): Promise<[number, string]> => {
      const response = await ask(await sandboxWith([`errorBody=${form}`]), { limit: 9999 });
      return [response.status, await response.text()];
    };
    expect(await answer('html')).toEqual([422, expect.stringMatching(/^<!doctype html>/)]);
    expect(await answer('empty')).toEqual([422, '']);
    const [status, envelope] = await answer('envelope200');
    expect(status).toBe(200);
    expect(JSON.parse(envelope).error.code).toBe('unprocessable_entity');
    expect(JSON.parse((await answer('unknown-code'))[1]).error.code).toBe('quantum_flux');
    expect(Object.keys(JSON.parse((await answer('no-doc-url'))[1]).error)).toEqual(['code', 'message']);
  });

  test('note 25, redirect: 302 to another host', async () => {
    const sandbox = await sandboxWith(['redirect']);
    const response = await ask(sandbox);
    expect(response.status).toBe(302);
    expect(new URL(response.headers.get('location') ?? '').host).not.toBe(new URL(sandbox.baseUrl).host);
    const other = await smallSandbox();
    sandbox.service.traits = { redirect: `${other.baseUrl}/events` };
    // Another port is another origin: fetch follows, and leaves the key behind.
    expect((await ask(sandbox, {}, { redirect: 'follow' })).status).toBe(401);
    expect(other.service.requests).toHaveLength(1);
  });
});

describe('data that bites', () => {
  const page = async (event: string): Promise<string> => {
    const sandbox = await sandboxWith(['dirty'], { rows: { clicks: 5, leads: 5, sales: 5 } });
    return (await ask(sandbox, { event, limit: 1000 })).text();
  };

  test.each(STREAMS)('note 26, dirty %s', async (event) => {
    const text = await page(event);
    expect(text).toContain('\\u0000');
    expect(text).toContain('\\ud800');
    expect(text).toMatch(/[:,]9007199254740993[,}]/);
    expect(text).toContain('tab\\there\\nnewline\\r\\n\\\\. \\\\N back\\\\slash');
    const found = parseJson(text) as JsonObject[];
    expect(found.some((row) => at(row, 'click.ip') === '' && row.ip === '')).toBe(true);
    expect(found.some((row) => at(row, 'click.country') === 'Unknown' && row.country === 'Unknown')).toBe(true);
  });

  test.each(['leads', 'sales'])('note 26, metadata of dirty %s', async (event) => {
    const text = await page(event);
    expect(text).toContain('{"__proto__":{"admin":true}');
    const all = (parseJson(text) as JsonObject[]).map((row) => row.metadata);
    expect(all.some((value) => typeof value === 'string')).toBe(true);
    expect(all.some((value) => Array.isArray(value))).toBe(true);
    expect(
      all.some((value) => JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? String(v) : v)).length > 1_000_000),
    ).toBe(true);
    const depth = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;
    expect(Math.max(...all.map(depth))).toBe(60);
  });

  test('note 27, password: every link carries one in plain text', async () => {
    const sandbox = await sandboxWith(['password']);
    for (const event of STREAMS) {
      for (const row of await rows(sandbox, { event })) expect(at(row, 'link.password')).toMatch(/^secret-/);
    }
  });
});
