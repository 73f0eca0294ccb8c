import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from '../support/certificates.ts';
import { globOf, queryDuckdb } from '../support/lake-readers.ts';
import {
  differences,
  idsInTables,
  mustBeNone,
  STREAMS,
  sourceOf,
  startService,
  startState,
  until,
  withDatabase,
} from './built.ts';
import { dockerEngine, type Engine, IMAGE, makeServers } from './docker-engine.ts';
import { type Found, Missing, must, type Part, run, withClosers } from './part.ts';
import { goProgramOfSource } from './tools.ts';

/** The image alone, with less memory than the recipes grant, and among the servers of docker/compose.yaml. */

const PORT = 7070;
const TOKEN = 'a-token-that-is-long-enough';
/** Half of what deploy/kubernetes.yaml and the chart grant. */
const MEMORY = '512m';
const LOCKED = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges:true'];

type Opened = (close: () => unknown) => void;

const needs = 'a Docker engine; or root on Debian with docker.io, containerd, runc, iptables and debootstrap';
export const containers: Part[] = [
  {
    name: 'image',
    checks:
      'docker/Dockerfile built; run read-only as user 1000 without rights: healthy, complete, SIGTERM ends it with 0',
    needs,
    run: () => withClosers(tryImage),
  },
  {
    name: 'limits',
    checks: `the image with ${MEMORY} of memory and no swap: a first sync of a million rows into tables and Parquet files`,
    needs,
    run: () => withClosers(tryLimits),
  },
  {
    name: 'compose',
    checks:
      'docker/compose.yaml brought up with Postgres and Redis: doctor, healthy, complete, status, stopped, up again',
    needs: `${needs}; Docker Compose`,
    run: () => withClosers(tryCompose),
  },
];

async function tryImage(opened: Opened): Promise<Found> {
  await portIsFree();
  const engine = await dockerEngine();
  const [about] = JSON.parse(await engine.docker('inspect', IMAGE)) as Array<{
    Size: number;
    Config: { User: string; Labels: Record<string, string> };
  }>;
  if (about?.Config.User !== '1000:1000') throw new Error(`the image's user is ${about?.Config.User}`);
  if (about.Config.Labels['org.opencontainers.image.title'] !== 'tributary') throw new Error('the image has no title');
  const { worker, rows } = await startWorker(opened, engine, '', ['--plan', 'enterprise'], []);
  await worker.isComplete();
  await worker.ends();
  return {
    versions: engine.version,
    result: `${Math.round(about.Size / 1e6)} MB; doctor content, healthy, ${rows} rows complete, exit 0`,
  };
}

async function tryLimits(opened: Opened): Promise<Found> {
  await portIsFree();
  const engine = await dockerEngine();
  const lake = await folderFor(opened);
  await chmod(lake, 0o777);
  const sinks = `sinks:
  warehouse: { type: postgres, schema: attribution }
  lake: { type: parquet, path: ./data/lake }
`;
  const history = ['--clicks', '1000000', '--leads', '20000', '--sales', '10000', '--days', '35'];
  const flags = ['--memory', MEMORY, '--memory-swap', MEMORY, '--volume', `${lake}:/tributary/data`];
  const { worker, rows, total } = await startWorker(opened, engine, sinks, ['--plan', 'enterprise', ...history], flags);
  await worker.isComplete(3600);
  const counted = STREAMS.map(
    (stream) => `(select count(distinct event_id) as rows from ${globOf(join(lake, 'lake'), stream)})`,
  );
  const inLake = async () =>
    Number((await queryDuckdb(`select sum(rows)::int as rows from (${counted.join(' union all ')})`))[0]?.rows);
  await until('the lake', async () => (await inLake().catch(() => 0)) === total, 1200);
  const peak = /VmHWM:\s+(\d+) kB/.exec(await engine.docker('exec', worker.id, 'cat', '/proc/1/status'))?.[1];
  await worker.ends();
  return {
    versions: engine.version,
    result: `${rows} rows complete, at most ${Math.round(Number(peak) / 1024)} MB resident, exit 0`,
  };
}

