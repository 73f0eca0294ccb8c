import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/model/errors.ts';
import { STREAM_NAMES } from '../../src/model/streams.ts';
import type { JsonObject } from '../../src/sandbox/data/types.ts';
import type { Sandbox } from '../../src/sandbox/server.ts';
import { readTrait } from '../../src/sandbox/traits.ts';
import { ODD, parseTraits, readOddTrait } from '../support/odd-service/traits.ts';
import { ask, at, plainSandbox, rows, sandboxWith, smallSandbox, sorted } from '../support/sandbox.ts';

describe('traits', () => {
  test.each(Object.keys(ODD))('%s can be switched on by its name, and survives JSON', (name) => {
    const traits = readOddTrait(name === 'founded' ? `${name}=2024-01-01` : name);
    expect(Object.keys(traits)).toEqual([name]);
    const again = parseTraits(Object.entries(traits).map(([key, value]) => `${key}=${String(value)}`));
    expect(again).toEqual(traits);
    expect(readOddTrait(`${name}=`, traits)).toEqual({});
  });

  test('values are read in their units', () => {
    const given = ['clockSkew=-5m', 'maxBytes=4mb', 'founded=2024-01-01', 'emptyAnswers=every:3', 'deepPages=fail@7'];
    expect(parseTraits(given)).toEqual({
      clockSkew: -300_000,
      maxBytes: 4_194_304,
      founded: Date.UTC(2024, 0, 1),
      emptyAnswers: 'every:3',
      deepPages: 'fail@7',
    });
  });

  test('an unknown trait names the known ones, a wrong value the right ones', () => {
    expect(() => readTrait('widen=day')).toThrow(ConfigError);
    try {
      readTrait('widen=day');
    } catch (error) {
      expect((error as ConfigError).describe()).toMatch(/"widen".*\n.*limitCap, sortOrder, repeatRows/);
    }
    for (const wrong of ['limitCap=many', 'sortOrder=up', 'repeatRows=2', 'lateness=soon', 'noAliases=perhaps']) {
      expect(() => readTrait(wrong), wrong).toThrow(ConfigError);
    }
    for (const wrong of ['widen=week', 'founded', 'emptyAnswers=up', 'deepPages=fail@x']) {
      expect(() => readOddTrait(wrong), wrong).toThrow(ConfigError);
    }
  });
});

describe('the service in hand', () => {
  test('one seed, one history; another seed, another', async () => {
    const now = () => Date.UTC(2026, 0, 1);
    const [one, same, other] = [
      await plainSandbox({ seed: 7, now }),
      await plainSandbox({ seed: 7, now }),
      await plainSandbox({ seed: 8, now }),
    ];
    for (const stream of STREAM_NAMES) {
      expect(one.service.truth(stream)).toEqual(same.service.truth(stream));
      expect(one.service.truth(stream)).not.toEqual(other.service.truth(stream));
    }
  });

  test('add: a record comes out as it went in, at its place in time', async () => {
    const { service, ...sandbox } = await smallSandbox();
    const sample = service.events('leads')[10] ?? {};
    const record: JsonObject = {
      ...sample,
      eventId: 'mine',
      timestamp: '2019-05-01T10:00:00Z',
      extra: { a: [1, null] },
    };
    service.add('leads', record);
    const found = await rows({ service, ...sandbox }, { event: 'leads', start: '2019-05-01', end: '2019-05-02' });
    expect(found).toEqual([record]);
    expect(service.ids('leads')[0]).toBe('mine');
    expect(service.remove('leads', 'mine')).toBe(true);
    expect(service.remove('leads', 'mine')).toBe(false);
    expect(service.removed('leads')).toEqual(['mine']);
  });

  test('deleteLink: its events vanish from all three streams', async () => {
    const sandbox = await smallSandbox();
    const linkId = String(at(sandbox.service.events('sales')[0] ?? {}, 'link.id'));
    const ofLink = (row: JsonObject): boolean => at(row, 'link.id') === linkId;
    const number = STREAM_NAMES.reduce((sum, stream) => sum + sandbox.service.events(stream).filter(ofLink).length, 0);
    expect(sandbox.service.deleteLink(linkId)).toBe(number);
    for (const event of STREAM_NAMES) expect((await rows(sandbox, { event })).filter(ofLink)).toEqual([]);
  });

  test('renameLink and touchCounters change what is joined, and nothing of the event itself', async () => {
    const sandbox = await smallSandbox();
    const [before = {}] = await rows(sandbox, { event: 'leads', limit: 1 });
    sandbox.service.renameLink(String(before.link_id), { key: 'renamed' });
    sandbox.service.touchCounters();
    const [after = {}] = await rows(sandbox, { event: 'leads', limit: 1 });
    expect([after.eventId, after.timestamp, after.metadata]).toEqual([
      before.eventId,
      before.timestamp,
      before.metadata,
    ]);
    expect([after.key, at(after, 'link.key')]).toEqual(['renamed', 'renamed']);
    for (const counter of ['clicks', 'leads', 'conversions', 'sales']) {
      expect(at(after, `link.${counter}`)).toBe(Number(at(before, `link.${counter}`)) + 1);
    }
    expect(at(after, 'link.updatedAt')).not.toBe(at(before, 'link.updatedAt'));
  });

  test('live: events appear as time goes by', async () => {
    let now = Date.UTC(2026, 0, 1);
    const sandbox = await plainSandbox({ now: () => now, perSecond: 5 });
    const before = sandbox.service.stats().rows;
    now += 60_000;
    const { rows: after } = sandbox.service.stats();
    const total = ({ clicks, leads, sales }: typeof after): number => clicks + leads + sales;
    expect(total(after) - total(before)).toBe(300);
    const newest = await rows(sandbox, { start: '1 minute ago' });
    expect(newest).toHaveLength(after.clicks - before.clicks);
  });

  test('the log keeps query, status and rows of every request', async () => {
    const sandbox = await plainSandbox();
    await rows(sandbox, { event: 'leads', limit: 3 });
    await ask(sandbox, { limit: 0 });
    expect(sandbox.service.log.entries.map(({ query, status, rows }) => [query.limit, status, rows])).toEqual([
      ['3', 200, 3],
      ['0', 422, 0],
    ]);
    expect(sandbox.service.stats()).toMatchObject({ requests: 2, byStatus: { 200: 1, 422: 1 } });
  });
});

