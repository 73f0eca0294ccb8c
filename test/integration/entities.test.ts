import { expect, it } from 'vitest';
import { configFor, emptyEngine, sourceOf, sync, syncAllDone } from '../support/engine.ts';
import { type Feed, openFeed, recordOf } from '../support/feed.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { postgresPlace } from '../support/postgres-place.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { isDeep } from '../tiers.ts';

/** `links` and `customers`: the latest reading of what events refer to. */

const schema = 'attribution';
const place = await forThisFile(postgresPlace({ schema }));

const feed = (stream: 'clicks' | 'leads' | 'sales', source?: string): Promise<Feed> =>
  openFeed({ state: place.state, sinks: [place.createSink()], stream, ...(source && { source }) });

const link = (clicks: number, more: object = {}) => ({
  link: { id: 'l', domain: 'acme.test', key: 'k', url: 'https://acme.test', clicks, ...more },
});
const customer = (name: string, more: object = {}) => ({
  customer: { id: 'c', name, email: `${name}@acme.test`, country: 'DE', externalId: 'x1', ...more },
});
/** How the service shows a deleted customer. */
const placeholder = (more: object = {}) => ({
  customer: { id: 'c', externalId: 'c', name: 'Deleted customer', email: null, avatar: null, country: null, ...more },
});

const tableOf = (table: 'links' | 'customers', source: string) =>
  place.db.query<Record<string, unknown> & { version: string }>({
    text: `select *, xmin::text as version from ${schema}.${table} where _source = $1 order by 2`,
    values: [source],
  });

it('keeps the newest reading of each link, from any stream', async () => {
  const clicks = await feed('clicks');
  // The older event was read later: the time of the reading counts.
  await clicks.send([recordOf('new', link(1), 10), recordOf('old', link(2), 0)]);
  const [first] = await tableOf('links', clicks.source);
  expect(first).toMatchObject({ link_id: 'l', link_domain: 'acme.test', link_clicks: 2 });
  const leads = await feed('leads', clicks.source);
  await leads.send([recordOf('lead', link(3, { key: 'renamed' }))]);
  const rows = await tableOf('links', clicks.source);
  expect(rows).toHaveLength(1);
  expect(rows[0]).toMatchObject({ link_key: 'renamed', link_clicks: 3 });
  expect(Number(rows[0]?._observed_at)).toBeGreaterThan(Number(first?._observed_at));
  const [event] = await place.db.query({
    text: `select link_clicks from ${schema}.clicks where _source = $1 and event_id = 'new'`,
    values: [clicks.source],
  });
  // The event keeps the values that it was read with.
  expect(event).toEqual({ link_clicks: 1 });
});

it('leaves unchanged rows alone', async () => {
  const { send, source } = await feed('leads');
  await send([recordOf('a', { ...link(1), ...customer('Ada') })]);
  const before = [await tableOf('links', source), await tableOf('customers', source)];
  await send([recordOf('a', { ...link(1), ...customer('Ada') }), recordOf('b', { ...link(1), ...customer('Ada') })]);
  expect([await tableOf('links', source), await tableOf('customers', source)]).toEqual(before);
});

it('ignores a reading without an id, or without values', async () => {
  const { send, source } = await feed('clicks');
  await send([recordOf('a', { link: null }), recordOf('b', link(5)), recordOf('c', { link: null, link_id: 'l' })]);
  expect(await tableOf('links', source)).toMatchObject([
    { link_id: 'l', link_url: 'https://acme.test', link_clicks: 5 },
  ]);
  await send([recordOf('d', { link: null, link_id: 'l', domain: 'acme.test' })]);
  expect(await tableOf('links', source)).toMatchObject([{ link_clicks: 5 }]);
});

