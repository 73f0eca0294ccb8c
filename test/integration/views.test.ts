import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { viewsOf } from '../../src/sinks/postgres/views.ts';
import { configFor, type Engine, openEngine, sourceOf, syncAllDone } from '../support/engine.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** The views for BI tools. */

describe.each([
  ['the database of the state', false],
  ['another database', true],
])('views in %s', (_name, isElsewhere) => {
  let state: Engine;
  let warehouse: Engine;
  let config: ReturnType<typeof configFor>;
  let source: string;
  const rows = { clicks: 300, leads: 60, sales: 40 };

  beforeAll(async () => {
    state = await openEngine();
    warehouse = isElsewhere ? await openEngine() : state;
    config = configFor(state, await smallSandbox({ rows, days: 12 }), isElsewhere ? { sinkUrl: warehouse.url } : {});
    source = sourceOf(config);
    await syncAllDone(config);
  });
  afterAll(async () => {
    await state.close();
    if (isElsewhere) await warehouse.close();
  });

  it('coverage shows how far every stream is complete, like the cursors', async () => {
    const shown = await warehouse.db.query<{ lag: unknown }>({
      text: `select source, stream, complete_through, newest_seen, updated_at,
        extract(epoch from lag)::float8 as lag from attribution.coverage where source = $1 order by stream`,
      values: [source],
    });
    const cursors = await state.db.query({
      text: `select source, stream, complete_through, newest_seen, updated_at from tributary.cursors
        where source = $1 and sink = 'warehouse' order by stream`,
      values: [source],
    });
    expect(shown.map(({ lag, ...rest }) => rest)).toEqual(cursors);
    expect(cursors).toHaveLength(3);
    for (const { lag } of shown) {
      expect(lag).toBeGreaterThan(590);
      expect(lag).toBeLessThan(900);
    }
  });

  it('one day of daily_link_performance uses an index, not all events', async () => {
    const plan = await warehouse.db.transaction(async (tx) => {
      // Without an index, a few hundred rows would be read faster.
      await tx.query({ text: 'set local enable_seqscan = off' });
      return tx.query<Record<string, string>>({
        text: `explain select * from attribution.daily_link_performance where date = current_date - 3`,
      });
    });
    const text = plan.map((line) => line['QUERY PLAN']).join('\n');
    for (const stream of STREAM_NAMES) expect(text).toMatch(new RegExp(`(Scan using|Index Scan on) ${stream}_date`));
  });

  it('daily_link_performance adds up to the tables, and excludes missing events', async () => {
    const sums = async () =>
      (
        await warehouse.db.query({
          text: `select sum(clicks)::int as clicks, sum(leads)::int as leads, sum(sales)::int as sales,
            (select sum(sale_amount)::bigint from attribution.daily_link_revenue where source = $1) as amount,
            count(*) filter (where domain is null) as nameless
            from attribution.daily_link_performance where source = $1`,
          values: [source],
        })
      )[0];
    const [{ amount } = { amount: 0 }] = await warehouse.db.query<{ amount: number }>({
      text: 'select sum(sale_amount)::bigint as amount from attribution.sales where _source = $1',
      values: [source],
    });
    expect(await sums()).toEqual({ ...rows, amount, nameless: 0 });
    const [day] = await warehouse.db.query<{ clicks: number; counted: number }>({
      text: `select d.clicks, (select count(*) from attribution.clicks c where c.link_id = d.link_id and c._source = d.source
          and (c."timestamp" at time zone 'UTC')::date = d.date) as counted
        from attribution.daily_link_performance d where source = $1 order by d.clicks desc limit 1`,
      values: [source],
    });
    expect(day?.clicks).toBe(day?.counted);
    expect(day?.clicks).toBeGreaterThan(1);
    await warehouse.db.query({
      text: `update attribution.clicks set _missing_since = now()
        where event_id in (select event_id from attribution.clicks where _source = $1 limit 5)`,
      values: [source],
    });
    expect(await sums()).toMatchObject({ clicks: rows.clicks - 5 });
  });

  it('counts a day of a link once, and sums amounts per currency, in its own units', async () => {
    const change = (text: string) => warehouse.db.query({ text, values: [source] });
    for (const stream of ['clicks', 'leads', 'sales']) {
      await change(`update attribution.${stream} set link_id = 'one', click_country = 'ZZ', "timestamp" = '2026-01-01'
        where event_id in (select event_id from attribution.${stream} where _source = $1 and _missing_since is null limit 7)`);
    }
    await change(`insert into attribution.links (_source, link_id, link_partner_id, link_utm_campaign, _observed_at)
      values ($1, 'one', 'pn_1', 'spring', now())`);
    await change(`update attribution.sales s set sale_amount = 1999,
        sale_currency = (array['usd', 'usd', 'JPY', 'jpy', 'kwd', 'EUR', null])[n.n]
      from (select event_id, row_number() over () as n from attribution.sales where _source = $1 and link_id = 'one') n
      where s._source = $1 and s.event_id = n.event_id`);
    const keys = { link: ['link_id', 'one'], partner: ['partner_id', 'pn_1'], campaign: ['utm_campaign', 'spring'] };
    for (const [dimension, [key, is]] of Object.entries({ ...keys, country: ['country', 'ZZ'] })) {
      const read = (view: string, columns: string) =>
        warehouse.db.query<Record<string, unknown>>({
          text: `select ${columns} from attribution.daily_${dimension}_${view} where source = $1 and date = '2026-01-01' and ${key} = $2`,
          values: [source, is],
        });
      expect(await read('performance', 'clicks, leads, sales, is_complete')).toEqual([
        { clicks: 7, leads: 7, sales: 7, is_complete: false },
      ]);
      const money = await read('revenue', 'sale_currency, sales, sale_amount, revenue::float');
      expect(money.map((row) => Object.values(row).join(' ')).sort()).toEqual([
        ' 1 1999 19.99',
        'eur 1 1999 19.99',
        'jpy 2 3998 3998',
        'kwd 1 1999 1.999',
        'usd 2 3998 39.98',
      ]);
    }
  });

  it.each(['link', 'partner', 'campaign', 'country'])(
    'daily_%s_performance has one row a day, and adds up to the events',
    async (dimension) => {
      const keyOf = { link: 'link_id', partner: 'partner_id', campaign: 'utm_campaign', country: 'country' } as const;
      const key = keyOf[dimension as keyof typeof keyOf];
      const [found] = await warehouse.db.query({
        text: `select count(*) - count(distinct (source, date, ${key})) as doubled, sum(clicks)::int as click, sum(leads)::int as lead,
          sum(sales)::int as sale from attribution.daily_${dimension}_performance`,
      });
      const events = await warehouse.db.query<{ event: string; n: number }>({
        text: 'select event, count(*)::int as n from attribution.events group by 1',
      });
      expect(found).toEqual({ doubled: 0, ...Object.fromEntries(events.map(({ event, n }) => [event, n])) });
      expect(events).toHaveLength(3);
    },
  );

  it('funnels count people once, by their first and by their last touch', async () => {
    const { db } = warehouse;
    const of = `${source}-funnel`;
    const event = (stream: string, id: string, at: string, more: Record<string, string>) => {
      const row = { _source: of, event: stream, event_id: id, timestamp: `2026-03-${at}Z`, _run_id: 'r', ...more };
      const names = Object.keys(row).map((name) => `"${name}"`);
      return db.query({
        text: `insert into attribution.${stream} (${names.join(', ')}) values (${names.map((_, i) => `$${i + 1}`).join(', ')})`,
        values: Object.values(row),
      });
    };
    await event('clicks', 'c1', '01 10:00', { link_id: 'A' });
    await event('clicks', 'c2', '05 10:00', { link_id: 'B' });
    await event('clicks', 'c3', '09 10:00', { link_id: 'B' });
    // Ada: two leads by two links, then two sales. The service puts the time of the lead in the click's field.
    const ada = { customer_id: 'ada' };
    await event('leads', 'l1', '01 12:00', {
      ...ada,
      click_id: 'c1',
      link_id: 'A',
      click_timestamp: '2026-03-01 12:00Z',
    });
    await event('leads', 'l2', '05 11:00', {
      ...ada,
      click_id: 'c2',
      link_id: 'B',
      click_timestamp: '2026-03-05 10:00Z',
    });
    await event('sales', 's1', '06 10:00', {
      ...ada,
      click_id: 'c2',
      link_id: 'B',
      click_timestamp: '2026-03-05 10:00Z',
    });
    await event('sales', 's2', '20 10:00', {
      ...ada,
      click_id: 'c3',
      link_id: 'B',
      click_timestamp: '2026-03-09 10:00Z',
    });
    // Two leads of forgotten customers are two people, with unknown clicks.
    for (const id of ['l3', 'l4']) await event('leads', id, '09 11:00', { link_id: 'B' });
    const rows = await db.query({
      text: `select date::text, link_id, clicks, leads, customers, last_touch_leads as ll, last_touch_customers as lc,
          median_hours_to_lead as to_lead, median_hours_to_sale as to_sale
        from attribution.funnel_by_link where source = $1 order by 1`,
      values: [of],
    });
    const none = { leads: 0, customers: 0, ll: 0, lc: 0, to_lead: null, to_sale: null };
    expect(rows).toEqual([
      { ...none, date: '2026-03-01', link_id: 'A', clicks: 1, leads: 1, customers: 1, to_lead: 2, to_sale: 120 },
      { ...none, date: '2026-03-05', link_id: 'B', clicks: 1, ll: 1, lc: 1 },
      { ...none, date: '2026-03-09', link_id: 'B', clicks: 1, leads: 2, ll: 2, to_lead: 0 },
    ]);
    for (const stream of ['clicks', 'leads', 'sales'])
      await db.query({ text: `delete from attribution.${stream} where _source = $1`, values: [of] });
  });

  it('use the time and currency of a sale, even if the service has fields named date and currency', async () => {
    const { db } = warehouse;
    const sums =
      'select sale_currency, sum(sales)::int as sales from attribution.daily_link_revenue group by 1 order by 1';
    const before = await db.query({ text: sums });
    await db.query({
      text: `alter table attribution.sales add "date" text, add currency text;
        comment on view attribution.daily_link_revenue is 'older'`,
    });
    const sink = createPostgresSink({ name: 'warehouse', db, schema: 'attribution', state: state.db });
    await sink.prepare(STREAMS.sales);
    expect(await db.query({ text: sums })).toEqual(before);
    await db.query({ text: 'alter table attribution.sales drop "date", drop currency' });
  });

  it('have comments, column by column', async () => {
    const found = await warehouse.db.query<{ view: string; comment: string | null; columns: Array<string | null> }>({
      text: `select c.relname as view, obj_description(c.oid, 'pg_class') as comment,
          array_agg(col_description(c.oid, a.attnum)) as columns
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
        where c.relnamespace = 'attribution'::regnamespace and c.relkind = 'v' group by c.oid, c.relname order by 1`,
    });
    const views = viewsOf({ schema: 'attribution', sink: 'warehouse', isStateHere: !isElsewhere });
    expect(found.map(({ view }) => view)).toEqual(views.map(({ name }) => name).sort());
    for (const { comment, columns } of found) {
      expect(comment).toMatch(/\w+ .*\./);
      for (const column of columns) expect(column).toMatch(/[\w}]\.$/);
    }
    for (const { name, columns } of views) {
      const rows = await warehouse.db.query<{ attname: string }>({
        text: `select attname from pg_attribute where attrelid = ('attribution.' || $1)::regclass and attnum > 0 order by attnum`,
        values: [name],
      });
      expect(rows.map(({ attname }) => attname)).toEqual(Object.keys(columns));
    }
  });

  it('keep their grants when they are prepared again, and when they are recreated', async () => {
    const reader = `reader_${process.pid}_${isElsewhere ? 1 : 0}`;
    const { db } = warehouse;
    await db.query({
      text: `create role ${reader}; grant usage on schema attribution to ${reader};
        grant select on attribution.coverage, attribution.daily_link_performance to ${reader}`,
    });
    try {
      const openSink = () =>
        createPostgresSink({
          name: 'warehouse',
          db,
          schema: 'attribution',
          state: isElsewhere ? state.db : db,
        });
      const asReader = () =>
        db.transaction(async (tx) => {
          await tx.query({ text: `set local role ${reader}` });
          await tx.query({ text: 'select * from attribution.daily_link_performance limit 1' });
          return tx.query({ text: 'select stream from attribution.coverage' });
        });
      await openSink().prepare(STREAMS.clicks);
      expect(await asReader()).toHaveLength(STREAM_NAMES.length);
      // As after an upgrade that changes their text.
      await db.query({
        text: `comment on view attribution.coverage is 'older'; comment on view attribution.daily_link_performance is 'older'`,
      });
      await openSink().prepare(STREAMS.clicks);
      expect(await asReader()).toHaveLength(STREAM_NAMES.length);
    } finally {
      await db.query({ text: `drop owned by ${reader}; drop role ${reader}` });
    }
  });
});