/** A worker in a container, on the ports of this machine: the service and the state are ours. */
async function startWorker(
  opened: Opened,
  engine: Engine,
  sinks: string,
  history: string[],
  flags: string[],
): Promise<{
  worker: { id: string; isComplete(seconds?: number): Promise<void>; ends(): Promise<void> };
  rows: string;
  total: number;
}> {
  const { docker } = engine;
  const state = await startState();
  opened(state.close);
  const service = await startService(...history);
  opened(service.close);
  const folder = await folderFor(opened);
  const config = `${sourceOf(service)}${sinks}state: { url: "${state.url}" }\nhttp: { host: 127.0.0.1, port: ${PORT}, token: ${TOKEN} }\n`;
  await writeFile(join(folder, 'tributary.yaml'), config, { mode: 0o644 });
  const mount = `${join(folder, 'tributary.yaml')}:/tributary/config/tributary.yaml:ro`;
  const all = ['--network', 'host', ...LOCKED, ...flags, '--volume', mount];
  await docker('run', '--rm', ...all, IMAGE, 'doctor');
  const id = (await docker('run', '--detach', ...all, IMAGE)).trim();
  opened(() => docker('rm', '--force', id));
  const inspect = async (): Promise<{
    Health?: { Status: string };
    ExitCode: number;
    OOMKilled: boolean;
    Running: boolean;
  }> => JSON.parse(await docker('inspect', '--format', '{{json .State}}', id));
  await until('health', async () => (await inspect()).Health?.Status === 'healthy', 180);
  const truth = await service.truth();
  const total = STREAMS.reduce((sum, stream) => sum + truth[stream].length, 0);
  return {
    total,
    rows: total.toLocaleString('en'),
    worker: {
      id,
      async isComplete(seconds = 300) {
        await until(
          'every event',
          async () => (await rowsIn(state.url)) >= total || !(await inspect()).Running,
          seconds,
        );
        if ((await inspect()).OOMKilled) throw new Error('it was killed for its memory');
        mustBeNone(differences(await idsInTables(state.url), truth), 'tables');
      },
      async ends() {
        await docker('stop', '--time', '30', id);
        const { ExitCode } = await inspect();
        if (ExitCode !== 0)
          throw new Error(`after SIGTERM it ended with ${ExitCode}:\n${await docker('logs', '--tail', '20', id)}`);
      },
    },
  };
}

async function rowsIn(url: string): Promise<number> {
  const sql = STREAMS.map((stream) => `(select count(*) from attribution.${stream})`).join(' + ');
  return withDatabase(url, (db) => db.query<{ rows: string }>({ text: `select ${sql} as rows` }))
    .then(([row]) => Number(row?.rows))
    .catch(() => 0); // The tables are not there yet.
}

