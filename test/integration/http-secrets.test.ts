import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { CANARIES, canaryUrl, found, plantCanaries, type Trace, tablesAsText } from '../support/canaries.ts';
import { freshPlace, type Running } from '../support/cli.ts';
import type { ApiDescription } from '../support/http-room.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { sandboxWith } from '../support/sandbox.ts';
import { until } from '../support/workers.ts';

/** Canaries go into `tributary start`; then every byte of its responses is searched. secrets.test.ts covers the commands. */

/** By default, address and e-mail stay in the tables, and an export is for those who may read them. */
const ALLOWED = { ip: [/^GET \/api\/export\//], email: [/^GET \/api\/export\//] } as const;
const TOKEN = { authorization: `Bearer ${CANARIES.httpToken}` };
const RANGE = { from: '3d', to: 'now' };

let database: TestDatabase;
let db: Database;
let sandbox: Sandbox;
let room: Running;
let url: string;
const traces: Trace[] = [];

beforeAll(async () => {
  const [place, fresh, started] = await Promise.all([
    freshPlace(),
    freshDatabase(),
    sandboxWith(['password'], { apiKey: CANARIES.apiKey, rows: { clicks: 20, leads: 8, sales: 4 }, days: 3 }),
  ]);
  [database, sandbox] = [fresh, started];
  plantCanaries(sandbox);
  db = connect({ url: database.url, max: 1 });
  const config = {
    sources: { main: { baseUrl: sandbox.baseUrl, apiKey: '$' + '{KEY}', plan: 'enterprise', requestsPerSecond: 200 } },
    sinks: { warehouse: { type: 'postgres' }, lake: { type: 'parquet', path: './lake' } },
    state: { url: '$' + '{DATABASE_URL}' },
    privacy: { salt: '$' + '{SALT}' },
    http: { port: 0, token: '$' + '{TOKEN}' },
  };
  await place.config(JSON.stringify(config));
  room = place.start(['start', '--config', 't.yaml'], {
    TRIBUTARY_LOG: 'trace',
    KEY: CANARIES.apiKey,
    DATABASE_URL: await canaryUrl(db, database.url),
    SALT: CANARIES.salt,
    TOKEN: CANARIES.httpToken,
  });
  room.child.stderr?.on('data', (chunk: string) => {
    url ??= /control room: (http:\S+)/.exec(chunk)?.[1] as string;
  });
  await room.saw('control room: ');
  await until(
    'every stream is synced',
    async () => (await json<{ runs: object[] }>('/api/runs?state=done')).runs.length >= 3,
  );
});
afterAll(async () => {
  room.child.kill('SIGTERM');
  await room.done;
  await db.query({ text: `drop owned by canary_${process.pid}` }).catch(() => {}); // It owns only tables of this database.
  await db.close();
  await database.drop();
});

/** Sends a request, and keeps the complete response: status, headers and body. */
async function said(method: string, path: string, body?: object, headers: Record<string, string> = TOKEN) {
  const response = await fetch(url + path, {
    method,
    redirect: 'manual',
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = path === '/api/events' ? await firstEvents(response) : await response.text();
  traces.push({
    place: `${method} ${path} ${response.status}`,
    text: `${JSON.stringify([...response.headers])}\n${text}`,
  });
  return { status: response.status, text };
}
const json = async <T>(path: string): Promise<T> => (await (await fetch(url + path, { headers: TOKEN })).json()) as T;

async function firstEvents({ body }: Response): Promise<string> {
  let text = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (/event: overview/.test(text) && /event: readiness/.test(text)) break;
  }
  return text;
}

/** Every GET of the description, with an id of each kind if needed, and its parameters. */
async function readablePaths(syncId: string): Promise<string[]> {
  const { paths } = await json<ApiDescription>('/api/openapi.json');
  const ids: Record<string, string | number | undefined> = {
    runs: (await json<{ runs: Array<{ id: string }> }>('/api/runs')).runs[0]?.id,
    backfills: (await json<{ backfills: Array<{ id: string }> }>('/api/backfills')).backfills[0]?.id,
    quarantine: (await json<{ records: Array<{ id: number }> }>('/api/quarantine')).records[0]?.id,
    verifications: (await json<{ verifications: Array<{ id: string }> }>('/api/verifications')).verifications[0]?.id,
    export: 'leads',
    sync: encodeURIComponent(syncId),
  };
  const values: Record<string, string> = { ...RANGE, source: 'main', stream: 'leads', sink: 'lake', format: 'ndjson' };
  return Object.entries(paths).flatMap(([path, { get }]) => {
    if (!get) return [];
    const filled = path.replace(/\{\w+\}/, () => String(ids[path.split('/')[2] ?? ''] ?? `no id for ${path}`));
    const needed = (get.parameters ?? []).filter((one) => one.in === 'query' && one.required);
    const query = new URLSearchParams(
      needed.map(({ name }): [string, string] => [name, values[name] ?? `no value for ${name}`]),
    );
    return [query.size > 0 ? `${filled}?${query}` : filled];
  });
}

it('every response is free of secrets and personal data', async () => {
  // A running and a finished job, for the paths that need one.
  sandbox.service.faults.add({ delayMs: 1000, times: 1000, match: { event: 'sales' } });
  await said('POST', '/api/backfills', { ...RANGE, force: true });
  const verifying = await said('POST', '/api/verifications', { ...RANGE, streams: ['leads'] });
  const { id } = JSON.parse(verifying.text) as { id: string };
  await until(
    'it is verified',
    async () => (await json<{ state: string }>(`/api/verifications/${id}`)).state === 'done',
  );

  const started = await said('POST', '/api/sync', { streams: ['leads'] });
  const paths = await readablePaths((JSON.parse(started.text) as { id: string }).id);
  expect(paths.filter((path) => /no (id|value) for/.test(path))).toEqual([]);
  for (const path of paths) expect([path, (await said('GET', path)).status]).toEqual([path, 200]);
  for (const path of ['/api/openapi.json', '/api/events', '/metrics', '/healthz', '/readyz', '/queues'])
    expect([path, (await said('GET', path)).status]).toEqual([path, 200]);
  for (const lane of ['sync', 'backfill'])
    for (const status of ['latest', 'active', 'waiting', 'delayed', 'failed'])
      await said('GET', `/queues/api/queues?activeQueue=${lane}&status=${status}`);
  await said('GET', '/queues/api/job-schedulers');
  const page = await said('GET', '/');
  for (const [, file = ''] of page.text.matchAll(/(?:href|src)="(\/files-[^"]+)"/g)) await said('GET', file);
});

it('so is every refusal', async () => {
  const [{ place: done = '' } = {}] = traces.filter(({ place }) => /^GET \/api\/verifications\/.+ 200$/.test(place));
  const verification = done.split(' ')[1] ?? '';
  for (const [status, method, path, body, headers] of [
    [401, 'GET', '/api/overview', undefined, {}],
    [401, 'GET', '/api/overview', undefined, { authorization: `Bearer ${CANARIES.apiKey}` }],
    [401, 'POST', '/api/session', { token: CANARIES.databasePassword }, {}],
    [400, 'GET', '/api/runs?limit=none'],
    [400, 'POST', '/api/forget', { source: 'main', customer: 'cus_canary', email: CANARIES.email }],
    [400, 'GET', `/api/export/leads?${new URLSearchParams({ ...RANGE, format: 'csv', filter: 'customer' })}`],
    [404, 'GET', '/api/nothing'],
    [404, 'GET', '/api/quarantine/999'],
    [409, 'POST', `${verification}/cancel`],
    [405, 'PUT', '/queues/api/queues/sync/pause'],
  ] as const)
    expect([path, (await said(method, path, body, headers)).status]).toEqual([path, status]);
  // The service refuses, and repeats the key: once in a response, once as the reason of a parked stream.
  const echo = `<html>Bearer ${CANARIES.apiKey} {"email":"${CANARIES.email}","password":"${CANARIES.linkPassword}"}</html>`;
  sandbox.service.faults.clear();
  sandbox.service.faults.add({ status: 401, body: echo, times: 1000 });
  expect((await said('POST', '/api/backfills/price', RANGE)).status).toBe(502);
  await said('POST', '/api/sync', { streams: ['clicks'] });
  await until('the source is parked', async () => {
    const { streams } = await json<{ streams: Array<{ parked: object | null }> }>('/api/overview');
    return streams.every(({ parked }) => parked !== null);
  });
  for (const path of ['/api/overview', '/api/runs', '/readyz', '/metrics', '/api/doctor']) await said('GET', path);
});

it('jobs in the queue of the state database hold only names and windows', async () => {
  const jobs = await db.query<{ data: unknown }>({ text: 'select data from tributary_queue.job' });
  const keys = new Set(jobs.flatMap(({ data }) => Object.keys(typeof data === 'string' ? JSON.parse(data) : data)));
  expect(jobs.length).toBeGreaterThan(0);
  expect([...keys].filter((key) => !['source', 'stream', 'backfill', 'start'].includes(key))).toEqual([]);
  const tables = await db.query<{ name: string }>({
    text: `select relname as name from pg_class where relnamespace = 'tributary_queue'::regnamespace and relkind = 'r'`,
  });
  const places = new Set(tables.map(({ name }) => `table ${name}`));
  const queue = (await tablesAsText(db)).filter(({ place }) => places.has(place));
  expect(queue.length).toBeGreaterThan(jobs.length);
  expect(found(queue, {})).toEqual([]);
});

it('no canary is found where it may not be', async () => {
  room.child.kill('SIGTERM');
  traces.push({ place: 'what it printed', text: (await room.done).text });
  expect(found(traces, ALLOWED)).toEqual([]);
  // The search works: it finds the canaries that are allowed.
  const everywhere = found(traces, {});
  expect(everywhere.filter((hit) => /^email in GET \/api\/export\/leads/.test(hit))).toHaveLength(1);
  expect(traces.length).toBeGreaterThan(50);
});
