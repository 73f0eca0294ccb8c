import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { acquireLease } from '../../src/cursor/leases.ts';
import { RetryLater } from '../../src/model/errors.ts';
import type { JsonObject } from '../../src/sandbox/data/types.ts';
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import type { Erasure } from '../../src/sinks/sink.ts';
import { forget, type Touched } from '../../src/sync/maintain/forget.ts';
import { dump, linesWith } from '../support/dump.ts';
import {
  configFor,
  type Engine,
  forgetProofs,
  openEngine,
  sourceOf,
  syncAllDone,
  tallies,
  versionsOf,
} from '../support/engine.ts';
import type { SandboxService } from '../support/odd-service/service.ts';
import { freshDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** A person with data in every place: in known fields, in unknown ones, in an invalid record. */
function leaveTraces(service: SandboxService): { customer: string; click: string; eventIds: string[] } {
  const [sound] = service.events('leads');
  const [sale] = service.events('sales');
  if (!sound || !sale) throw new Error('the sandbox is empty');
  const person = {
    ip: 'CANARY',
    metadata: { said: 'CANARY' },
    note: 'CANARY',
    click: { ...(sound.click as JsonObject), id: 'clk_canary', ip: 'CANARY', ua: 'CANARY' },
    click_id: 'clk_canary',
    link: { ...(sound.link as JsonObject), lastVisitor: 'CANARY' },
    customer: {
      id: 'cus_canary',
      name: 'CANARY',
      email: 'CANARY@x.test',
      avatar: 'CANARY',
      'löcher im Namen': 'CANARY',
    },
  };
  service.add('leads', { ...sound, ...person, eventId: 'lead-canary' });
  service.add('sales', { ...sale, ...person, eventId: 'sale-canary' });
  const { timestamp: _, ...timeless } = sound;
  service.add('leads', { ...timeless, ...person, eventId: 'aside-canary' });
  return { customer: 'cus_canary', click: 'clk_canary', eventIds: ['lead-canary', 'sale-canary'] };
}

const SMALL = { rows: { clicks: 60, leads: 20, sales: 10 }, days: 10 };
const NOTHING_CHANGED = [
  [0, 0],
  [0, 0],
  [0, 0],
];

describe.each(['one database', 'another database'])('with state and tables in %s', (where) => {
  let engine: Engine;
  let data: Database;
  let sinkUrl: string | undefined;
  const closers: Array<() => Promise<void>> = [];

  beforeAll(async () => {
    engine = await openEngine();
    closers.push(engine.close);
    data = engine.db;
    if (where === 'one database') return;
    const other = await freshDatabase();
    data = connect({ url: other.url, max: 2 });
    sinkUrl = other.url;
    closers.push(other.drop, data.close);
  });
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
  });

  const forgetIn = (erasure: Erasure): Promise<Touched> => {
    const sink = createPostgresSink({ name: 'warehouse', db: data, schema: 'attribution', state: engine.db });
    return forget({ state: engine.db, sinks: [sink], holder: 'a test' }, erasure);
  };
  const everything = async (): Promise<string> => `${await dump(engine.db)}\n${await dump(data)}`;
  const fresh = async () => {
    const sandbox = await smallSandbox(SMALL);
    const config = configFor(engine, sandbox, sinkUrl === undefined ? {} : { sinkUrl });
    return { service: sandbox.service, config, source: sourceOf(config) };
  };

  it('erases a customer everywhere, permanently', async () => {
    const { service, config, source } = await fresh();
    const { customer, eventIds } = leaveTraces(service);
    await syncAllDone(config);
    const before = linesWith(await everything(), 'CANARY');
    expect([...new Set(before.map((line) => line.split(' ')[0]))].sort()).toEqual(
      expect.arrayContaining(['customers', 'leads', 'quarantine', 'sales']),
    );
    const others = async () =>
      (await versionsOf(data, config)).filter((row) => !JSON.stringify(row).includes('canary'));
    const untouched = await others();

    const touched = await forgetIn({ source, kind: 'customer', id: customer });
    expect(touched).toEqual({
      'attribution.customers': 1,
      'attribution.leads': 1,
      'attribution.sales': 1,
      'tributary.quarantine': 1,
    });
    const left = async () => linesWith(await everything(), /CANARY|cus_canary|aside-canary/);
    expect(await left()).toEqual([]);
    expect(await others()).toEqual(untouched);

    await forgetProofs(engine.db, config);
    expect(tallies(await syncAllDone(config))).toEqual(NOTHING_CHANGED);
    expect(await left()).toEqual([]);
    // The event remains, and is counted.
    const rows = await data.query<JsonObject>({
      text: `select event_id, link_id, click_country, sale_amount, customer_id, click_id from attribution.sales
        where _source = $1 and event_id = any($2)`,
      values: [source, eventIds],
    });
    expect(rows).toEqual([
      {
        event_id: 'sale-canary',
        customer_id: null,
        click_id: null,
        ...solid(['link_id', 'click_country', 'sale_amount']),
      },
    ]);
    expect(await forgetIn({ source, kind: 'customer', id: customer })).toEqual({
      'attribution.customers': 0,
      'attribution.leads': 0,
      'attribution.sales': 0,
      'tributary.quarantine': 0,
    });
  });

  it('erases a click, and the address from its leads and sales, permanently', async () => {
    const { service, config, source } = await fresh();
    const { click } = leaveTraces(service);
    const [sound] = service.events('clicks');
    service.add('clicks', {
      ...sound,
      click: { ...(sound?.click as JsonObject), id: click, ip: 'CANARY' },
      click_id: click,
    });
    await syncAllDone(config);
    const touched = await forgetIn({ source, kind: 'click', id: click });
    expect(touched).toEqual({
      'attribution.clicks': 1,
      'attribution.leads': 1,
      'attribution.sales': 1,
      'tributary.quarantine': 1,
    });
    const check = async () => {
      const rows = await data.query<JsonObject>({
        text: `select event_id, click_ip, ip, click_ua, note, _extra, customer_name from attribution.leads
          where _source = $1 and click_id = $2`,
        values: [source, click],
      });
      const none = { click_ip: null, ip: null, click_ua: null, note: null, _extra: null };
      expect(rows).toEqual([{ event_id: 'lead-canary', ...none, customer_name: 'CANARY' }]);
      expect(linesWith(await everything(), /^(clicks|quarantine) .*(clk_canary|CANARY)/)).toEqual([]);
    };
    await check();
    await forgetProofs(engine.db, config);
    expect(tallies(await syncAllDone(config))).toEqual(NOTHING_CHANGED);
    await check();
  });

  it('removes a source, and leaves another in the same tables unchanged', async () => {
    const [gone, stays] = [await fresh(), await fresh()];
    const { service } = gone;
    leaveTraces(service);
    await syncAllDone(gone.config);
    await syncAllDone(stays.config);
    await forgetIn({ source: gone.source, kind: 'customer', id: 'cus_somebody' });
    const linesOf = async (source: string) => linesWith(await everything(), new RegExp(`\\b${source}\\b`)).sort();
    const before = await linesOf(stays.source);
    expect(before.length).toBeGreaterThan(90);

    const touched = await forgetIn({ source: gone.source, kind: 'source' });
    expect(touched).toMatchObject({
      'attribution.clicks': 60,
      'attribution.leads': 21,
      'attribution.sales': 11,
      'tributary.cursors': 3,
      'tributary.runs': 3,
      'tributary.quarantine': 1,
    });
    expect(touched['attribution.links']).toBeGreaterThan(0);
    expect(touched['attribution.customers']).toBeGreaterThan(0);
    expect(touched['tributary.windows']).toBeGreaterThan(0);
    // What stays: the fence, the log of columns that the tables still have, and the list of forgotten ids.
    const left = (await linesOf(gone.source)).map((line) => line.split(' ')[0]);
    expect([...new Set(left)].filter((table) => !['columns', 'forgotten', 'leases'].includes(table ?? ''))).toEqual([]);
    expect(left).toContain('forgotten');
    expect(await linesOf(stays.source)).toEqual(before);

    // Like a new source: everything is read again.
    const [clicks] = await syncAllDone(gone.config);
    expect(clicks?.report?.tally).toMatchObject({ new: 60, changed: 0 });
    expect(tallies(await syncAllDone(stays.config))).toEqual(NOTHING_CHANGED);
  });

  it('refuses to remove a source that is being written, and touches nothing', async () => {
    const { config, source } = await fresh();
    await syncAllDone(config);
    const rows = await versionsOf(data, config);
    const lease = await acquireLease(engine.db, source, 'sales', 'tributary sync (process 1 on another machine)');
    const refused = forgetIn({ source, kind: 'source' });
    await expect(refused).rejects.toThrow(RetryLater);
    await expect(refused).rejects.toThrow('tributary sync (process 1 on another machine) is writing this stream now');
    expect(await versionsOf(data, config)).toEqual(rows);
    await lease.release();
    // The leases taken before the refusal were released.
    expect(await forgetIn({ source, kind: 'source' })).toMatchObject({ 'attribution.clicks': 60 });
  });
});

const solid = (names: readonly string[]): object => Object.fromEntries(names.map((name) => [name, expect.anything()]));
