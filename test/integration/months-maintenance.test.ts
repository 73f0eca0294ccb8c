import { expect, it } from 'vitest';
import { ConfigError } from '../../src/model/errors.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { docsSql, isAboutPartitions } from '../support/docs-sql.ts';
import { configFor, expectComplete, forgetProofs, openEngine, syncAllDone, tallies } from '../support/engine.ts';
import { openFeed, recordOf } from '../support/feed.ts';
import { monthsPlace, partsOf, SALES, saleAt } from '../support/months.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { certified, createWriter, receipt, rowOf, rowsOf } from '../support/sink-harness.ts';

/** Partitions over the years: retention, new columns, erased people, a changed setting. */

const place = monthsPlace();

it('a dropped month does not return with the next sweep, until its keys are deleted', async () => {
  // As described in docs/warehouse.md.
  const [dropMonth = '', deleteKeys = '', ...others] = docsSql().filter(isAboutPartitions);
  expect(others).toEqual([]);
  const writer = await createWriter(place(), SALES);
  const { source } = writer.lease;
  const old = [saleAt('a', '2025-01-05T00:00:00Z'), saleAt('b', '2025-01-31T23:59:59Z')];
  const kept = saleAt('c', '2025-02-01T00:00:00Z');
  await writer.commit([...old, kept]);
  await place().db.query({ text: dropMonth });
  expect(await writer.commit([...old, kept])).toEqual(receipt({ unchanged: 3 }));
  expect(await partsOf(place(), source)).toEqual(['c in sales_2025_02']);
  // A new event is stored, whatever its month.
  const late = saleAt('late', '2025-01-07T00:00:00Z');
  expect(await writer.commit([late, ...old])).toEqual(receipt({ new: 1, unchanged: 2 }));
  expect(await partsOf(place(), source)).toEqual(['c in sales_2025_02', 'late in sales_2025_01']);

  await place().db.query({ text: dropMonth });
  await place().db.query({ text: deleteKeys });
  expect(await writer.commit([late, ...old, kept])).toEqual(receipt({ new: 3, unchanged: 1 }));
  expect(await partsOf(place(), source)).toHaveLength(4);
});

it('reports that a required month is detached and in the way', async () => {
  const writer = await createWriter(place(), SALES);
  await writer.commit([saleAt('a', '2020-05-05T00:00:00Z')]);
  await place().db.query({ text: 'alter table attribution.sales detach partition attribution.sales_2020_05' });
  const refused = writer.commit([saleAt('b', '2020-05-06T00:00:00Z')]);
  await expect(refused).rejects.toThrow(ConfigError);
  await expect(refused).rejects.toThrow(/attribution\.sales_2020_05 exists as a table, but is not a partition/);
  await place().db.query({ text: 'alter table attribution.sales_2020_05 rename to archived' });
  expect(await writer.commit([saleAt('b', '2020-05-06T00:00:00Z')])).toEqual(receipt({ new: 1 }));
});

it('adds new and wider columns to every month, also to later ones', async () => {
  const { send, source } = await openFeed({ state: place().state, sinks: [place().createSink()], stream: 'sales' });
  const at = (month: string, fields: object) => ({
    ...recordOf(month, fields as Record<string, unknown>),
    timestamp: `2019-${month}-01T00:00:00Z`,
  });
  await send([at('01', {}), at('02', { grows: 1 })]);
  await send([at('03', { grows: 'x' })]);
  await send([at('01', { grows: { deep: true } }), at('04', { grows: 0.5 })]);
  const shown = await place().db.query({
    text: 'select event_id, grows, tableoid::regclass::text as part from attribution.sales where _source = $1 order by 1',
    values: [source],
  });
  expect(shown).toEqual([
    { event_id: '01', grows: { deep: true }, part: 'attribution.sales_2019_01' },
    { event_id: '02', grows: '1', part: 'attribution.sales_2019_02' },
    { event_id: '03', grows: 'x', part: 'attribution.sales_2019_03' },
    { event_id: '04', grows: 0.5, part: 'attribution.sales_2019_04' },
  ]);
});

