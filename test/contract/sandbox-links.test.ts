import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/sandbox/data/types.ts';
import type { Sandbox } from '../../src/sandbox/server.ts';
import { contractTable } from '../support/contract.ts';
import { plainSandbox, type Query } from '../support/sandbox.ts';

const askLinks = (sandbox: Sandbox, query: Query = {}): Promise<Response> =>
  fetch(
    `${sandbox.baseUrl}/links?${new URLSearchParams(Object.entries(query).map(([k, v]): [string, string] => [k, String(v)]))}`,
    {
      headers: { authorization: `Bearer ${sandbox.apiKey}` },
    },
  );

const links = async (sandbox: Sandbox, query: Query = {}): Promise<JsonObject[]> =>
  (await (await askLinks(sandbox, query)).json()) as JsonObject[];

describe('GET /links', () => {
  test('pages of all links, quiet, archived and expired ones among them, newest first', async () => {
    const sandbox = await plainSandbox({ quietLinks: 60 });
    const pages = [await links(sandbox), await links(sandbox, { page: 2 }), await links(sandbox, { page: 3 })];
    expect(pages.map((page) => page.length)).toEqual([100, 56, 0]);
    const all = pages.flat();
    expect(new Set(all.map(({ id }) => id))).toEqual(new Set(sandbox.service.linkListing.all().map(({ id }) => id)));
    expect(all.map(({ createdAt }) => createdAt)).toEqual(
      all
        .map(({ createdAt }) => createdAt)
        .sort()
        .reverse(),
    );
    const quiet = all.filter(({ clicks }) => clicks === 0);
    expect(quiet.length).toBeGreaterThanOrEqual(60);
    expect(quiet.some(({ archived }) => archived === true)).toBe(true);
    expect(quiet.some(({ expiresAt }) => Date.parse(String(expiresAt)) < Date.now())).toBe(true);
    const fields = contractTable('Link object').map(({ Field = '' }) => Field);
    expect(new Set(all.flatMap(Object.keys))).toEqual(new Set(fields));
  });

  test('pageSize, sortBy and sortOrder are read; what they cannot be is refused', async () => {
    const sandbox = await plainSandbox();
    const asc = await links(sandbox, { pageSize: 7, sortBy: 'createdAt', sortOrder: 'asc' });
    expect(asc).toHaveLength(7);
    expect(asc[0]?.id).toBe(sandbox.service.linkListing.all()[0]?.id);
    for (const query of [{ pageSize: 101 }, { page: 0 }, { sortBy: 'colour' }])
      expect((await askLinks(sandbox, query)).status).toBe(422);
  });

  test('has the standard limit per minute, which events do not use', async () => {
    const sandbox = await plainSandbox({ requestsPerMinute: 3 });
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await askLinks(sandbox, { pageSize: 1 })).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    const events = await fetch(`${sandbox.baseUrl}/events`, { headers: { authorization: `Bearer ${sandbox.apiKey}` } });
    expect(events.status).toBe(200);
  });

  test('a free plan may list them', async () => {
    const sandbox = await plainSandbox({ plan: 'free', requestsPerMinute: null });
    expect((await askLinks(sandbox)).status).toBe(200);
  });
});