it.each([
  ['null', {}],
  ['""', { email: '', avatar: '', country: '' }],
])('never overwrites a customer with the placeholder of a deleted one, with %s for empty', async (_name, nothing) => {
  const { send, source } = await feed('sales');
  const known = { customer_name: 'Ada', customer_email: 'Ada@acme.test', customer_external_id: 'x1' };
  await send([recordOf('early', placeholder(nothing))]);
  expect(await tableOf('customers', source)).toMatchObject([{ customer_name: 'Deleted customer' }]);
  await send([recordOf('a', customer('Ada')), recordOf('b', placeholder(nothing))]);
  expect(await tableOf('customers', source)).toMatchObject([known]);
  const [before] = await tableOf('customers', source);
  await send([recordOf('b', placeholder(nothing))]);
  expect(await tableOf('customers', source)).toEqual([before]);
  await send([recordOf('b', customer('Grace'))]);
  expect(await tableOf('customers', source)).toMatchObject([{ customer_name: 'Grace' }]);

  // Nor in the row of a changed event, unless it has another customer now.
  const rowOf = async () =>
    (
      await place.db.query({
        text: `select * from ${schema}.sales where _source = $1 and event_id = 'a'`,
        values: [source],
      })
    )[0];
  expect(await send([recordOf('a', { ...placeholder(nothing), eventName: 'Refund' })])).toMatchObject({ changed: 1 });
  expect(await rowOf()).toMatchObject({ ...known, event_name: 'Refund' });
  const other = { ...placeholder({ ...nothing, id: 'c2' }), eventName: 'Refund' };
  expect(await send([recordOf('a', other)])).toMatchObject({ changed: 1 });
  expect(await rowOf()).toMatchObject({ customer_id: 'c2', customer_name: 'Deleted customer' });
  expect(await send([recordOf('a', other)])).toMatchObject({ changed: 0 });
});

it('keeps two sources apart, even if their ids are the same', async () => {
  const [one, two] = [await feed('leads'), await feed('leads')];
  await one.send([recordOf('a', { ...link(1), ...customer('Ada') })]);
  await two.send([recordOf('a', { ...link(2), ...customer('Grace') })]);
  expect(await tableOf('links', one.source)).toMatchObject([{ link_clicks: 1 }]);
  expect(await tableOf('links', two.source)).toMatchObject([{ link_clicks: 2 }]);
  expect(await tableOf('customers', one.source)).toMatchObject([{ customer_name: 'Ada' }]);
  expect(await tableOf('customers', two.source)).toMatchObject([{ customer_name: 'Grace' }]);
});

it('stores text that Postgres cannot hold, sanitized', async () => {
  const { send, source } = await feed('leads');
  await send([recordOf('a', { ...link(1, { title: 'a\0b' }), ...customer('A\ud800') })]);
  expect(await tableOf('links', source)).toMatchObject([{ link_title: 'a\ufffdb' }]);
  expect(await tableOf('customers', source)).toMatchObject([{ customer_name: 'A\ufffd' }]);
});

it.runIf(isDeep)('restores deleted rows with the next sync, from the events', async () => {
  const engine = await emptyEngine();
  const sandbox = await smallSandbox({ rows: { clicks: 300, leads: 60, sales: 30 }, days: 3 });
  const config = configFor(engine, sandbox);
  const both = async () => {
    const rows: unknown[] = [];
    for (const table of ['links', 'customers'])
      rows.push(
        await engine.db.query({
          text: `select _source, ${table.slice(0, -1)}_id from attribution.${table} order by 2`,
        }),
      );
    return rows;
  };
  await syncAllDone(config);
  await syncAllDone(config);
  const before = await both();
  expect(before.map((rows) => (rows as unknown[]).length)).toEqual([expect.any(Number), expect.any(Number)]);
  const read = async (options: Parameters<typeof sync>[1] = {}): Promise<number> =>
    (await sync(config, options)).reduce((sum, { report }) => sum + (report?.tally.requests ?? 0), 0);
  const idle = await read();
  for (const text of [
    'truncate attribution.links, attribution.customers',
    'drop table attribution.customers cascade',
  ]) {
    await engine.db.query({ text });
    // No more requests than without the loss.
    expect([text, await read()]).toEqual([text, idle]);
    expect(await both()).toEqual(before);
  }
  // The views that were dropped with it are back, too.
  await engine.db.query({ text: 'select from attribution.events' });
  await engine.db.query({
    text: 'delete from attribution.links where link_id > (select min(link_id) from attribution.links)',
  });
  await read({ recount: true });
  expect(await both()).toEqual(before);
  await engine.db.query({ text: 'delete from attribution.links' });
  await engine.db.query({
    text: "update tributary.attestations set counted_at = now() - interval '25 hours' where source = $1",
    values: [sourceOf(config)],
  });
  await read();
  expect(await both()).toEqual(before);
  await engine.close();
});