it('marks deleted events in every month of a window, and in no other', async () => {
  const writer = await createWriter(place(), SALES);
  const days = ['2018-01-31', '2018-02-28', '2018-03-31', '2018-04-30'].map((day) => `${day}T12:00:00Z`);
  await writer.commit(days.map((day, i) => saleAt(`e${i}`, day)));
  const [start, end] = ['2018-01-01', '2018-04-01'].map((day) => Date.parse(day)) as [number, number];
  const spans = [{ ...certified(start, end, 1), whole: true }];
  expect(await writer.commit([saleAt('e1', days[1] ?? '')], { spans })).toEqual(receipt({ unchanged: 1 }));
  const rows = [...(await rowsOf(place(), SALES, writer.lease.source))];
  expect(
    rows
      .filter(([, row]) => row._missing_since !== null)
      .map(([id]) => id)
      .sort(),
  ).toEqual(['e0', 'e2']);
});

it('removes the key of a click with the click, and all keys of a source with the source', async () => {
  const [one, two] = [await createWriter(place(), STREAMS.clicks), await createWriter(place(), STREAMS.clicks)];
  const click = (id: string, day: number) => rowOf(STREAMS.clicks, id, Date.UTC(2017, day, 1));
  for (const writer of [one, two]) await writer.commit([click('gone', 0), click('kept', 1)]);
  const sink = place().createSink();
  expect(await sink.erase({ source: one.lease.source, kind: 'click', id: 'gone' })).toMatchObject({
    'attribution.clicks': 1,
    'attribution._clicks_keys': 1,
  });
  const keys = { text: 'select event_id from attribution._clicks_keys where _source = $1', values: [one.lease.source] };
  expect(await place().db.query(keys)).toEqual([{ event_id: 'kept' }]);
  expect(await sink.erase({ source: one.lease.source, kind: 'source' })).toMatchObject({
    'attribution.clicks': 1,
    'attribution._clicks_keys': 1,
  });
  expect(await place().db.query(keys)).toEqual([]);
  expect((await rowsOf(place(), STREAMS.clicks, two.lease.source)).size).toBe(2);
});

it.each(['none', 'month'] as const)(
  'refuses to change a table of the other form to %s, with a remedy',
  async (partition) => {
    const options = { name: 'warehouse', db: place().db, schema: `form_${partition}`, state: place().state };
    const other = partition === 'none' ? 'month' : 'none';
    await createPostgresSink({ ...options, partition: other }).prepare(SALES);
    const refused = createPostgresSink({ ...options, partition }).prepare(SALES);
    await expect(refused).rejects.toThrow(ConfigError);
    await expect(refused).rejects.toThrow(`and the config says partition: ${partition}`);
    await expect(refused).rejects.toMatchObject({ next: expect.stringContaining(`set partition: ${other}`) });
    await createPostgresSink({ ...options, partition: other }).prepare(SALES);
  },
);

it('is complete after a full sync over several months, and a second one changes nothing', async () => {
  const engine = await openEngine();
  try {
    const sandbox = await smallSandbox({ rows: { clicks: 200, leads: 60, sales: 40 }, days: 120 });
    const config = configFor(engine, sandbox, { since: '120d' });
    Object.assign(config.sinks.warehouse ?? {}, { partition: 'month' });
    await syncAllDone(config);
    await expectComplete(engine.db, config, sandbox);
    const [parts] = await engine.db.query<{ count: number }>({
      text: `select count(*) from pg_inherits where inhparent = 'attribution.clicks'::regclass`,
    });
    expect(parts?.count).toBeGreaterThanOrEqual(4);
    await forgetProofs(engine.db, config);
    expect(tallies(await syncAllDone(config))).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
    const [daily] = await engine.db.query<{ clicks: number }>({
      text: 'select sum(clicks)::int as clicks from attribution.daily_link_performance',
    });
    expect(daily?.clicks).toBe(200);
  } finally {
    await engine.close();
  }
});