async function tryCompose(opened: Opened): Promise<Found> {
  await portIsFree();
  const engine = await dockerEngine();
  const program = await composeProgram(engine);
  if (engine.isOurs) await makeServers(engine);
  const folder = await folderFor(opened);
  await chmod(folder, 0o755);
  const authority = createAuthority();
  opened(() => rm(authority.folder, { recursive: true, force: true }));
  const { key, cert } = authority.sign({ host: 'DNS:service' });
  const files = {
    '.env': ENVIRONMENT,
    'compose.yaml': OVERRIDE.replaceAll('FOLDER', folder),
    'service.mjs': SERVICE,
    'service.key': key,
    'service.pem': cert,
    'authority.pem': await readFile(authority.file),
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content, { mode: 0o644 });
  const [command = '', ...first] = program;
  const given = ['--project-name', 'tributary-interop', '--project-directory', 'docker'];
  const from = [
    '--env-file',
    join(folder, '.env'),
    '--file',
    'docker/compose.yaml',
    '--file',
    join(folder, 'compose.yaml'),
  ];
  const compose = (...args: string[]): Promise<string> =>
    must(command, [...first, ...given, ...from, ...args], { env: engine.env });

  opened(() => compose('down', '--volumes', '--timeout', '5'));
  await compose('up', '--detach', '--wait', 'service', 'postgres', 'redis');
  await compose('run', '--rm', '-T', 'tributary', 'doctor');
  await compose('up', '--detach', '--wait', 'tributary');
  const ask = (path: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${PORT}${path}`, { headers: { authorization: `Bearer ${TOKEN}` } });
  if (!(await ask('/readyz')).ok) throw new Error('it is healthy, but not ready');

  const wanted = Object.entries(JSON.parse(await compose('exec', '-T', 'service', 'node', '-e', TRUTH)) as object)
    .map(([stream, ids]) => `${stream} ${ids}`)
    .join(', ');
  const held = async (): Promise<string> => {
    const counts = STREAMS.map(
      (stream) => `'${stream} ' || (select count(distinct event_id) from attribution.${stream})`,
    );
    const sql = `select ${counts.join(" || ', ' || ")}`;
    const client = [
      'psql',
      '--host=127.0.0.1',
      '--username=tributary',
      '--tuples-only',
      '--no-align',
      '--command',
      sql,
    ];
    const { out } = await run(
      command,
      [...first, ...given, ...from, 'exec', '-T', '--env', `PGPASSWORD=${PASSWORD}`, 'postgres', ...client],
      { env: engine.env },
    );
    return out.trim();
  };
  await until('every event', async () => (await held()) === wanted, 300);
  const status = await compose('run', '--rm', '-T', 'tributary', 'status');
  if (!status.includes('clicks')) throw new Error(`status says:\n${status}`);
  await compose('stop', '--timeout', '30');
  const ended = await compose('ps', '--all', '--format', '{{.Service}} {{.ExitCode}}');
  if (!/^tributary 0$/m.test(ended)) throw new Error(`after stop: ${ended}`);
  await compose('up', '--detach', '--wait');
  if ((await held()) !== wanted) throw new Error(`after a restart there are ${await held()}`);
  const version = (await must(command, [...first, 'version', '--short'], { env: engine.env })).trim();
  const servers = await compose('exec', '-T', 'postgres', 'sh', '-c', 'psql --version');
  return {
    versions: `Compose ${version}, ${engine.version}, PostgreSQL ${/[\d.]+/.exec(servers)?.[0]}`,
    result: `doctor content; healthy and ready; ${wanted}; exit 0 on stop; the same after a restart`,
  };
}

/** The plugin where there is one, else the program that Go builds. */
async function composeProgram({ env }: Engine): Promise<string[]> {
  if ((await run('docker', ['compose', 'version'], { env })).code === 0) return ['docker', 'compose'];
  return [await goProgramOfSource('docker-compose', 'github.com/docker/compose/v2@latest', 'cmd')];
}

const PASSWORD = 'interop';
const ENVIRONMENT = `TRIBUTARY_BASE_URL=https://service:8443
TRIBUTARY_API_KEY=sandbox-key
TRIBUTARY_TOKEN=${TOKEN}
POSTGRES_PASSWORD=${PASSWORD}
`;

/** A service beside the others, by TLS as any that is not on the same machine: a key is not sent in the clear. */
const OVERRIDE = `services:
  tributary:
    image: ${IMAGE}
    environment: { NODE_EXTRA_CA_CERTS: /service/authority.pem }
    volumes: ['FOLDER:/service:ro']
  service:
    image: ${IMAGE}
    entrypoint: [node, /service/service.mjs]
    volumes: ['FOLDER:/service:ro']
    healthcheck: { test: [CMD, node, -e, "require('net').connect(8443, '127.0.0.1', () => process.exit(0))"], interval: 2s, retries: 30 }
`;
const SERVICE = `import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createServer } from 'node:tls';
spawn(process.execPath, ['/app/dist/cli/main.js', 'sandbox', '--port', '8787'], { stdio: 'inherit' });
const [key, cert] = ['key', 'pem'].map((end) => readFileSync('/service/service.' + end));
createServer({ key, cert }, (socket) => {
  const inner = connect(8787, '127.0.0.1');
  for (const side of [socket, inner]) side.on('error', () => { socket.destroy(); inner.destroy(); });
  socket.pipe(inner).pipe(socket);
}).listen(8443);
process.on('SIGTERM', () => process.exit(0));
`;
const TRUTH = `fetch('http://127.0.0.1:8787/_sandbox/truth', { headers: { authorization: 'Bearer sandbox-key' } })
  .then((answer) => answer.json())
  .then((truth) => console.log(JSON.stringify(Object.fromEntries(Object.entries(truth).map(([k, v]) => [k, v.length])))))`;

/** The image's health check asks this port, and nothing stands between it and ours. */
async function portIsFree(): Promise<void> {
  const isTaken = await new Promise<boolean>((resolve) => {
    const socket = connect(PORT, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
    socket.on('close', () => {});
    setTimeout(() => socket.destroy(), 500).unref();
  });
  if (isTaken) throw new Missing(`port ${PORT} is taken, and the image's health check asks it`);
}

async function folderFor(opened: Opened): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tributary-interop-'));
  opened(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
