import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { quoteIdent } from '../../src/cursor/database/sql.ts';
import { docsSql } from '../support/docs-sql.ts';
import { configFor, expectComplete, syncAllDone } from '../support/engine.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { sandboxWith } from '../support/sandbox.ts';

/** The writer role of docs/warehouse.md, unmodified: sufficient for a sync, and for nothing else. */

const RECIPE = docsSql().find((sql) => sql.startsWith('create role tributary_writer')) ?? '';
const role = `writer_${randomBytes(6).toString('hex')}`;
let database: TestDatabase;
let admin: Database;
let writer: Database;
let url: string;

beforeAll(async () => {
  database = await freshDatabase();
  admin = connect({ url: database.url, max: 1 });
  const [{ name } = { name: '' }] = await admin.query<{ name: string }>({ text: 'select current_database() as name' });
  await admin.query({
    text: 'create table public.theirs (n int); create schema others; create table others.t (n int)',
  });
  await admin.query({
    text: RECIPE.replaceAll('tributary_writer', role).replace(
      'on database warehouse',
      `on database ${quoteIdent(name)}`,
    ),
  });
  await admin.query({ text: `alter role ${role} password 'of-the-tests'` });
  const own = new URL(database.url);
  own.username = role;
  own.password = 'of-the-tests';
  url = own.href;
  writer = connect({ url, max: 1 });
});
afterAll(async () => {
  await writer.close();
  await admin.query({ text: `drop owned by ${role} cascade; drop role ${role}` });
  await admin.close();
  await database.drop();
});

it('syncs, including unknown fields', async () => {
  const sandbox = await sandboxWith(['unknownFields', 'dirty'], { rows: { clicks: 40, leads: 10, sales: 5 }, days: 3 });
  const config = configFor({ url }, sandbox);
  await syncAllDone(config);
  await expectComplete(writer, config, sandbox);
});

it.each([
  'select * from public.theirs',
  'select * from others.t',
  'create schema mine',
  'create table public.mine (n int)',
  'create role another',
  'create database another',
  `copy (select 1) to program 'true'`,
  `select pg_read_file('/etc/passwd')`,
  'alter system set fsync = off',
])('may not: %s', async (text) => {
  await expect(writer.query({ text })).rejects.toThrow(
    /permission denied|is not allowed to do this|must be|only roles/i,
  );
});

it('owns its schemas and nothing else', async () => {
  const found = await admin.query<{ nspname: string }>({
    text: `select distinct nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relowner = $1::regrole and nspname !~ '^pg_' order by 1`,
    values: [role],
  });
  expect(found.map(({ nspname }) => nspname)).toEqual(['attribution', 'tributary']);
});
