import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { connect } from '../../src/cursor/database/index.ts';
import { MIGRATIONS } from '../../src/cursor/migrations/index.ts';
import { migrate } from '../../src/cursor/migrations/migrate.ts';
import { STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { freshPlace, MAIN, startProcess } from '../support/cli.ts';
import { freshDatabase } from '../support/postgres.ts';

const place = await freshPlace();

describe('help', () => {
  it('without arguments lists the commands, as an error', async () => {
    const { code, stdout, stderr } = await place.run([]);
    expect([code, stdout]).toEqual([2, '']);
    for (const command of ['demo', 'sync', 'status', 'maintain'])
      expect(stderr).toMatch(new RegExp(`^  ${command} `, 'm'));
  });

  it('--version prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(await place.run(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
  });
});

describe('mistyped input', () => {
  it.each([
    [['sync', '--sorce', 'x'], "unknown option '--sorce'\n(Did you mean --source?)\nnext: see tributary sync --help\n"],
    [['sync', '--config'], "option '--config <FILE>' argument missing\nnext: see tributary sync --help\n"],
    [
      ['demo', 'now'],
      "too many arguments for 'demo'. Expected 0 arguments but got 1.\nnext: see tributary demo --help\n",
    ],
    [['sync', 'clics', 'sale'], 'unknown stream: clics, sale\nnext: use clicks, leads, sales, links\n'],
    [
      ['schema', '--format', 'xml'],
      "option '--format <FORMAT>' argument 'xml' is invalid. Allowed choices are sql, markdown, json, dbt, duckdb.\nnext: see tributary schema --help\n",
    ],
  ])('%j', async (args, message) => {
    expect(await place.call(args)).toMatchObject({ code: 2, stdout: '', stderr: message });
  });

  it('a log level', async () => {
    const { code, stdout, stderr } = await place.run(['status'], { TRIBUTARY_LOG: 'loud' });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toBe(
      'TRIBUTARY_LOG is not a log level\nnext: use one of: trace, debug, info, warn, error, fatal, silent\n',
    );
  });

  it('leaves nothing behind', async () => {
    expect(await place.files()).toEqual({ dir: [], home: [], tmp: [] });
  });
});

