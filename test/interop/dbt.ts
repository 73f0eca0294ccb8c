import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDesk, sourceOf, startService, startState } from './built.ts';
import { type Found, lastLines, type Part, run, withClosers } from './part.ts';
import { pythonVersions, pythonWith } from './tools.ts';

/**
 * The package in dbt/, and what `tributary schema --format dbt` prints, each in a project of somebody's own: built, tested and fresh, without
 * a package of others or a warning.
 */

const PACKAGES = ['dbt-core>=1.10,<1.11', 'dbt-postgres>=1.9,<2'];

export const dbt: Part = {
  name: 'dbt',
  checks:
    'the package dbt/ and the generated sources, in projects of their own: build with every test, source freshness, no deprecation',
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

/** What somebody builds on the package. */
const REPORT = { 'models/report.sql': "select * from {{ ref('daily_performance') }} where is_complete" };

async function tryDbt(opened: (close: () => unknown) => void): Promise<Found> {
  const python = await pythonWith('dbt', PACKAGES);
  const state = await startState();
  opened(state.close);
  const service = await startService('--plan', 'enterprise', '--live', '5');
  opened(service.close);
  const config = `${sourceOf(service)}sinks:\n  warehouse: { type: postgres, schema: attribution }\nstate: { url: "${state.url}" }\n`;
  const desk = await openDesk(config);
  opened(desk.close);
  await desk.done('sync');
  const sources = { 'models/attribution/sources.yml': await desk.done('schema', '--format', 'dbt'), ...MODELS };
  const projects = [sources, { 'packages.yml': JSON.stringify({ packages: [{ local: PACKAGE }] }), ...REPORT }];
  const counts: string[] = [];
  for (const files of projects) {
    const project = await mkdtemp(join(tmpdir(), 'tributary-interop-dbt-'));
    opened(() => rm(project, { recursive: true, force: true }));
    const all = { ...files, 'dbt_project.yml': PROJECT, 'profiles.yml': profileOf(state.url) };
    for (const [name, text] of Object.entries(all)) {
      await mkdir(dirname(join(project, name)), { recursive: true });
      await writeFile(join(project, name), text);
    }
    const call = (...args: string[]): Promise<string> => callDbt(python, project, args);
    await call('deps');
    await call('build');
    await desk.done('sync');
    const built = await call('build');
    await call('source', 'freshness');
    const [, passed = '', total = ''] = /PASS=(\d+).*TOTAL=(\d+)/.exec(built) ?? [];
    if (passed === '' || passed !== total) throw new Error(`dbt build: ${built.trim().split('\n').at(-1)}`);
    counts.push(`${passed} of ${total}`);
  }
  return {
    versions: await pythonVersions(python, ['dbt-core', 'dbt-postgres']),
    result: `${counts.join(' and ')} models and tests pass, twice; coverage is fresh; no deprecation`,
  };
}

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

function profileOf(url: string): string {
  const { hostname, port, username, password, pathname } = new URL(url);
  const target = {
    type: 'postgres',
    host: hostname,
    port: Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    dbname: pathname.slice(1),
    schema: 'analytics',
    threads: 2,
  };
  return JSON.stringify({ interop: { target: 'here', outputs: { here: target } } });
}
