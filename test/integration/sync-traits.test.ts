import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STREAM_NAMES } from '../../src/model/streams.ts';
import {
  configFor,
  type Engine,
  expectComplete,
  forgetProofs,
  missingIn,
  openEngine,
  sourceOf,
  syncAllDone,
  tallies,
  versionsOf,
  withSmallPages,
} from '../support/engine.ts';
import { sandboxWith } from '../support/sandbox.ts';

/** Every trait of the field notes, over real HTTP into real tables: nothing is lost, nothing comes twice, nothing flickers. */

let engine: Engine;
beforeAll(async () => {
  engine = await openEngine();
});
afterAll(() => engine.close());

const rows = { clicks: 150, leads: 60, sales: 40 };
/** Less than a stream has, so that every trait is met across pages. */
const PAGE = 20;

const TRAITS = [
  ['widen=day'],
  ['widen=hour'],
  ['bounds=exclusive'],
  ['bounds=inclusive'],
  ['shuffleTies', 'ties=15'],
  ['ties=60'],
  ['dropAfterLimit=0.1'],
  ['lastPage=repeat'],
  ...['iso', 'seconds', 'offset', 'space', 'epoch', 'epoch-ms', 'jsdate'].map((form) => [`timestampForm=${form}`]),
  ['clickTimeIsEventTime'],
  ['duplicates'],
  ['rewrites'],
  ['volatile'],
  ['unknownFields'],
  ['unknownEnums'],
  ['nulls'],
  ['absentKeys'],
  ['emptyStrings'],
  ['saleShape=flat'],
  ['saleShape=canonical'],
  ['saleShape=no-customer'],
  ['oldAliasesOnly'],
  ['noAliases'],
  ['contradict'],
  ['dirty'],
  ['deletedCustomers'],
  ['clockSkew=5m'],
  ['clockSkew=-5m'],
];

describe.each(TRAITS.map((traits) => [traits.join(' '), traits] as const))('%s', (_name, traits) => {
  it('is complete, and changes nothing when it is read again', async () => {
    const sandbox = await sandboxWith([...traits], { rows, days: 12 });
    const config = configFor(engine, sandbox);
    await withSmallPages(engine.db, config, PAGE);
    await syncAllDone(config);
    await expectComplete(engine.db, config, sandbox);
    const before = await versionsOf(engine.db, config);
    await forgetProofs(engine.db, config);
    const again = await syncAllDone(config);
    expect(tallies(again)).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
    expect(await versionsOf(engine.db, config)).toEqual(before);
    expect(again.map(({ report }) => report?.tally.quarantined)).toEqual([0, 0, 0]);
    expect(await missingIn(engine.db, config)).toBe(0);
  });
});

it('keeps the newest of a rewritten event', async () => {
  const sandbox = await sandboxWith(['rewrites=0.3'], { rows, days: 12 });
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const stored = await engine.db.query<{ id: string; name: string }>({
    text: 'select event_id as id, event_name as name from attribution.leads where _source = $1',
    values: [sourceOf(config)],
  });
  const newest = new Map(sandbox.service.events('leads').map(({ eventId, eventName }) => [eventId, eventName]));
  expect(stored.filter(({ name }) => name.endsWith('(corrected)')).length).toBeGreaterThan(10);
  for (const { id, name } of stored) expect(name).toBe(newest.get(id));
});

it('fills the columns of both names, whichever came', async () => {
  const filled = async (trait: string): Promise<object[]> => {
    // One seed and one end of history: the same events every time.
    const sandbox = await sandboxWith([trait], { rows, days: 12, seed: 7, historyEnd: END });
    const config = configFor(engine, sandbox);
    await syncAllDone(config);
    return engine.db.query({
      text: `
        select event_id, click_id, click_country, country, click_url, url, click_qr, qr, link_id, link_domain, domain,
          sale_amount, sale_invoice_id, invoice_id, sale_payment_processor, payment_processor
        from attribution.sales where _source = $1 order by event_id`,
      values: [sourceOf(config)],
    });
  };
  const END = Date.now() - 60_000;
  const full = await filled('saleShape=full');
  expect(full).toHaveLength(rows.sales);
  expect(await filled('oldAliasesOnly')).toEqual(full);
  expect(await filled('noAliases')).toEqual(full);
  expect(await filled('saleShape=flat')).toEqual(full);
});

it('counts contradictions in the run and keeps both sides', async () => {
  const sandbox = await sandboxWith(['contradict=0.5'], { rows, days: 12 });
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const runs = await engine.db.query<{ stream: string; contradictions: Record<string, number> }>({
    text: 'select stream, contradictions from tributary.runs where source = $1',
    values: [sourceOf(config)],
  });
  for (const { stream, contradictions } of runs) {
    expect(contradictions.click_country, stream).toBeGreaterThan(10);
    expect('sale_amount' in contradictions).toBe(stream === 'sales');
  }
  const [sample] = await engine.db.query<{ country: string; other: string }>({
    text: `
      select click_country as country, _extra ->> 'country' as other from attribution.clicks
      where _source = $1 and _extra ->> 'country' is not null limit 1`,
    values: [sourceOf(config)],
  });
  expect(sample?.other).toMatch(/^(XX|YY)$/);
  expect(sample?.country).not.toBe(sample?.other);
});

it('writes into the run which columns came, once', async () => {
  const own = await openEngine();
  try {
    const config = configFor(own, await sandboxWith(['unknownFields'], { rows, days: 12 }));
    await syncAllDone(config);
    await syncAllDone(config);
    const runs = await own.db.query<{ stream: string; changes: string[] }>({
      text: 'select stream, schema_changes as changes from tributary.runs order by started_at, stream',
    });
    const changes = runs.filter(({ stream }) => stream === 'sales').map((run) => run.changes);
    expect(changes).toEqual([
      [
        'click.asn → click_asn (integer)',
        'click.ua → click_ua (text)',
        'customer.stripeCustomerId → customer_stripe_customer_id (text)',
        'ingestedBy → ingested_by (json)',
        'link.utmId → link_utm_id (text)',
        'sale.taxAmount → sale_tax_amount (integer)',
      ],
      [],
    ]);
  } finally {
    await own.close();
  }
});

it('lets the password of a link into no table, whatever is wrong with its record', async () => {
  const sandbox = await sandboxWith(['password', 'unknownFields'], { rows, days: 12 });
  const { service } = sandbox;
  const link = { id: 'link_bad', password: 'secret-canary' };
  for (const stream of STREAM_NAMES) {
    service.add(stream, { event: 'odd', timestamp: 'yesterday', eventId: `bad-${stream}`, click: { id: 'b' }, link });
    service.add(stream, {
      timestamp: new Date().toISOString(),
      link: [link],
      click: { id: `list-${stream}` },
      eventId: 'l',
    });
  }
  const own = await openEngine();
  try {
    const config = configFor(own, sandbox);
    const outcomes = await syncAllDone(config);
    expect(outcomes.map(({ report }) => report?.tally.quarantined)).not.toContain(0);
    const tables = await own.db.query<{ name: string }>({
      text: `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('attribution', 'tributary')`,
    });
    expect(tables.length).toBeGreaterThan(8);
    for (const { name } of tables) {
      const found = await own.db.query({ text: `select t::text from ${name} t where t::text ~ 'secret-'` });
      expect(found, name).toEqual([]);
    }
    expect(await own.db.query({ text: 'select 1 from tributary.quarantine' })).toHaveLength(3);
  } finally {
    await own.close();
  }
});