describe('tributary schema', () => {
  const schema = async (format: string): Promise<string> => {
    const { code, stdout, stderr } = await place.call(['schema', '--format', format]);
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };

  it('sql runs on a real Postgres, twice, and creates the tables with their comments, to which prepare adds nothing', async () => {
    const sql = await schema('sql');
    const database = await freshDatabase();
    const db = connect({ url: database.url, max: 1 });
    await db.query({ text: sql });
    await db.query({ text: sql });
    const found = await db.query({
      text: `select c.relname as table, count(a.attnum) > 60 as many, bool_and(col_description(c.oid, a.attnum) <> '') as described
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
        where c.relnamespace = 'attribution'::regnamespace and c.relkind in ('r', 'v') group by 1 order by 1`,
    });
    expect(found).toEqual(
      ['_days', 'clicks', 'customers', 'leads', 'links', 'sales'].map((table) => ({
        table,
        many: STREAM_NAMES.some((name) => name === table),
        described: true,
      })),
    );
    const shape = {
      text: `select attrelid::regclass::text as t, attnum, xmin::text from pg_attribute
        where attrelid::regclass::text ~ '^attribution[.]' order by 1, 2`,
    };
    await migrate(db, MIGRATIONS, { schema: 'tributary' });
    // Once cursors exist, it creates the views too.
    await db.query({ text: sql });
    const before = await db.query(shape);
    expect(before).toContainEqual(expect.objectContaining({ t: 'attribution.coverage' }));
    const sink = createPostgresSink({ name: 'warehouse', db, schema: 'attribution', state: db });
    for (const name of STREAM_NAMES) await sink.prepare(STREAMS[name]);
    expect(await db.query(shape)).toEqual(before);
    await db.close();
    await database.drop();
  });

  it('json names the same columns, and --json has them in its envelope', async () => {
    const text = await schema('json');
    const { tables } = JSON.parse(text) as {
      tables: Array<{ name: string; key: string[]; columns: Array<{ name: string }> }>;
    };
    expect(tables.map(({ name }) => name)).toEqual([...STREAM_NAMES, 'links', 'customers']);
    for (const { name, key, columns } of tables) {
      const names = columns.map((column) => column.name);
      expect(names).toEqual(expect.arrayContaining(key));
      if (STREAM_NAMES.some((stream) => stream === name)) {
        expect(names).toEqual(expect.arrayContaining(['timestamp', 'click_id', 'link_id', '_missing_since']));
      }
    }
    const { command, tables: same } = JSON.parse((await place.run(['schema', '--json'])).stdout) as Record<
      string,
      unknown
    >;
    expect({ command, same }).toEqual({ command: 'schema', same: tables });
  });

  it('dbt is YAML with sources, with tests on the keys and freshness on coverage', async () => {
    const dbt = parse(await schema('dbt')) as {
      sources: Array<{
        name: string;
        tables: Array<{
          name: string;
          config?: { loaded_at_field: string; freshness: { error_after: { count: number; period: string } } };
          data_tests?: object[];
          columns: Array<{ name: string; data_tests?: string[] }>;
        }>;
      }>;
    };
    expect(dbt.sources.map(({ name }) => name)).toEqual(['attribution']);
    const tables = dbt.sources[0]?.tables ?? [];
    const views = tables.slice(5);
    expect(views.map(({ name }) => name)).toEqual(expect.arrayContaining(['coverage', 'complete_days', 'events']));
    const keys = { links: 'link_id', customers: 'customer_id' } as Record<string, string>;
    expect(tables.slice(0, 5).map(({ name }) => name)).toEqual([...STREAM_NAMES, ...Object.keys(keys)]);
    // In dbt's form from 1.10 on, with a built-in test: a project without packages can build it.
    for (const { name, data_tests, columns } of tables.slice(0, 5)) {
      const key = ['_source', keys[name] ?? 'event_id'];
      const unique = { name: `${name}_have_one_row_per_key`, arguments: { column_name: key.join(" || '/' || ") } };
      expect(data_tests).toEqual([{ unique }]);
      const required = columns.filter((column) => column.data_tests?.includes('not_null')).map((column) => column.name);
      expect(required).toEqual(expect.arrayContaining(key));
    }
    // Freshness of what is certified: the newest row does not show what is missing before it.
    expect(tables.filter(({ config }) => config?.freshness).map(({ name }) => name)).toEqual(['coverage']);
    const fresh = { loaded_at_field: 'complete_through', freshness: { error_after: { count: 6 } } };
    expect(views[0]).toMatchObject({ config: fresh });
    expect(views[0]?.columns.map(({ name }) => name)).toContain('complete_through');
  });
});

describe('a reader that closes its end', () => {
  const shell = (script: string) =>
    startProcess('/bin/sh', ['-c', script], place.dir, { PATH: process.env.PATH ?? '', NODE: process.execPath, MAIN })
      .done;

  it('| head -1 is no error', async () => {
    const { stdout, stderr } = await shell('{ "$NODE" "$MAIN" schema; echo "code $?" >&2; } | head -1');
    expect(stdout).toBe('create schema if not exists attribution;\n');
    expect(stderr).toBe('code 0\n');
    // Here it closes before the first line is written.
    expect((await shell('{ "$NODE" "$MAIN" schema; echo "code $?" >&2; } | true')).stderr).toBe('code 0\n');
  });

  it('is no error while messages are printed either', async () => {
    const { stdout } = await shell(
      '{ "$NODE" "$MAIN" sandbox --trait x 2>&1; echo "code $?" >code; } | true; sleep 1; cat code',
    );
    expect(stdout).toBe('code 2\n');
  });
});
