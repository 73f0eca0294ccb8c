import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  differences,
  idsInTables,
  MAIN,
  openDesk,
  type Service,
  sourceOf,
  startService,
  startState,
  until,
} from './built.ts';
import { type Found, lastLines, type Part, type Ran, run, stop, withClosers } from './part.ts';
import { pythonVersions, pythonWith } from './tools.ts';

/** The recipes in deploy/orchestrators, as they are: a run that brings the tables up to date, and one that the service refuses. */
const recipe = (name: string): string => fileURLToPath(new URL(`../../deploy/orchestrators/${name}`, import.meta.url));
const TOKEN = 'a-token-of-the-interop-run';
const HOUR_MS = 3_600_000;

export const orchestrators: readonly Part[] = [
  {
    name: 'airflow',
    checks:
      'the recipe airflow_dag.py: sync, wait until the hour is complete, go on; a refused key fails the run with its reason',
    needs: 'Python with apache-airflow>=3,<4',
    run: () => withClosers(tryAirflow),
  },
  {
    name: 'dagster',
    checks:
      'the recipe dagster_assets.py: an asset by POST /api/sync of a worker; a refused key fails with its message',
    needs: 'Python with dagster>=1.10,<2',
    run: () => withClosers(tryDagster),
  },
];

type Opened = (close: () => unknown) => void;

async function openPlace(opened: Opened, rest = '') {
  const state = await startState();
  opened(state.close);
  const service = await startService('--plan', 'enterprise');
  opened(service.close);
  const sinks = 'sinks:\n  warehouse: { type: postgres, schema: attribution }\n';
  const desk = await openDesk(`${sourceOf(service)}${sinks}state: { url: "${state.url}" }\n${rest}`);
  opened(desk.close);
  return { state, service, desk };
}

async function isUpToDate(url: string, service: Service): Promise<void> {
  const wrong = differences(await idsInTables(url), await service.truth());
  if (wrong.length > 0) throw new Error(wrong.join('\n'));
}

function expectFailure(ran: Ran, message: RegExp): void {
  if (ran.code === 0) throw new Error(`a refused key went unnoticed:\n${lastLines(ran, 30)}`);
  if (!message.test(`${ran.out}${ran.err}`)) throw new Error(`it fails without saying why:\n${lastLines(ran, 30)}`);
}

async function tryAirflow(opened: Opened): Promise<Found> {
  const python = await pythonWith('airflow', ['apache-airflow>=3,<4']);
  const { state, service, desk } = await openPlace(opened);
  // The command as it is installed.
  await writeFile(join(desk.dir, 'tributary'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`);
  await chmod(join(desk.dir, 'tributary'), 0o755);
  const env = {
    ...process.env,
    PATH: [desk.dir, process.env.PATH].join(delimiter),
    AIRFLOW_HOME: join(desk.dir, 'airflow'),
    AIRFLOW__CORE__LOAD_EXAMPLES: 'false',
    TRIBUTARY_CONFIG: join(desk.dir, 'config', 'tributary.yaml'),
  };
  const airflow = (...args: string[]): Promise<Ran> => run(python, ['-m', 'airflow', ...args], { cwd: desk.dir, env });
  await mkdir(join(env.AIRFLOW_HOME, 'dags'), { recursive: true });
  await copyFile(recipe('airflow_dag.py'), join(env.AIRFLOW_HOME, 'dags', 'airflow_dag.py'));
  const ready = await airflow('db', 'migrate');
  if (ready.code !== 0) throw new Error(`airflow db migrate: ${lastLines(ready, 30)}`);
  const at = new Date(Date.now() - 2 * HOUR_MS).toISOString().slice(0, 19);
  const test = (): Promise<Ran> => airflow('dags', 'test', 'tributary_sync', at);
  const ran = await test();
  if (ran.code !== 0 || !/state=success|state:success/.test(`${ran.out}${ran.err}`))
    throw new Error(`airflow dags test: ${lastLines(ran, 40)}`);
  await isUpToDate(state.url, service);
  await service.fail(401);
  expectFailure(await test(), /refused|401/);
  return {
    versions: await pythonVersions(python, ['apache-airflow']),
    result: 'three tasks succeed and the tables are complete; a refused key fails the run and names the source',
  };
}

async function tryDagster(opened: Opened): Promise<Found> {
  const python = await pythonWith('dagster', ['dagster>=1.10,<2']);
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const http = `http: { host: 127.0.0.1, port: ${port}, token: "${TOKEN}" }\n`;
  const { state, service, desk } = await openPlace(opened, http);
  const worker = desk.start('start');
  opened(() => stop(worker));
  const url = `http://127.0.0.1:${port}`;
  await until('the worker', () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  const env = { ...process.env, DAGSTER_HOME: desk.dir, TRIBUTARY_URL: url, TRIBUTARY_TOKEN: TOKEN };
  const file = recipe('dagster_assets.py');
  const materialize = (): Promise<Ran> =>
    run(python, ['-m', 'dagster', 'asset', 'materialize', '-f', file, '--select', 'attribution_events'], {
      cwd: desk.dir,
      env,
    });
  const ran = await materialize();
  if (ran.code !== 0) throw new Error(`dagster asset materialize: ${lastLines(ran, 40)}`);
  await isUpToDate(state.url, service);
  await service.fail(401);
  expectFailure(await materialize(), /refused|401/);
  return {
    versions: await pythonVersions(python, ['dagster']),
    result: 'the asset is made and the tables are complete; a refused key fails it and names the source',
  };
}
