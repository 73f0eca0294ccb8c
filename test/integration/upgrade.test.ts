import { expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { MIGRATIONS } from '../../src/cursor/migrations/index.ts';
import { migrate } from '../../src/cursor/migrations/migrate.ts';
import { configFor, storedIds, syncAllDone } from '../support/engine.ts';
import { freshDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { EARLIER_MIGRATIONS } from './earlier-migrations/index.ts';
import { DROPPED, ROWS_SINCE_VERSION } from './earlier-state.ts';

/** A state of any earlier version is migrated with all its rows, and the next sync continues from there. */

const DAY_MS = 86_400_000;
const schema = 'tributary';
/** Every migration of any version, the current ones last. */
const STEPS = [...EARLIER_MIGRATIONS, ...MIGRATIONS];
const VERSIONS = STEPS.map(({ version }) => version);

type Held = Record<string, object[]>;

/** Every row of every table, as JSON. */
async function held(db: Database): Promise<Held> {
  const tables = await db.query<{ name: string }>({
    text: `select table_name as name from information_schema.tables
      where table_schema = $1 and table_type = 'BASE TABLE' and table_name <> 'migrations' order by 1`,
    values: [schema],
  });
  const all: Held = {};
  for (const { name } of tables) {
    const rows = await db.query<{ row: object }>({ text: `select to_jsonb(t) as row from ${schema}.${name} t` });
    all[name] = rows.map(({ row }) => row);
  }
  return all;
}

/** Columns in order, with types, defaults and comments; constraints, indexes, functions and options of the tables. */
async function definitions(db: Database, of: string): Promise<string[]> {
  const found = await db.query<{ what: string }>({
    text: `
      with t as (select c.* from pg_class c where relnamespace = $1::regnamespace and relkind = 'r')
      select concat_ws(' ', t.relname, row_number() over (partition by t.oid order by attnum), attname, format_type(atttypid, atttypmod),
        attnotnull, attidentity, pg_get_expr(adbin, adrelid), col_description(t.oid, attnum)) as what
      from t join pg_attribute a on attrelid = t.oid and attnum > 0 and not attisdropped
      left join pg_attrdef d on adrelid = t.oid and adnum = attnum
      union all select concat_ws(' ', relname, reloptions, obj_description(oid, 'pg_class')) from t
      union all select concat_ws(' ', t.relname, conname, pg_get_constraintdef(k.oid)) from t join pg_constraint k on conrelid = t.oid
      union all select pg_get_indexdef(indexrelid) from t join pg_index on indrelid = t.oid
      union all select pg_get_functiondef(oid) || obj_description(oid, 'pg_proc') from pg_proc where pronamespace = $1::regnamespace
      order by 1`,
    values: [of],
  });
  return found.map(({ what }) => what.replaceAll(`${of}.`, ''));
}

/** Of a budget only the key and its rate: the time of the next request is transient. */
function lasting(table: string, row: object): object {
  const { key_hash, per_second } = row as Record<string, unknown>;
  return table === 'budgets' ? { key_hash, per_second } : row;
}

async function fill(db: Database, upTo: number): Promise<void> {
  const gone = Object.keys(DROPPED).filter((table) => (DROPPED[table] ?? upTo) <= upTo);
  const statements = VERSIONS.filter((version) => version <= upTo)
    .flatMap((version) => ROWS_SINCE_VERSION[version] ?? [])
    .filter((text) => !gone.some((table) => text.startsWith(`insert into ${table} `)));
  await db.transaction(async (tx) => {
    await tx.query({ text: `set local search_path to ${schema}` });
    for (const text of statements) await tx.query({ text });
  });
}

it.each(VERSIONS.map((version) => [version]))('from version %i on', async (version) => {
  const home = await freshDatabase();
  const db = connect({ url: home.url, max: 2 });
  try {
    await migrate(db, STEPS.slice(0, VERSIONS.indexOf(version) + 1), { schema });
    await fill(db, version);
    const before = await held(db);
    expect(
      Object.keys(before).filter((table) => before[table]?.length === 0),
      'tables without a row in test/integration/earlier-state.ts',
    ).toEqual([]);

    const due = MIGRATIONS.map((step) => step.version).filter((later) => later > version);
    expect(await migrate(db, MIGRATIONS, { schema })).toEqual(due);
    await migrate(db, MIGRATIONS, { schema: 'fresh' });
    expect(await definitions(db, schema)).toEqual(await definitions(db, 'fresh'));
    await db.query({ text: 'drop schema fresh cascade' });
    const after = await held(db);
    for (const [table, rows] of Object.entries(before)) {
      if (table in DROPPED) continue;
      expect(after[table], table).toEqual(rows.map((row) => expect.objectContaining(lasting(table, row))));
    }

    const sandbox = await smallSandbox({ rows: { clicks: 60, leads: 30, sales: 30 } });
    const newer = sandbox.service.arrive('clicks', 9, { from: Date.now() - 4 * DAY_MS, to: Date.now() - DAY_MS });
    const config = configFor({ url: home.url }, sandbox, { name: 'kept' });
    await syncAllDone(config);
    expect(await storedIds(db, config, 'clicks')).toEqual(expect.arrayContaining(newer));
    // It continued from the old watermark: the window that the earlier version certified is still the first one.
    const [ledger] = await db.query<{ first: string; moved: boolean }>({
      text: `select (select w.run_id from tributary.windows w where w.source = 'kept' and w.stream = 'clicks'
          order by start_at limit 1) as first, complete_through > now() - interval '1 day' as moved
        from tributary.cursors where source = 'kept' and stream = 'clicks'`,
    });
    expect(ledger).toEqual({ first: '20261114T120000-00000001', moved: true });
  } finally {
    await db.close();
    await home.drop();
  }
});
