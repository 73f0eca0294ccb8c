import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDesk, sourceOf, startService, startState } from './built.ts';
import { type Found, lastLines, must, type Part, run, withClosers } from './part.ts';
import { pythonVersions, pythonWith } from './tools.ts';

/**
 * The package in dbt/, and what `tributary schema --format dbt` prints, each in a project of somebody's own: built, tested and fresh, without
 * a package of others or a warning.
 */

const PACKAGES = ['dbt-core>=1.12,<2', 'dbt-postgres>=1.11,<2', 'dbt-duckdb>=1.11,<2', 'duckdb>=2'];

export const dbt: Part = {
  name: 'dbt',
  checks:
    'the package dbt/ on Postgres and on DuckDB over a lake, and the generated sources: build twice with every test, the second time incremental, source freshness, no deprecation',
  needs: `Python with ${PACKAGES.join(' and ')}`,
  run: () => withClosers(tryDbt),
};

const PACKAGE = fileURLToPath(new URL('../../dbt', import.meta.url));
const PROJECT = 'name: interop\nversion: "1.0"\nprofile: interop\nflags: { send_anonymous_usage_stats: false }\n';

/** An incremental model, as docs/warehouse.md has it, and one on the view of daily figures. */
const MODELS = {
  'models/recent_sales.sql': `{{ config(materialized='incremental', unique_key=['_source', 'event_id']) }}
select _source, event_id, "timestamp", sale_amount, _synced_at from {{ source('attribution', 'sales') }}
{% if is_incremental() %} where _synced_at > (select max(_synced_at) from {{ this }}) {% endif %}`,
  'models/daily.sql': "select * from {{ source('attribution', 'daily_link_performance') }}",
};

const LISTED = 'select count(*) as n from attribution.links where _listed_at is not null';

/** What somebody builds on the package. */
const REPORT = { 'models/report.sql': "select * from {{ ref('daily_performance') }} where is_complete" };

async function tryDbt(opened: (close: () => unknown) => void): Promise<Found> {
  const python = await pythonWith('dbt', PACKAGES);
  const state = await startState();
  opened(state.close);
  const service = await startService('--plan', 'enterprise', '--live', '5', '--links', '60');
  opened(service.close);
  const sinks = '  warehouse: { type: postgres, schema: attribution }\n  lake: { type: parquet, path: ./lake }\n';
  const desk = await openDesk(
    `${sourceOf(service)}    links: { every: 1d }\nsinks:\n${sinks}state: { url: "${state.url}" }\n`,
  );
  opened(desk.close);
  await desk.done('sync');
  const listed = Number(/"n":\s*"?(\d+)/.exec(await desk.done('query', '--json', LISTED))?.[1]);
  const duckdb = join(desk.dir, 'lake.duckdb');
  const views = await desk.done('schema', '--format', 'duckdb', '--lake', join(desk.dir, 'lake'));
  await must(
    python,
    ['-c', 'import duckdb, sys; duckdb.connect(sys.argv[1]).execute(sys.stdin.read())', duckdb],
    {},
    views,
  );

  const sources = { 'models/attribution/sources.yml': await desk.done('schema', '--format', 'dbt'), ...MODELS };
  const ours = { 'packages.yml': JSON.stringify({ packages: [{ local: PACKAGE }] }), ...REPORT };
  const lake = { type: 'duckdb', path: duckdb, schema: 'analytics', threads: 2 };
  const counts: string[] = [];
  for (const [files, target] of [
    [sources, postgresAt(state.url)],
    [ours, postgresAt(state.url)],
    [ours, lake],
  ] as const) {
    const project = await mkdtemp(join(tmpdir(), 'tributary-interop-dbt-'));
    opened(() => rm(project, { recursive: true, force: true }));
    const profile = JSON.stringify({ interop: { target: 'here', outputs: { here: target } } });
    const all = { ...files, 'dbt_project.yml': PROJECT, 'profiles.yml': profile };
    for (const [name, text] of Object.entries(all)) {
      await mkdir(dirname(join(project, name)), { recursive: true });
      await writeFile(join(project, name), text);
    }
    const call = (...args: string[]): Promise<string> => callDbt(python, project, args);
    await call('deps');
    // Without a lookback, so that the second run can be seen to write what is new and nothing else.
    const vars = ['--vars', '{ tributary_lookback: 0 seconds }'];
    const first = insertedClicks(await call('build', ...vars));
    await desk.done('sync');
    const built = await call('build', ...vars);
    const again = insertedClicks(built);
    if (first !== undefined && !((again ?? first) < first))
      throw new Error(`the second run wrote ${again} of ${first} clicks`);
    const dim = /dim_links .*\[SELECT (\d+) in/.exec(built)?.[1];
    if (dim !== undefined && Number(dim) !== listed)
      throw new Error(`dim_links has ${dim} links, and ${listed} were listed`);
    await call('source', 'freshness');
    const [, passed = '', idle = '0', total = ''] = /PASS=(\d+).*?(?:NO-OP=(\d+).*)?TOTAL=(\d+)/.exec(built) ?? [];
    if (passed === '' || Number(passed) + Number(idle) !== Number(total))
      throw new Error(`dbt build: ${built.trim().split('\n').at(-1)}`);
    counts.push(`${passed} (${target.type})`);
  }
  return {
    versions: await pythonVersions(python, ['dbt-core', 'dbt-postgres', 'dbt-duckdb', 'duckdb']),
    result: `${counts.join(', ')} models and tests pass, twice; the second run is incremental; coverage is fresh; no deprecation`,
  };
}

/** As Postgres reports it; DuckDB counts nothing. */
const insertedClicks = (out: string): number | undefined => {
  const [, inserted] = /fct_clicks .*\[(?:INSERT 0|SELECT) (\d+) in/.exec(out) ?? [];
  return inserted === undefined ? undefined : Number(inserted);
};

async function callDbt(python: string, project: string, args: readonly string[]): Promise<string> {
  const ran = await run(python, ['-m', 'dbt.cli.main', '--no-use-colors', '--show-all-deprecations', ...args], {
    cwd: project,
    env: { ...process.env, DBT_PROFILES_DIR: project, DO_NOT_TRACK: '1' },
  });
  const warned = ran.out.split('\n').filter((line) => /warning\]|deprecation/i.test(line));
  if (ran.code !== 0 || warned.length > 0)
    throw new Error(`dbt ${args.join(' ')}: ${warned[0] ?? ''}\n${lastLines(ran, 40)}`);
  return ran.out;
}

function postgresAt(url: string) {
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    type: 'postgres',
    // The folder of a socket, or a host.
    host: decodeURIComponent(hostname),
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    dbname: pathname.slice(1),
    schema: 'analytics',
    threads: 2,
  };
}