describe('the traits of a user', () => {
  test('limitCap, sortOrder and repeatRows, of events and of links', async () => {
    const sandbox = await plainSandbox({ traits: { limitCap: 40, sortOrder: 'ignored', repeatRows: 0.2 } });
    const links = await fetch(`${sandbox.baseUrl}/links?sortOrder=asc`, {
      headers: { authorization: `Bearer ${sandbox.apiKey}` },
    });
    const found = [
      [await rows(sandbox, { sortOrder: 'asc' }), 'timestamp'],
      [(await links.json()) as JsonObject[], 'createdAt'],
    ] as const;
    for (const [page, time] of found) {
      expect(new Set(page.map((row) => JSON.stringify(row))).size).toBe(40);
      expect(page.length).toBeGreaterThan(40);
      const times = page.map((row) => String(row[time]));
      expect(times).toEqual([...times].sort().reverse());
    }
  });

  test('they are switched on and off while it runs, and those of tests are unknown', async () => {
    const sandbox = await plainSandbox();
    const answer = await steer(sandbox, 'traits', { limitCap: 5, noAliases: true });
    expect(await answer.json()).toEqual({ limitCap: 5, noAliases: true });
    expect(await rows(sandbox)).toHaveLength(5);
    await steer(sandbox, 'traits', { limitCap: null });
    expect(await rows(sandbox)).toHaveLength(900);
    const unknown = await steer(sandbox, 'traits', { widen: 'day' });
    expect([unknown.status, await unknown.text()]).toEqual([400, expect.stringContaining('limitCap, sortOrder')]);
  });
});

describe('faults', () => {
  test('play so many times, for the requests they match, in order', async () => {
    const sandbox = await plainSandbox();
    const headers = { 'Retry-After': '7' };
    sandbox.service.faults.add({ status: 503, times: 2, match: { event: 'leads' }, body: '<html>', headers });
    sandbox.service.faults.add({ status: 429, when: ({ query }) => query.page === '2' });
    expect((await ask(sandbox)).status).toBe(200);
    const first = await ask(sandbox, { event: 'leads' });
    expect([first.status, await first.text(), first.headers.get('retry-after')]).toEqual([503, '<html>', '7']);
    expect(sandbox.service.faults.pending).toBe(2);
    expect((await ask(sandbox, { event: 'leads' })).status).toBe(503);
    expect((await ask(sandbox, { event: 'leads' })).status).toBe(200);
    expect((await ask(sandbox, { page: 2 })).status).toBe(429);
    expect((await ask(sandbox, { page: 2 })).status).toBe(200);
  });

  test('cut breaks off in the middle, drop says nothing, delay answers in the end', async () => {
    const sandbox = await plainSandbox();
    sandbox.service.faults.add({ cut: true }, { drop: true }, { delayMs: 20 });
    const cut = await ask(sandbox, { interval: 'all' });
    expect(cut.status).toBe(200);
    await expect(cut.text()).rejects.toThrow();
    await expect(ask(sandbox)).rejects.toThrow();
    expect(await rows(sandbox, { limit: 2 })).toHaveLength(2);
  });

  test('hang never answers, and close does not wait for it', async () => {
    const sandbox = await plainSandbox();
    sandbox.service.faults.add({ hang: true });
    const hanging = ask(sandbox);
    const outcome = expect(hanging).rejects.toThrow();
    while (sandbox.service.faults.pending > 0) await new Promise((resolve) => setImmediate(resolve));
    await sandbox.close();
    await outcome;
  });
});

