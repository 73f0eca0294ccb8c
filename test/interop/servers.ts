import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from '../support/certificates.ts';
import { freePort } from '../support/free-port.ts';
import { hasPgBouncer, startPgBouncer, startRedisServer } from '../support/servers.ts';
import {
  type Desk,
  differences,
  idsInTables,
  mustBeNone,
  openDesk,
  type Service,
  STREAMS,
  sourceOf,
  startService,
  startState,
  until,
} from './built.ts';
import { type Found, Missing, must, type Part, run, stop, withClosers } from './part.ts';
import { debianEnvironment, debianProgram, versionOf } from './tools.ts';

/** What stands beside a worker: a pooler before Postgres, a Redis with TLS, Prometheus, systemd. */

type Opened = (close: () => unknown) => void;

export const servers: Part[] = [
  {
    name: 'pgbouncer',
    checks:
      'state and warehouse through a pooler in transaction mode, the queue by state.directUrl: sync, backfill, verify, a worker',
    needs: 'pgbouncer',
    run: () => withClosers(tryPooler),
  },
  {
    name: 'redis-tls',
    checks: 'the queue in a Redis with TLS, a password and an authority of its own: a worker that syncs and stops',
    needs: 'redis-server with TLS, openssl',
    run: () => withClosers(tryRedis),
  },
  {
    name: 'promtool',
    checks:
      'promtool check metrics on /metrics of a worker that has synced; check rules on the rules of docs/monitoring',
    needs: 'promtool (prometheus of Debian)',
    run: () => withClosers(tryMetrics),
  },
  {
    name: 'systemd',
    checks: 'systemd-analyze verify on deploy/tributary.service',
    needs: 'systemd-analyze',
    run: () => withClosers(tryUnit),
  },
];

const SMALL = ['--plan', 'enterprise', '--clicks', '6000', '--leads', '900', '--sales', '400'];

async function tryPooler(opened: Opened): Promise<Found> {
  if (!hasPgBouncer) throw new Missing('no pgbouncer: apt-get install pgbouncer');
  const { service, state } = await surroundings(opened);
  const bouncer = await startPgBouncer(state.url);
  opened(bouncer.close);
  const desk = await openDesk(`${sourceOf(service)}state: { url: "${bouncer.url}", directUrl: "${state.url}" }\n`);
  opened(desk.close);
  await desk.done('sync');
  await desk.done('doctor');
  await desk.done('backfill', '--from', '60d', '--to', '39d');
  await desk.done('verify', '--from', '30d', '--to', '1d');
  await workerCatchesUp(desk, service, state.url, 'worker');
  const version = await versionOf('/usr/sbin/pgbouncer', ['--version'], /PgBouncer (\S+)/);
  return {
    versions: `PgBouncer ${version}`,
    result: 'complete, verify agrees; the worker takes arrivals and stops with 0',
  };
}

async function tryRedis(opened: Opened): Promise<Found> {
  const version = await versionOf('redis-server', ['--version'], /v=(\S+)/);
  if (!/^\d/.test(version)) throw new Missing('no redis-server: apt-get install redis-server');
  const { service, state } = await surroundings(opened);
  const authority = createAuthority();
  opened(() => rm(authority.folder, { recursive: true, force: true }));
  const { key, cert } = authority.sign();
  await writeFile(join(authority.folder, 'redis.key'), key);
  await writeFile(join(authority.folder, 'redis.pem'), cert);
  const port = await freePort();
  const redis = await startRedisServer({
    'tls-port': String(port),
    'tls-cert-file': join(authority.folder, 'redis.pem'),
    'tls-key-file': join(authority.folder, 'redis.key'),
    'tls-auth-clients': 'no',
    requirepass: 'a-password',
    'maxmemory-policy': 'noeviction',
  });
  opened(redis.close);
  const queue = `queue: { url: "rediss://:a-password@127.0.0.1:${port}" }\n`;
  const desk = await openDesk(`${sourceOf(service)}state: { url: "${state.url}" }\n${queue}`, {
    NODE_EXTRA_CA_CERTS: authority.file,
  });
  opened(desk.close);
  await desk.done('doctor');
  await workerCatchesUp(desk, service, state.url, 'worker');
  const keys = Number(await redis.command('DBSIZE'));
  if (keys === 0) throw new Error('the queue was not in Redis');
  return {
    versions: `Redis ${version}`,
    result: `complete; ${keys} keys of the queue in Redis; the worker stops with 0`,
  };
}

async function tryMetrics(opened: Opened): Promise<Found> {
  const promtool = await debianProgram('promtool', 'prometheus');
  const { service, state } = await surroundings(opened);
  const [port, token] = [await freePort(), 'a-token-that-is-long-enough'];
  const desk = await openDesk(
    `${sourceOf(service)}state: { url: "${state.url}" }\nhttp: { port: ${port}, token: ${token} }\n`,
  );
  opened(desk.close);
  let metrics = '';
  await workerCatchesUp(desk, service, state.url, 'start', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    metrics = await answer.text();
  });
  await must(promtool, ['check', 'metrics'], { env: debianEnvironment() }, metrics);
  await must(promtool, ['check', 'rules', 'docs/monitoring/alerts.yaml'], { env: debianEnvironment() });
  const samples = metrics.split('\n').filter((line) => /^\w/.test(line)).length;
  return {
    versions: `promtool ${await versionOf(promtool, ['--version'], /version (\S+)/)}`,
    result: `${samples} samples without a remark; the rules are sound`,
  };
}

async function tryUnit(opened: Opened): Promise<Found> {
  const version = await versionOf('systemd-analyze', ['--version'], /systemd (\d+)/);
  if (!/^\d/.test(version)) throw new Missing('no systemd-analyze');
  const text = readFileSync('deploy/tributary.service', 'utf8');
  const dir = await mkdtemp(join(tmpdir(), 'tributary-interop-'));
  opened(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, 'tributary.service');
  await writeFile(file, text);
  const { code, out, err } = await run('systemd-analyze', ['verify', '--man=no', file]);
  // Units of the machine that it depends on may be missing where no systemd runs; what it says of ours counts.
  const remarks = `${out}\n${err}`.split('\n').filter((line) => line.includes('tributary.service'));
  mustBeNone(remarks, 'systemd remarks');
  return { versions: `systemd ${version}`, result: `no remark on the unit (exit ${code})` };
}

async function surroundings(opened: Opened): Promise<{ service: Service; state: { url: string } }> {
  const state = await startState();
  opened(state.close);
  const service = await startService(...SMALL);
  opened(service.close);
  return { service, state };
}

/** Starts it, lets events arrive, waits until the tables have them all, and stops it by SIGTERM. */
async function workerCatchesUp(
  desk: Desk,
  service: Service,
  url: string,
  command: 'worker' | 'start',
  meanwhile = async (): Promise<void> => {},
): Promise<void> {
  const worker = desk.start(command);
  try {
    for (const stream of STREAMS) await service.arrive(stream, 50);
    const truth = await service.truth();
    await until('every event', async () => differences(await idsInTables(url), truth).length === 0, 300);
    await meanwhile();
  } finally {
    const code = await stop(worker);
    if (code !== 0) mustBeNone([`it ended with ${code}`], `${command} after SIGTERM`);
  }
}
