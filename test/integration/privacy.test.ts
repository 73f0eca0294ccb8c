import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Privacy } from '../../src/model/privacy.ts';
import type { JsonObject } from '../../src/sandbox/data/types.ts';
import { dump, linesWith } from '../support/dump.ts';
import { configFor, openEngine, sourceOf, syncAllDone } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import type { SandboxService } from '../support/odd-service/service.ts';
import { sandboxWith } from '../support/sandbox.ts';

/** From the service's HTTP to everything stored: what the settings hide is nowhere. */

const SMALL = { rows: { clicks: 30, leads: 10, sales: 6 }, days: 5 };
const SALT = 'a salt of the tests';
const IP = '203.0.113.77';

const engine = await forThisFile(openEngine());

/** Records with personal data in every place that a record has, one of them invalid. */
function plant(service: SandboxService): void {
  const [lead] = service.events('leads');
  if (!lead) throw new Error('the sandbox is empty');
  const link = { ...(lead.link as JsonObject), password: 'secret-word', oldPasswords: ['secret-word'] };
  const event: JsonObject = {
    ...lead,
    ip: IP,
    clientIp: IP,
    click: { ...(lead.click as JsonObject), id: 'clk-planted', ip: IP, ipAddress: IP },
    click_id: 'clk-planted',
    link,
    previousLink: link,
    customer: { id: 'cus_planted', name: 'CANARY', email: 'CANARY', avatar: 'CANARY', phone: 'CANARY' },
    customer_email: 'CANARY',
  };
  service.add('leads', { ...event, eventId: 'planted' });
  const { timestamp: _, ...timeless } = event;
  service.add('leads', {
    ...timeless,
    eventId: 'of-no-use',
    copy: JSON.stringify({ customer: event.customer, link, ip: IP }),
  });
}

async function syncedWith(
  privacy: Partial<Privacy>,
): Promise<{ lines: (text: string | RegExp) => string[]; row: JsonObject }> {
  const sandbox = await sandboxWith(['password'], SMALL);
  plant(sandbox.service);
  const config = configFor(engine, sandbox);
  await syncAllDone({ ...config, privacy: { ...config.privacy, salt: SALT, ...privacy } });
  const source = sourceOf(config);
  const mine = linesWith(await dump(engine.db), new RegExp(`\\b${source}\\b`)).join('\n');
  expect(linesWith(mine, /^quarantine .*of-no-use/)).toHaveLength(1);
  const [row] = await engine.db.query<JsonObject>({
    text: `select * from attribution.leads where _source = $1 and event_id = 'planted'`,
    values: [source],
  });
  if (!row) throw new Error('the planted lead did not come');
  return { lines: (text) => linesWith(mine, text), row };
}

const hashed = (text: string): string => createHmac('sha256', SALT).update(text).digest('hex');

it('by default omits the password of a link everywhere, and keeps the rest', async () => {
  const { lines, row } = await syncedWith({});
  expect(lines(/secret-/)).toEqual([]);
  expect(row).toMatchObject({ link_password: null, click_ip: IP, ip: IP, customer_name: 'CANARY' });
  expect(lines(/^links /).length).toBeGreaterThan(0);
});

it('keeps the password in its column on request, and in no quarantined record', async () => {
  const { lines, row } = await syncedWith({ linkPassword: 'keep' });
  expect(row.link_password).toBe('secret-word');
  expect(lines(/^quarantine .*secret-/)).toEqual([]);
});

it.each<[Privacy['ip'], string | null]>([
  ['drop', null],
  ['truncate', '203.0.113.0'],
  ['hash', hashed(IP)],
])('ip: %s, in both columns and everywhere else', async (ip, value) => {
  const { lines, row } = await syncedWith({ ip });
  expect([row.click_ip, row.ip]).toEqual([value, value]);
  expect(lines(IP)).toEqual([]);
  expect(row.customer_name).toBe('CANARY');
});

it.each<[Privacy['customer'], string | null]>([
  ['drop', null],
  ['hash', hashed('CANARY')],
])('customer: %s, in events, in customers and everywhere else', async (customer, value) => {
  const { lines, row } = await syncedWith({ customer });
  expect(row).toMatchObject({ customer_id: 'cus_planted', customer_name: value, customer_email: value });
  expect(lines(/^customers .*cus_planted/)).toHaveLength(1);
  expect(lines('CANARY')).toEqual([]);
  expect(row.click_ip).toBe(IP);
});