describe('over HTTP', () => {
  test('gzip only when the client accepts it', async () => {
    const sandbox = await plainSandbox();
    const encodingFor = (accept: string): Promise<string | undefined> =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${sandbox.apiKey}`, 'accept-encoding': accept };
        request(`${sandbox.baseUrl}/events?interval=all`, { headers }, (response) => {
          response.resume().on('end', () => resolve(response.headers['content-encoding']));
        })
          .on('error', reject)
          .end();
      });
    expect(await encodingFor('gzip, deflate')).toBe('gzip');
    expect(await encodingFor('identity')).toBeUndefined();
    const unpacked = await ask(sandbox, { interval: 'all' }, { headers: { 'accept-encoding': 'gzip' } });
    expect(unpacked.headers.get('content-encoding')).toBe('gzip');
    expect(await unpacked.json()).toEqual(await rows(sandbox, { limit: 100 }));
  });

  test('timestampForm=varies: milliseconds come and go', async () => {
    const sandbox = await sandboxWith(['timestampForm=varies']);
    const times = [await rows(sandbox, { limit: 1 }), await rows(sandbox, { limit: 1 })].map(([row]) => row?.timestamp);
    expect(times.map((time) => /\.\d{3}Z$/.test(String(time))).sort()).toEqual([false, true]);
  });

  test('the truth, for a test in another process', async () => {
    const sandbox = await sandboxWith(['emptyAnswers=first:9', 'dropAfterLimit=0.2']);
    const truth = (await (await steer(sandbox, 'truth')).json()) as Record<string, { id: string; at: number }[]>;
    expect(truth.leads?.map(({ id }) => id)).toEqual(sandbox.service.ids('leads'));
    expect(await rows(sandbox, { event: 'leads' })).toEqual([]);
    expect(new Date(truth.leads?.[0]?.at ?? 0).toISOString()).toBe(sandbox.service.events('leads')[0]?.timestamp);
  });

  test('control needs the key, and costs no budget', async () => {
    const sandbox = await plainSandbox({ requestsPerSecond: 0 });
    expect((await steer(sandbox, 'stats', undefined, 'wrong')).status).toBe(401);
    expect((await steer(sandbox, 'stats')).status).toBe(200);
    expect((await steer(sandbox, 'nothing')).status).toBe(404);
    expect(sandbox.service.log.entries).toEqual([]);
  });

  test('faults and events are taken in; what makes no sense is refused', async () => {
    const sandbox = await plainSandbox();
    expect((await steer(sandbox, 'faults', [{ status: 500 }, { status: 503, times: 2 }])).status).toBe(200);
    expect(sandbox.service.faults.pending).toBe(3);
    expect((await steer(sandbox, 'faults', [{ statuss: 500 }])).status).toBe(400);
    expect((await steer(sandbox, 'faults', 'not json')).status).toBe(400);
    const made = (await (await steer(sandbox, 'events', { stream: 'clicks', generate: 3 })).json()) as {
      generated: string[];
    };
    expect(
      sorted(
        sandbox.service
          .truth('clicks')
          .slice(-3)
          .map(({ id }) => id),
      ),
    ).toEqual(sorted(made.generated));
    expect((await steer(sandbox, 'events', { stream: 'orders' })).status).toBe(400);
  });
});

/** A request to the sandbox's own control, as another process would send it. */
function steer(sandbox: Sandbox, path: string, body?: unknown, key = sandbox.apiKey): Promise<Response> {
  return fetch(`${sandbox.baseUrl}/_sandbox/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}` },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
}
