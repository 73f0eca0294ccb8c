import { beforeAll, describe, expect, test } from 'vitest';
import { parseInstant } from '../../src/model/instant.ts';
import type { Json, JsonObject } from '../../src/sandbox/data/types.ts';
import type { Sandbox } from '../../src/sandbox/server.ts';
import { contractTable } from '../support/contract.ts';
import { ask, at, errorOf, idOf, idsOf, plainSandbox, type Query, rows, sorted } from '../support/sandbox.ts';

const PARAMETERS = contractTable('Query parameters');
const DAY = 86_400_000;
/** A fixed "now" in the middle of a quarter makes mtd, qtd and ytd differ. */
const NOW = Date.UTC(2026, 10, 15, 12);

let sandbox: Sandbox;
let clicks: JsonObject[];
let leads: JsonObject[];
let sales: JsonObject[];
beforeAll(async () => {
  sandbox = await plainSandbox({ now: () => NOW, days: 500 });
  clicks = sandbox.service.events('clicks');
  leads = sandbox.service.events('leads');
  sales = sandbox.service.events('sales');
});

const timeOf = (record: JsonObject): number => parseInstant(record.timestamp) ?? Number.NaN;

/** The filter shows exactly the records that match, and they are some but not all. */
async function selects(query: Query, truth: JsonObject[], matches: (record: JsonObject) => boolean): Promise<void> {
  const expected = idsOf(truth.filter(matches));
  expect(expected.length, `${JSON.stringify(query)} selects nothing`).toBeGreaterThan(0);
  expect(expected.length, `${JSON.stringify(query)} selects everything`).toBeLessThan(truth.length);
  expect(sorted(idsOf(await rows(sandbox, query)))).toEqual(sorted(expected));
}

async function refused(query: Query, status = 422): Promise<void> {
  const response = await ask(sandbox, query);
  expect(response.status, JSON.stringify(query)).toBe(status);
  expect((await errorOf(response)).code).toBe(status === 422 ? 'unprocessable_entity' : 'bad_request');
}

const partnerOf = (record: JsonObject) =>
  sandbox.service.world.links.find((link) => link.id === at(record, 'link.id'))?.partner ?? null;
const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);

/** Where the records themselves show what an advanced filter looks at. */
const SEEN: Record<string, (record: JsonObject) => Json[]> = {
  tagId: (record) => list(at(record, 'link.tags')).map((tag) => at(tag as JsonObject, 'id') ?? null),
  partnerTagId: (record) => [...(partnerOf(record)?.tagIds ?? [])],
  groupId: (record) => [partnerOf(record)?.groupId ?? null],
  linkId: (record) => [at(record, 'link.id') ?? null],
  ...Object.fromEntries(
    [
      'domain',
      'tenantId',
      'folderId',
      'partnerId',
      'utm_source',
      'utm_medium',
      'utm_campaign',
      'utm_term',
      'utm_content',
    ].map((name) => [name, (record: JsonObject) => [at(record, `link.${name}`) ?? null]]),
  ),
  ...Object.fromEntries(
    [
      'country',
      'city',
      'region',
      'continent',
      'device',
      'browser',
      'os',
      'trigger',
      'referer',
      'refererUrl',
      'url',
    ].map((name) => [name, (record: JsonObject) => [at(record, `click.${name}`) ?? null]]),
  ),
};

async function advanced(name: string): Promise<void> {
  const seen = SEEN[name];
  if (!seen) throw new Error(`the test does not know where ${name} looks`);
  const values = [...new Set(clicks.flatMap(seen).filter((value) => value !== null))].map(String);
  const [one = '', two = ''] = values;
  expect(values.length).toBeGreaterThan(1);
  const holds = (record: JsonObject, ...wanted: string[]): boolean =>
    seen(record).some((value) => wanted.includes(String(value)));
  await selects({ [name]: one }, clicks, (record) => holds(record, one));
  await selects({ [name]: `-${one}` }, clicks, (record) => !holds(record, one));
  // A filter with two of two values would select everything.
  if (values.length > 2) {
    await selects({ [name]: `${one},${two}` }, clicks, (record) => holds(record, one, two));
    await selects({ [name]: `-${one},${two}` }, clicks, (record) => !holds(record, one, two));
  }
  await selects({ [name]: one, event: 'leads' }, leads, (record) => holds(record, one));
}

