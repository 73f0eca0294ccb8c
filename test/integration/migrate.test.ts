import { expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { quoteIdent } from '../../src/cursor/database/sql.ts';
import { type Migration, migrate } from '../../src/cursor/migrations/migrate.ts';
import { ConfigError, type Fault } from '../../src/model/errors.ts';
import { emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';

const table = (version: number, name: string): Migration => ({
  version,
  name,
  sql: (schema) => `CREATE TABLE ${schema}.${name} (id int);\n  INSERT INTO ${schema}.${name} VALUES (1)`,
});
const STEPS = [table(1, 'first'), table(2, 'second'), table(3, 'third')];

const home = await forThisFile(emptyEngine());
const { db } = home;

const tables = async (schema: string) =>
  (
    await db.query<{ name: string }>({
      text: 'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1',
      values: [schema],
    })
  ).map(({ name }) => name);

it('applies missing migrations, in order, once', async () => {
  const schema = 'odd "name"';
  expect(await migrate(db, STEPS.slice(0, 1), { schema })).toEqual([1]);
  expect(await migrate(db, STEPS.toReversed(), { schema })).toEqual([2, 3]);
  expect(await migrate(db, STEPS, { schema })).toEqual([]);
  expect(await tables(schema)).toEqual(['first', 'migrations', 'second', 'third']);
  const rows = await db.query({
    text: `SELECT version, name, applied_at FROM ${quoteIdent(schema)}.migrations ORDER BY 1`,
  });
  expect(rows).toEqual(STEPS.map(({ version, name }) => ({ version, name, applied_at: expect.any(Date) })));
});

it('is safe for concurrent processes, each with its own connections', async () => {
  const crowd = Array.from({ length: 6 }, () => connect({ url: home.url, max: 1 }));
  const done = await Promise.all(crowd.map((one) => migrate(one, STEPS, { schema: 'crowd' })));
  expect(done.flat().sort()).toEqual([1, 2, 3]);
  expect(await db.query({ text: 'SELECT count(*) FROM crowd.first' })).toEqual([{ count: 1 }]);
  await Promise.all(crowd.map((one) => one.close()));
});

it('keeps the migrations before a failing one, and nothing of that one', async () => {
  const broken = { ...table(2, 'second'), sql: (s: string) => `${table(2, 'second').sql(s)}; SELECT no_such_column` };
  await expect(migrate(db, [table(1, 'first'), broken], { schema: 'half' })).rejects.toThrow(/no_such_column/);
  expect(await tables('half')).toEqual(['first', 'migrations']);
  expect(await migrate(db, STEPS, { schema: 'half' })).toEqual([2, 3]);
});

it('refuses a migration that was changed after it was applied; layout does not count', async () => {
  await migrate(db, STEPS, { schema: 'changed' });
  const reindented = { ...table(1, 'first'), sql: (s: string) => table(1, 'first').sql(s).replace('\n  ', '\r\n') };
  expect(await migrate(db, [reindented, ...STEPS.slice(1)], { schema: 'changed' })).toEqual([]);
  const edited = { ...table(1, 'first'), sql: (s: string) => `${table(1, 'first').sql(s)}, (2)` };
  const error: Fault = await migrate(db, [edited, ...STEPS.slice(1)], { schema: 'changed' }).catch((fault) => fault);
  expect(error).toBeInstanceOf(ConfigError);
  expect(error.describe()).toMatch(/another migration 1 \(first\)[\s\S]*nothing was changed/);
});

it('refuses a database of a newer tributary', async () => {
  await migrate(db, STEPS, { schema: 'newer' });
  const error: Fault = await migrate(db, STEPS.slice(0, 2), { schema: 'newer' }).catch((fault) => fault);
  expect(error).toBeInstanceOf(ConfigError);
  expect(error.describe()).toMatch(/written by a newer tributary, which has migration 3 \(third\)[\s\S]*upgrade/);
});

it('works for a user who owns the schema but may create none', async () => {
  await db.query({ text: `CREATE ROLE tenant LOGIN PASSWORD 'tenant'` });
  await db.query({ text: 'CREATE SCHEMA given AUTHORIZATION tenant' });
  const url = Object.assign(new URL(home.url), { username: 'tenant', password: 'tenant' });
  const tenant = connect({ url: url.href });
  expect(await migrate(tenant, STEPS, { schema: 'given' })).toEqual([1, 2, 3]);
  await expect(migrate(tenant, STEPS, { schema: 'taken' })).rejects.toThrow(/user "tenant" is not allowed to do this/);
  await tenant.close();
  await db.query({ text: 'DROP OWNED BY tenant; DROP ROLE tenant' });
});
