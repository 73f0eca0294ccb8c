import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import { printSchema } from '../../src/sinks/schema-formats.ts';
import { backfill, configFor, type Engine, openEngine, syncAllDone } from '../support/engine.ts';
import { sandboxWith } from '../support/sandbox.ts';

/** `schema --format duckdb`: the files of a lake give the same results as the tables. */

let engine: Engine;
let lake: string;
let duckdb: DuckDBInstance;
beforeAll(async () => {
  engine = await openEngine();
  lake = await mkdtemp(join(tmpdir(), "tributary-lake's-"));
  const sandbox = await sandboxWith(['unknownFields', 'clickTimeIsEventTime'], {
    rows: { clicks: 400, leads: 120, sales: 60 },
    days: 12,
  });
  const today = startOfDay(Date.now());
  const since = new Date(today - 8 * DAY_MS + 18 * 3_600_000).toISOString();
  const sinks = { warehouse: { type: 'postgres' }, lake: { type: 'parquet', path: lake } };
  const config = configFor(engine, sandbox, { since, sinks });
  await syncAllDone(config);
  // Up to noon, and from noon on: together they are whole days.
  for (const [from, to] of [
    [12, 10.5],
    [10.5, 9.75],
  ] as const)
    await backfill(config, { window: { start: today - from * DAY_MS, end: today - to * DAY_MS } });
  duckdb = await DuckDBInstance.create(':memory:', { threads: '1' });
  await inDuckdb(printSchema('duckdb', { lake }));
});
afterAll(async () => {
  duckdb.closeSync();
  await rm(lake, { recursive: true, force: true });
  await engine.close();
});

async function inDuckdb(sql: string): Promise<Array<Record<string, unknown>>> {
  const connection = await duckdb.connect();
  try {
    return (await connection.runAndReadAll(sql)).getRowObjectsJson() as Array<Record<string, unknown>>;
  } finally {
    connection.closeSync();
  }
}

const COUNTS = 'clicks::text, leads::text, sales::text, is_complete::text';
const MONEY =
  'sale_currency, sales::text, sale_amount::text, round(revenue::numeric(18, 3), 2)::text as revenue, is_complete::text';
const PEOPLE =
  'clicks::text, leads::text, customers::text, last_touch_leads::text, last_touch_customers::text, round(median_hours_to_lead::numeric(18, 6), 4)::text as lead, round(median_hours_to_sale::numeric(18, 6), 4)::text as sale';

it.each([
  ['complete_days', 'stream, date::text, rows::text'],
  ['coverage', 'stream, filters, set_aside::text'],
  ['links', '_source, link_id, link_domain, link_key, link_partner_id'],
  ['customers', '_source, customer_id, customer_email'],
  [
    'events',
    'source, event, event_id, date::text, link_id, click_country, customer_id, sale_amount::text, sale_currency',
  ],
  ['daily_link_performance', `date::text, link_id, domain, key, ${COUNTS}`],
  ['daily_partner_performance', `date::text, partner_id, ${COUNTS}`],
  ['daily_campaign_performance', `date::text, utm_campaign, ${COUNTS}`],
  ['daily_country_performance', `date::text, country, ${COUNTS}`],
  ['daily_link_revenue', `date::text, link_id, ${MONEY}`],
  ['daily_partner_revenue', `date::text, partner_id, ${MONEY}`],
  ['daily_campaign_revenue', `date::text, utm_campaign, ${MONEY}`],
  ['daily_country_revenue', `date::text, country, ${MONEY}`],
  ['funnel_by_link', `date::text, link_id, ${PEOPLE}`],
  ['funnel_by_partner', `date::text, partner_id, ${PEOPLE}`],
  ['funnel_by_campaign', `date::text, utm_campaign, ${PEOPLE}`],
])('%s is the same in DuckDB and in Postgres', async (view, columns) => {
  const sql = `select ${columns} from attribution.${view}`;
  const sorted = (rows: ReadonlyArray<Record<string, unknown>>) =>
    rows.map((row) => JSON.stringify(Object.values(row))).sort();
  const [files, tables] = [sorted(await inDuckdb(sql)), sorted(await engine.db.query({ text: sql }))];
  expect(files.length).toBeGreaterThan(view === 'coverage' ? 2 : 5);
  expect(files).toEqual(tables);
});
