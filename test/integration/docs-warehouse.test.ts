import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { quoteIdent } from '../../src/cursor/database/sql.ts';
import { docsSql, isAboutPartitions } from '../support/docs-sql.ts';
import { configFor, type Engine, openEngine, syncAllDone } from '../support/engine.ts';
import { sandboxWith } from '../support/sandbox.ts';

/** Users copy from docs/warehouse.md: all its SQL is run unmodified; that about partitions in months-maintenance.test.ts. */

const BLOCKS = docsSql().filter((sql) => !isAboutPartitions(sql));
const RECIPE = BLOCKS.find((sql) => sql.startsWith('create role')) ?? '';
/** The roles have their own tests: one below, the other in secrets-roles.test.ts. */
const QUERIES = BLOCKS.filter((sql) => !sql.startsWith('create role'));

let engine: Engine;
beforeAll(async () => {
  engine = await openEngine();
  const sandbox = await sandboxWith(['unknownFields', 'dirty'], {
    rows: { clicks: 60, leads: 20, sales: 10 },
    days: 5,
  });
  await syncAllDone(configFor(engine, sandbox));
  // The sandbox sends only whole amounts.
  await engine.db.query({
    text: `update attribution.sales set sale_amount = 13, _extra = '{"sale": {"amount": 12.5}}'
      where event_id = (select max(event_id) from attribution.sales)`,
  });
});
afterAll(() => engine.close());

describe('the queries', () => {
  it('are all found', () => {
    expect(QUERIES.length).toBeGreaterThan(8);
  });

  it.each(QUERIES.map((sql) => [sql.split('\n').find((line) => !line.startsWith('--')), sql]))(
    '%s',
    async (_name, sql = '') => {
      const rows = await engine.db.query({ text: sql });
      if (!sql.startsWith('create index')) expect(rows.length).toBeGreaterThan(0);
    },
  );

  it('count only whole days', async () => {
    const [report] = QUERIES.filter((sql) => sql.startsWith('-- Whole days only'));
    const sum = async (): Promise<number> =>
      (await engine.db.query<{ clicks: number }>({ text: report ?? '' })).reduce((n, { clicks }) => n + clicks, 0);
    expect(await sum()).toBeGreaterThan(0);
    // A stream without certified time holds its source back.
    await engine.db.query({
      text: `
        update tributary.cursors set complete_through = null where stream = 'sales';
        delete from tributary.windows where stream = 'sales'`,
    });
    expect(await sum()).toBe(0);
  });
});

describe('the read-only role', () => {
  const role = `bi_reader_${randomBytes(6).toString('hex')}`;
  beforeAll(async () => {
    const [{ name } = { name: '' }] = await engine.db.query<{ name: string }>({
      text: 'select current_database() as name',
    });
    expect(RECIPE).toContain('on database warehouse');
    await engine.db.query({
      text: RECIPE.replaceAll('bi_reader', role).replace('on database warehouse', `on database ${quoteIdent(name)}`),
    });
    // Tables and columns that were added after the role.
    await engine.db.query({
      text: 'create table attribution.later (n int); alter table attribution.clicks add column later int',
    });
  });
  afterAll(async () => {
    await engine.db.query({ text: `drop owned by ${role}; drop role ${role}` });
  });

  /** Uses `set role`: the read-only transactions of its login would hide an excessive privilege. */
  const asReader = (text: string): Promise<object[]> =>
    engine.db.transaction(async (tx) => {
      await tx.query({ text: `set local role ${role}` });
      return tx.query({ text });
    });

  it('reads everything in the schema', async () => {
    const found = await engine.db.query<{ relname: string }>({
      text: `select relname from pg_class where relnamespace = 'attribution'::regnamespace and relkind in ('r', 'p', 'v', 'm')
        and not has_table_privilege($1, oid, 'select')`,
      values: [role],
    });
    expect(found).toEqual([]);
  });

  it.each([
    'insert into attribution.later values (1)',
    'update attribution.clicks set click_city = null',
    'delete from attribution.customers',
    'truncate attribution.sales',
    'drop view attribution.coverage',
    'alter table attribution.links add column mine int',
    'create table attribution.mine (n int)',
    'create table public.mine (n int)',
    'select * from tributary.quarantine',
    'select * from tributary.cursors',
    'delete from tributary.forgotten',
  ])('may not: %s', async (text) => {
    await expect(asReader(text)).rejects.toThrow(/permission denied|must be owner/);
  });

  it('logs in to read-only transactions', async () => {
    const [settings] = await engine.db.query<{ rolconfig: string[] }>({
      text: 'select rolconfig from pg_roles where rolname = $1',
      values: [role],
    });
    expect(settings?.rolconfig).toEqual(['default_transaction_read_only=on', 'statement_timeout=5min']);
  });
});