const CHECKS: Record<string, () => Promise<void>> = {
  async event() {
    expect(sorted(idsOf(await rows(sandbox)))).toEqual(sorted(idsOf(clicks)));
    for (const event of ['clicks', 'leads', 'sales'] as const) {
      const found = await rows(sandbox, { event });
      expect(sorted(idsOf(found))).toEqual(sorted(sandbox.service.truth(event).map(({ id }) => id)));
      expect(new Set(found.map((record) => record.event))).toEqual(new Set([event.slice(0, -1)]));
    }
    await refused({ event: 'click' });
  },
  async key() {
    const { domain, key } = clicks.find((record) => record.key !== '_root') ?? {};
    await selects({ domain: String(domain), key: String(key) }, clicks, (record) => record.key === key);
    await refused({ key: String(key) }, 400);
  },
  async externalId() {
    const id = clicks.map((record) => at(record, 'link.externalId')).find((value) => value !== null);
    await selects({ externalId: `ext_${id}` }, clicks, (record) => at(record, 'link.externalId') === id);
    await refused({ externalId: String(id) });
  },
  async customerId() {
    const id = String(at(sales[0] ?? {}, 'customer.id'));
    const own = (record: JsonObject): boolean => at(record, 'customer.id') === id;
    await selects({ event: 'sales', customerId: id }, sales, own);
    await selects({ event: 'leads', customerId: id }, leads, own);
    // A click shows no customer: the filter finds the click by which the customer came.
    const cameBy = at(leads.find(own) ?? {}, 'click.id');
    await selects({ customerId: id }, clicks, (record) => at(record, 'click.id') === cameBy);
  },
  async interval() {
    const since = async (interval: string, from: number): Promise<void> => {
      await selects({ interval }, clicks, (record) => timeOf(record) >= from && timeOf(record) < NOW);
    };
    await since('24h', NOW - DAY);
    await since('7d', NOW - 7 * DAY);
    await since('30d', NOW - 30 * DAY);
    await since('90d', NOW - 90 * DAY);
    await since('1y', NOW - 365 * DAY);
    await since('mtd', Date.UTC(2026, 10, 1));
    await since('qtd', Date.UTC(2026, 9, 1));
    await since('ytd', Date.UTC(2026, 0, 1));
    expect(await rows(sandbox, { interval: 'all' })).toHaveLength(clicks.length);
    const byDefault = (await (await ask(sandbox, { limit: 1000 })).json()) as JsonObject[];
    expect(idsOf(byDefault)).toEqual(idsOf(await rows(sandbox, { interval: '24h' })));
    await refused({ interval: '48h' });
  },
  async start() {
    const from = NOW - 100 * DAY;
    const after = (record: JsonObject): boolean => timeOf(record) >= from;
    await selects({ start: new Date(from).toISOString() }, clicks, after);
    await selects({ start: new Date(from).toISOString(), interval: '24h' }, clicks, after);
    await selects({ start: '2400 hours ago' }, clicks, after);
    await selects({ start: '2026-11-01' }, clicks, (record) => timeOf(record) >= Date.UTC(2026, 10, 1));
    await refused({ start: 'yesterdayish' });
    await refused({ start: '2026-11-10', end: '2026-11-01' });
  },
  async end() {
    const [start, end] = [Date.UTC(2026, 8, 1), Date.UTC(2026, 9, 1)];
    const query = { start: '2026-09-01', end: '2026-10-01T00:00:00Z' };
    await selects(query, clicks, (record) => timeOf(record) >= start && timeOf(record) < end);
    await selects({ end: '2026-10-01', interval: '30d' }, clicks, (record) => {
      return timeOf(record) >= end - 30 * DAY && timeOf(record) < end;
    });
    await refused({ end: 'never' });
  },
  async timezone() {
    const midnight = Date.UTC(2026, 10, 1) - 14 * 3_600_000;
    await selects({ interval: 'mtd', timezone: 'Pacific/Kiritimati' }, clicks, (record) => timeOf(record) >= midnight);
    await selects({ interval: 'mtd', timezone: 'UTC' }, clicks, (record) => timeOf(record) >= Date.UTC(2026, 10, 1));
    await refused({ timezone: 'Mars/Olympus' });
  },
  async root() {
    await selects({ root: 'true' }, clicks, (record) => record.key === '_root');
    await selects({ root: 'false' }, clicks, (record) => record.key !== '_root');
    await refused({ root: 'maybe' });
  },
  async saleType() {
    const seen = new Set<Json | undefined>();
    const firsts = new Set<string>();
    for (const record of sales) {
      if (!seen.has(at(record, 'customer.id'))) firsts.add(idOf(record));
      seen.add(at(record, 'customer.id'));
    }
    await selects({ event: 'sales', saleType: 'new' }, sales, (record) => firsts.has(idOf(record)));
    await selects({ event: 'sales', saleType: 'recurring' }, sales, (record) => !firsts.has(idOf(record)));
    await refused({ event: 'sales', saleType: 'old' });
  },
  async query() {
    const plan = (record: JsonObject): boolean => at(record, 'metadata.plan') === 'team';
    await selects({ event: 'leads', query: "metadata['plan']:'team'" }, leads, plan);
    await selects({ event: 'sales', query: "metadata['plan']:'team'" }, sales, plan);
    const exact = `metadata['plan']:'${'x'.repeat(10_000 - 19)}'`;
    expect(exact).toHaveLength(10_000);
    expect(await rows(sandbox, { event: 'leads', query: exact })).toEqual([]);
    await refused({ event: 'leads', query: exact.replace('x', 'xx') });
    await refused({ event: 'leads', query: 'plan=team' });
    await refused({ event: 'clicks', query: "metadata['plan']:'team'" });
  },
  async programId() {
    const id = String(clicks.map((record) => at(record, 'link.programId')).find((value) => value !== null));
    await selects({ programId: id }, clicks, (record) => at(record, 'link.programId') === id);
  },
  async tagIds() {
    const tags = [...new Set(clicks.flatMap((record) => SEEN.tagId?.(record) ?? []))].map(String);
    const wanted = tags.slice(0, 2);
    await selects({ tagIds: wanted.join(',') }, clicks, (record) => {
      return (SEEN.tagId?.(record) ?? []).some((tag) => wanted.includes(String(tag)));
    });
  },
  async qr() {
    await selects({ qr: 'true' }, clicks, (record) => record.qr === 1);
    await selects({ qr: 'false' }, clicks, (record) => record.qr === 0);
    await refused({ qr: '7' });
  },
  async page() {
    const pages = await Promise.all([1, 2, 3, 4].map((page) => rows(sandbox, { page, limit: 300 })));
    expect(pages.map((page) => page.length)).toEqual([300, 300, 300, 0]);
    expect(sorted(idsOf(pages.flat()))).toEqual(sorted(idsOf(clicks)));
    expect(idsOf(await rows(sandbox, { limit: 300 }))).toEqual(idsOf(pages[0] ?? []));
    for (const page of ['0', '-1', '1.5', 'two']) await refused({ page });
  },
  async limit() {
    const response = await ask(sandbox, { interval: 'all' });
    expect(await response.json()).toHaveLength(100);
    expect(await rows(sandbox, { limit: 1 })).toHaveLength(1);
    expect(await rows(sandbox, { limit: 1000 })).toHaveLength(900);
    for (const limit of ['0', '1001', '-5', 'many']) await refused({ limit });
  },
  async sortOrder() {
    const ascending = await rows(sandbox, { sortOrder: 'asc' });
    expect(ascending.map(timeOf)).toEqual(clicks.map(timeOf).sort((a, b) => a - b));
    expect(idsOf(await rows(sandbox, { sortOrder: 'desc' }))).toEqual(idsOf(ascending).reverse());
    expect(idsOf(await rows(sandbox))).toEqual(idsOf(ascending).reverse());
    await refused({ sortOrder: 'up' });
  },
  async sortBy() {
    expect(await rows(sandbox, { sortBy: 'timestamp' })).toHaveLength(900);
    await refused({ sortBy: 'country' });
  },
  async order() {
    expect(idsOf(await rows(sandbox, { order: 'asc' }))).toEqual(idsOf(await rows(sandbox, { sortOrder: 'asc' })));
    const both = await rows(sandbox, { order: 'asc', sortOrder: 'desc' });
    expect(idsOf(both)).toEqual(idsOf(await rows(sandbox, { sortOrder: 'desc' })));
    await refused({ order: 'up' });
  },
};

describe('query parameters', () => {
  test('the contract lists 43', () => expect(PARAMETERS).toHaveLength(43));

  test.each(PARAMETERS)('$Parameter', async ({ Parameter = '', ...row }) => {
    const isAdvanced = row['Type / allowed values']?.includes('AF');
    const check = isAdvanced ? () => advanced(Parameter) : CHECKS[Parameter];
    if (!check) throw new Error(`no check for the parameter ${Parameter}`);
    await check();
  });

  test('filters combine: all must hold', async () => {
    await selects({ country: 'US', device: 'Desktop', trigger: '-qr' }, clicks, (record) => {
      return record.country === 'US' && record.device === 'Desktop' && record.qr === 0;
    });
  });

  test('values outside the lists of continent and trigger are refused', async () => {
    await refused({ continent: 'EU,XX' });
    await refused({ trigger: 'deeplink' });
  });

  test('unknown parameters and empty values are ignored', async () => {
    expect(await rows(sandbox, { pageSize: 3, country: '' })).toHaveLength(900);
  });
});
