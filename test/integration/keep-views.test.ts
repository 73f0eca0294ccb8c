import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { viewsOf } from '../../src/sinks/postgres/views.ts';
import { type PostgresPlace, postgresPlace } from '../support/postgres-place.ts';
import { createWriter, NOON, rowOf } from '../support/sink-harness.ts';

/** Views that others change are repaired or reported, and no row is lost. */

let place: PostgresPlace;
const role = `reader_${process.pid}`;
const warnings: Array<{ view: string; fix: string; says: string }> = [];
const log = {
  warn: (fields: object, says: string) => void warnings.push({ ...(fields as { view: string; fix: string }), says }),
};
const VIEWS = viewsOf({ schema: 'attribution', sink: 'warehouse', isStateHere: true }).map(({ name }) => name);

const sql = <T = Record<string, unknown>>(text: string) => place.db.query<T & Record<string, unknown>>({ text });
const openSink = () =>
  createPostgresSink({ name: 'warehouse', db: place.db, schema: 'attribution', state: place.state, log });
const columnsOf = async (view: string): Promise<string[]> =>
  (
    await sql<{ name: string }>(
      `select attname as name from pg_attribute where attrelid = 'attribution.${view}'::regclass and attnum > 0 order by attnum`,
    )
  ).map(({ name }) => name);
const mayRead = async (): Promise<string[]> =>
  (
    await sql<{ name: string }>(`select relname as name from pg_class where relnamespace = 'attribution'::regnamespace
      and relkind = 'v' and has_table_privilege('${role}', oid, 'select') order by 1`)
  ).map(({ name }) => name);

beforeAll(async () => {
  place = await postgresPlace({ schema: 'attribution' });
  await sql(`create role ${role}`);
});
beforeEach(async () => {
  warnings.length = 0;
  await sql(`drop schema if exists attribution cascade; drop schema if exists reports cascade; create schema reports`);
  await openSink().prepare(STREAMS.clicks);
  await sql(`grant usage on schema attribution to ${role}`);
});
afterAll(async () => {
  await sql(`drop owned by ${role}; drop role ${role}`);
  await place.close();
});

it('repairs a view that was replaced by one with the same columns, even during a process', async () => {
  const sink = openSink();
  await sink.prepare(STREAMS.clicks);
  const columns = await columnsOf('complete_days');
  await sql(`create or replace view attribution.complete_days as
    select 'x'::text as source, 'x'::text as stream, current_date as date, 1::bigint as rows, now() as complete_at`);
  expect(await sql('select source from attribution.complete_days')).toEqual([{ source: 'x' }]);
  const writer = await createWriter({ ...place, createSink: () => sink }, STREAMS.clicks);
  // The first commit notices the change, the next one checks closely.
  for (const id of ['a', 'b']) await writer.commit([rowOf(STREAMS.clicks, id, NOON)]).catch(() => {});
  await sink.prepare(STREAMS.clicks);
  expect(await sql('select source from attribution.complete_days')).toEqual([]);
  expect(await columnsOf('complete_days')).toEqual(columns);
  expect(warnings).toEqual([]);
});

/** As in version 0.1: a row per currency. */
const OLD_SHAPE = `drop view attribution.daily_link_performance; create view attribution.daily_link_performance as
  select _source as source, ("timestamp" at time zone 'UTC')::date as date, link_id, null::text as domain, null::text as key, 1::bigint as clicks,
    0::bigint as leads, 0::bigint as sales, 0::bigint as sale_amount, null::text as sale_currency, 0::numeric as revenue from attribution.clicks;
  comment on view attribution.daily_link_performance is 'Clicks, leads and sales. Shape 0123456789ab.'`;

it('gives the view of an earlier version its new columns, and keeps the grants on it', async () => {
  const columns = await columnsOf('daily_link_performance');
  await sql(`${OLD_SHAPE}; grant select on attribution.daily_link_performance to ${role} with grant option`);
  await openSink().prepare(STREAMS.clicks);
  expect(await columnsOf('daily_link_performance')).toEqual(columns);
  expect(await mayRead()).toEqual(['daily_link_performance']);
  const [{ acl } = { acl: '' }] = await sql<{ acl: string }>(
    `select relacl::text as acl from pg_class where oid = 'attribution.daily_link_performance'::regclass`,
  );
  expect(acl).toContain(`${role}=r*/`);
  expect(warnings).toEqual([]);
});

