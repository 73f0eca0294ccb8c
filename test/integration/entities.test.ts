import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Feed, openFeed, recordOf } from '../support/feed.ts';
import { type PostgresPlace, postgresPlace } from '../support/postgres-place.ts';

/** `links` and `customers`: what events refer to, as last seen. */

const schema = 'attribution';
let place: PostgresPlace;
beforeAll(async () => {
  place = await postgresPlace({ schema });
});
afterAll(() => place.close());

const feed = (stream: 'clicks' | 'leads' | 'sales', source?: string): Promise<Feed> =>
  openFeed({ state: place.state, sinks: [place.createSink()], stream, ...(source && { source }) });

const link = (clicks: number, more: object = {}) => ({
  link: { id: 'l', domain: 'acme.test', key: 'k', url: 'https://acme.test', clicks, ...more },
});
const customer = (name: string, more: object = {}) => ({
  customer: { id: 'c', name, email: `${name}@acme.test`, country: 'DE', externalId: 'x1', ...more },
});
/** As the service shows a customer that was deleted. */
const placeholder = (more: object = {}) => ({
  customer: { id: 'c', externalId: 'c', name: 'Deleted customer', email: null, avatar: null, country: null, ...more },
});

const tableOf = (table: 'links' | 'customers', source: string) =>
  place.db.query<Record<string, unknown> & { version: string }>({
    text: `select *, xmin::text as version from ${schema}.${table} where _source = $1 order by 2`,
    values: [source],
  });

it('keeps one row per link: the newest reading, from whichever stream', async () => {
  const clicks = await feed('clicks');
  // The older event was read later: what counts is when the link was looked at.
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
  // The event keeps what it was read with.
  expect(event).toEqual({ link_clicks: 1 });
});

it('leaves rows alone that did not change', async () => {
  const { send, source } = await feed('leads');
  await send([recordOf('a', { ...link(1), ...customer('Ada') })]);
  const before = [await tableOf('links', source), await tableOf('customers', source)];
  await send([recordOf('a', { ...link(1), ...customer('Ada') }), recordOf('b', { ...link(1), ...customer('Ada') })]);
  expect([await tableOf('links', source), await tableOf('customers', source)]).toEqual(before);
});

it('takes no row where there is no id, and no reading that knows nothing', async () => {
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
])('never lets the placeholder of a deleted customer win, with %s for nothing', async (_name, nothing) => {
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

  // Nor in the row of an event that did change; unless it is another customer by now.
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

it('keeps two sources side by side, even where their ids are the same', async () => {
  const [one, two] = [await feed('leads'), await feed('leads')];
  await one.send([recordOf('a', { ...link(1), ...customer('Ada') })]);
  await two.send([recordOf('a', { ...link(2), ...customer('Grace') })]);
  expect(await tableOf('links', one.source)).toMatchObject([{ link_clicks: 1 }]);
  expect(await tableOf('links', two.source)).toMatchObject([{ link_clicks: 2 }]);
  expect(await tableOf('customers', one.source)).toMatchObject([{ customer_name: 'Ada' }]);
  expect(await tableOf('customers', two.source)).toMatchObject([{ customer_name: 'Grace' }]);
});

it('takes text that Postgres cannot hold there too', async () => {
  const { send, source } = await feed('leads');
  await send([recordOf('a', { ...link(1, { title: 'a\0b' }), ...customer('A\ud800') })]);
  expect(await tableOf('links', source)).toMatchObject([{ link_title: 'a\ufffdb' }]);
  expect(await tableOf('customers', source)).toMatchObject([{ customer_name: 'A\ufffd' }]);
});