it.each([
  [
    'a report depends on its old columns',
    `${OLD_SHAPE}; create view reports.mine as select revenue from attribution.daily_link_performance`,
    /drop what uses it/,
    /view reports\.mine depends on view attribution\.daily_link_performance/,
  ],
  [
    'it was replaced by a table',
    'drop view attribution.daily_link_performance; create table attribution.daily_link_performance (n int)',
    /rename or move it/,
    /is not a view/,
  ],
  [
    'it was replaced by another view',
    'drop view attribution.daily_link_performance; create view attribution.daily_link_performance as select 1 as mine',
    /rename or drop it/,
    /column/,
  ],
])('warns of the view if %s, and continues', async (_name, change, fix, says) => {
  await sql(change);
  const before = await columnsOf('daily_link_performance');
  const sink = openSink();
  await sink.prepare(STREAMS.clicks);
  expect(warnings).toEqual([
    expect.objectContaining({
      view: 'daily_link_performance',
      fix: expect.stringMatching(fix),
      says: expect.stringMatching(says),
    }),
  ]);
  expect(await columnsOf('daily_link_performance')).toEqual(before);
  const writer = await createWriter({ ...place, createSink: () => sink }, STREAMS.clicks);
  await writer.commit([rowOf(STREAMS.clicks, 'a', NOON)]);
  expect(await sql('select event_id from attribution.clicks')).toEqual([{ event_id: 'a' }]);
  const findings = await sink.check();
  expect(findings.filter(({ says: text }) => /daily_link_performance/.test(text))).toMatchObject([{ level: 'note' }]);
});

it('restores the column that a view needs, and the views that were dropped with it', async () => {
  await sql('alter table attribution.sales drop column sale_amount cascade');
  await openSink().prepare(STREAMS.clicks);
  const views = await sql<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'attribution'::regnamespace and relkind = 'v' order by 1`,
  );
  expect(views.map(({ name }) => name)).toEqual([...VIEWS].sort());
  expect(warnings).toEqual([]);
});

it('names a column whose type was changed', async () => {
  await sql(`drop view ${VIEWS.map((name) => `attribution.${name}`).join(', ')};
    alter table attribution.links alter link_partner_id type jsonb using to_jsonb(link_partner_id)`);
  // The sink itself refuses such a table; a view alone would cause a warning.
  await expect(openSink().prepare(STREAMS.clicks)).rejects.toThrow('columns of another type: link_partner_id');
});

it('grants new views only to roles that may read everything they show', async () => {
  const tables = ['clicks', 'leads', 'sales', 'links', 'customers'].map((name) => `attribution.${name}`).join(', ');
  await sql(
    `drop view ${VIEWS.filter((name) => name !== 'coverage')
      .map((name) => `attribution.${name}`)
      .join(', ')}`,
  );
  await sql(`grant select on attribution.clicks, attribution.coverage to ${role}`);
  await openSink().prepare(STREAMS.clicks);
  expect(await mayRead()).toEqual(['complete_days', 'coverage', 'new_columns']);
  await sql(
    `drop view ${VIEWS.filter((name) => name !== 'coverage')
      .map((name) => `attribution.${name}`)
      .join(', ')}`,
  );
  await sql(`grant select on ${tables} to ${role}`);
  await openSink().prepare(STREAMS.clicks);
  expect(await mayRead()).toEqual([...VIEWS].sort());
});

it('a cursor can be moved in a warehouse of an earlier version', async () => {
  const sink = openSink();
  const writer = await createWriter({ ...place, createSink: () => sink }, STREAMS.clicks);
  await writer.commit([rowOf(STREAMS.clicks, 'a', NOON)]);
  await sql('drop table attribution._days cascade');
  const [{ source } = { source: '' }] = await sql<{ source: string }>(
    'select _source as source from attribution.clicks',
  );
  await sink.publishProgress({ source, stream: 'clicks' });
  await openSink().prepare(STREAMS.clicks);
  expect(await columnsOf('complete_days')).toContain('complete_at');
});
