import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkService } from '../../src/api/check-service.ts';
import { withSinks, withSyncApp } from '../../src/app/index.ts';
import { scheduledStreamsOf } from '../../src/app/worker.ts';
import type { Config } from '../../src/config/index.ts';
import { keyHashOf } from '../../src/cursor/budgets.ts';
import { holderOf } from '../../src/cursor/database/holders.ts';
import { writeSchedules } from '../../src/cursor/schedules.ts';
import { findTroubles } from '../../src/jobs/alerts.ts';
import { runDueStream } from '../../src/jobs/run-job.ts';
import { byStreamKey, TIMINGS } from '../../src/jobs/schedule.ts';
import type { SyncName } from '../../src/model/streams.ts';
import type { FaultRule } from '../../src/sandbox/requests.ts';
import { printSchema } from '../../src/sinks/schema-formats.ts';
import { forget } from '../../src/sync/maintain/forget.ts';
import { readStatus } from '../../src/sync/status.ts';
import { type Outcome, syncAll } from '../../src/sync/sync-stream.ts';
import { configFor, type Engine, openEngine, type SourceOptions, sourceOf } from '../support/engine.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { sandboxWith, smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';

/** All links, clicked or not: a snapshot in every sink. */

let engine: Engine;
let elsewhere: TestDatabase;
let folder: string;
beforeAll(async () => {
  [engine, elsewhere] = await Promise.all([openEngine(), freshDatabase()]);
  folder = await mkdtemp(join(tmpdir(), 'tributary-links-'));
});
afterAll(async () => {
  await engine.close();
  await elsewhere.drop();
  await rm(folder, { recursive: true });
});

const DAY = 86_400_000;

function configWith(sandbox: Sandbox, options: SourceOptions = {}): Config {
  const config = configFor(engine, sandbox, options);
  const source = config.sources[sourceOf(config)];
  if (source) source.links = { every: DAY, history: true, maxLag: 2 * DAY };
  return config;
}

const sync = (config: Config, streams: readonly SyncName[] = ['links']): Promise<Outcome[]> =>
  withSyncApp({ config, log: silentLog, choice: { streams } }, ({ state, sinks, jobs, links }) =>
    syncAll(
      { state, sinks, log: silentLog, signal: new AbortController().signal, holder: holderOf('test'), onProgress() {} },
      [...jobs, ...links],
    ),
  );

async function syncDone(config: Config, streams?: readonly SyncName[]): Promise<Outcome[]> {
  const outcomes = await sync(config, streams);
  expect(outcomes.map(({ report, fault }) => fault?.describe() ?? report?.note ?? report?.state)).toEqual(
    outcomes.map(() => 'done'),
  );
  return outcomes;
}

type LinkRow = Record<string, unknown> & { link_id: string; _missing_since: Date | null; link_title: string | null };

function serviceOf(config: Config) {
  const source = config.sources[sourceOf(config)];
  if (!source) throw new Error('a config has a source');
  return { name: 'main', stream: 'clicks', ...source } as const;
}

const linksOf = (config: Config, where = 'true'): Promise<LinkRow[]> =>
  engine.db.query<LinkRow>({
    text: `select * from attribution.links where _source = $1 and ${where} order by link_id`,
    values: [sourceOf(config)],
  });

const idsOf = (rows: readonly LinkRow[]): string[] => rows.map(({ link_id }) => link_id).sort();
const truth = ({ service }: Sandbox): string[] =>
  service.linkListing
    .all()
    .map(({ id }) => id)
    .sort();

const open = (options = {}): Promise<Sandbox> =>
  smallSandbox({ rows: { clicks: 200, leads: 20, sales: 10 }, days: 5, requestsPerMinute: null, ...options });

it('lists quiet, archived and expired links, and marks deleted ones until they return', async () => {
  const sandbox = await open({ quietLinks: 60 });
  const config = configWith(sandbox);
  const [outcome] = await syncDone(config);
  expect(outcome?.report?.tally).toMatchObject({ read: 156, new: 156, changed: 0, unchanged: 0 });
  const rows = await linksOf(config);
  expect(idsOf(rows)).toEqual(truth(sandbox));
  expect(rows.filter(({ link_clicks }) => link_clicks === 0).length).toBeGreaterThanOrEqual(60);
  expect(rows.some(({ link_archived }) => link_archived === true)).toBe(true);
  expect(rows.every(({ _listed_at }) => _listed_at !== null)).toBe(true);

  const quiet = sandbox.service.linkListing.all().find(({ clicks }) => clicks === 0);
  const id = quiet?.id ?? '';
  sandbox.service.linkListing.remove(id);
  const [second] = await syncDone(config);
  expect(second?.report?.tally).toMatchObject({ read: 155, new: 0, changed: 1, unchanged: 155 });
  expect(idsOf(await linksOf(config, '_missing_since is not null'))).toEqual([id]);
  const [since] = await linksOf(config, '_missing_since is not null');
  await syncDone(config);
  expect((await linksOf(config, '_missing_since is not null'))[0]?._missing_since).toEqual(since?._missing_since);
  // Not through the sandbox's controls: the same link is listed again.
  const { body } = {
    body: JSON.stringify([
      { id, domain: 'd.test', key: 'k', url: 'https://a.test', createdAt: '2020-01-01T00:00:00Z' },
    ]),
  };
  sandbox.service.faults.add({ path: '/links', body, match: { page: '1' }, times: 3 });
  const [back] = await sync(config);
  // One page with one link, and all others missing: such a listing proves nothing, but its link is stored.
  expect(back?.report?.state).toBe('incomplete');
  expect(await linksOf(config, '_missing_since is not null')).toEqual([]);
});

it('merges events and the listing: by updatedAt, and counters by the newest reading', async () => {
  const sandbox = await open();
  const config = configWith(sandbox);
  await syncDone(config, ['clicks']);
  const known = idsOf(await linksOf(config));
  expect(known.length).toBeGreaterThan(0);
  expect(await linksOf(config, '_listed_at is not null')).toEqual([]);
  await syncDone(config);
  expect(idsOf(await linksOf(config))).toEqual(truth(sandbox));
  const [link] = sandbox.service.links;
  if (!link) throw new Error('a sandbox has links');
  const stored = async () => (await linksOf(config, `link_id = '${link.id}'`))[0];
  const at = link.updatedAt;

  // A reading of an older link has newer counters, and nothing else.
  Object.assign(link, { url: 'https://old.test/', updatedAt: at - DAY, clicks: link.clicks + 7 });
  await syncDone(config);
  expect(await stored()).toMatchObject({ link_clicks: link.clicks, link_updated_at: new Date(at) });
  expect((await stored())?.link_url).not.toBe('https://old.test/');
  await engine.db.query({ text: 'delete from tributary.windows where source = $1', values: [sourceOf(config)] });
  Object.assign(link, { clicks: link.clicks + 5 });
  await syncDone(config, ['clicks']);
  expect(await stored()).toMatchObject({ link_clicks: link.clicks, link_updated_at: new Date(at) });
  expect((await stored())?.link_url).not.toBe('https://old.test/');

  Object.assign(link, { url: 'https://new.test/', updatedAt: at + DAY });
  await syncDone(config);
  expect(await stored()).toMatchObject({ link_url: 'https://new.test/', link_updated_at: new Date(at + DAY) });
});

it('has a separate budget, shared by all processes, that takes nothing from that of events', async () => {
  const sandbox = await open({ apiKey: 'a-key-of-its-own' });
  const config = configWith(sandbox);
  await syncDone(config, ['leads', 'links']);
  const used = await engine.db.query<{ key: string; rate: number; n: number }>({
    text: `select key_hash as key, max(per_second) as rate, sum(fresh + repair + backfill)::int as n from tributary.budget_use
      where key_hash = any($1) group by 1 order by 2`,
    values: [[keyHashOf(sandbox.apiKey), keyHashOf(sandbox.apiKey, 'standard')]],
  });
  const asked = (path: string): number => sandbox.service.requests.filter((one) => one.path === path).length;
  expect(used).toEqual([
    { key: keyHashOf(sandbox.apiKey, 'standard'), rate: 50, n: asked('/links') },
    { key: keyHashOf(sandbox.apiKey), rate: 500, n: asked('/events') },
  ]);
});

it('keeps earlier versions of links if history is on', async () => {
  const sandbox = await open();
  const config = configWith(sandbox);
  await syncDone(config);
  const link = sandbox.service.linkListing.all().at(-1);
  if (!link) throw new Error('a sandbox has links');
  const versions = () =>
    engine.db.query<{ c: string; f: Date; t: Date | null }>({
      text: `select link_utm_campaign as c, valid_from as f, valid_to as t from attribution.links_history
        where _source = $1 and link_id = $2 order by valid_from`,
      values: [sourceOf(config), link.id],
    });
  link.utm.utm_campaign = 'before';
  await syncDone(config);
  Object.assign(link, { updatedAt: Math.max(link.updatedAt + 1, Date.now() - 1000), clicks: link.clicks + 1 });
  link.utm.utm_campaign = 'after';
  await syncDone(config);
  link.clicks += 1;
  await syncDone(config);
  const found = await versions();
  expect(found.map(({ c }) => c).slice(-2)).toEqual(['before', 'after']);
  expect(found.at(-1)?.t).toBeNull();
  for (const [i, { t }] of found.slice(0, -1).entries()) expect(t).toEqual(found[i + 1]?.f);
  expect(found[0]?.f).toEqual(new Date(link.createdAt));
  sandbox.service.linkListing.remove(link.id);
  sandbox.service.deleteLink(link.id);
  await syncDone(config);
  expect((await versions()).at(-1)?.t).not.toBeNull();
});

it('creates the table of versions once for several concurrent sources', async () => {
  const sandbox = await open();
  const first = configWith(sandbox);
  const [source] = Object.values(first.sources);
  if (!source) throw new Error('a config has a source');
  const names = Array.from({ length: 6 }, (_, i) => `${sourceOf(first)}-${i}`);
  const sinks = { elsewhere: { type: 'postgres' as const, schema: 'first_listings' } };
  const config = { ...first, sources: Object.fromEntries(names.map((name) => [name, source])) };
  await syncDone({ ...config, sinks: { elsewhere: { ...first.sinks.warehouse, ...sinks.elsewhere } } } as Config);
});

/** A listing is one file of the table. */
async function newestIn(dir: string): Promise<string> {
  const names = (await readdir(dir, { recursive: true })).filter((name) => name.endsWith('.parquet'));
  const times = await Promise.all(names.map(async (name) => ({ name, at: (await stat(join(dir, name))).mtimeMs })));
  return join(dir, times.sort((a, b) => b.at - a.at)[0]?.name ?? '');
}

describe('every sink', () => {
  it('has the same links: Postgres elsewhere, Parquet and Iceberg; without passwords; and forgets them', async () => {
    const sandbox = await sandboxWith(['password'], { quietLinks: 60, requestsPerMinute: null });
    const [lake, tables] = [join(folder, 'lake'), join(folder, 'tables')];
    const sinks = {
      warehouse: { type: 'postgres' },
      elsewhere: { type: 'postgres', url: elsewhere.url },
      lake: { type: 'parquet', path: lake },
      tables: { type: 'iceberg', warehouse: tables },
    };
    const config = configWith(sandbox, { sinks });
    const source = sourceOf(config);
    await syncDone(config);
    const gone = sandbox.service.linkListing.all().find(({ clicks }) => clicks === 0)?.id ?? '';
    sandbox.service.linkListing.remove(gone);
    await syncDone(config, ['clicks', 'leads', 'sales', 'links']);
    await syncDone(config);
    const { asyncBufferFromFile, parquetReadObjects } = await import('hyparquet');
    const { compressors } = await import('hyparquet-compressors');
    const read = async (file: string): Promise<LinkRow[]> =>
      (await parquetReadObjects({ file: await asyncBufferFromFile(file), compressors })) as LinkRow[];
    const fromLake = await read(join(lake, 'links', `${source}.parquet`));
    const expected = (await linksOf(config)).map(({ link_id, link_title, _missing_since: since }) => [
      link_id,
      link_title,
      since !== null,
    ]);
    const facts = (rows: readonly LinkRow[]) =>
      rows.map((row) => [row.link_id, row.link_title ?? null, (row._missing_since ?? null) !== null]).sort();
    expect(expected.filter(([, , isMissing]) => isMissing).map(([id]) => id)).toEqual([gone]);
    expect(facts(fromLake)).toEqual(expected);
    expect(fromLake.every(({ link_password }) => (link_password ?? null) === null)).toBe(true);
    const statuses = (await readStatus(engine.db)).filter((one) => one.source === source && one.stream === 'links');
    expect(statuses.map(({ sink, coverage }) => [sink, coverage])).toEqual(
      ['elsewhere', 'lake', 'tables', 'warehouse'].map((sink) => [sink, []]),
    );
    for (const status of statuses) expect(status.completeThrough).not.toBeNull();
    expect((await linksOf(config)).every(({ link_password }) => link_password === null)).toBe(true);
    expect(facts(await read(await newestIn(join(tables, 'attribution', 'links', 'data'))))).toEqual(expected);
    const duckdb = await DuckDBInstance.create(':memory:', { threads: '1' });
    const connection = await duckdb.connect();
    await connection.run(printSchema('duckdb', { lake, isListed: true }));
    const asked = 'select link_id, link_title, _missing_since from attribution.links';
    expect(facts((await connection.runAndReadAll(asked)).getRowObjectsJson() as LinkRow[])).toEqual(expected);
    connection.closeSync();
    duckdb.closeSync();
    await withSinks({ config, log: silentLog }, (app) =>
      forget({ ...app, holder: holderOf('test') }, { source, kind: 'source' }),
    );
    expect(await linksOf(config)).toEqual([]);
    expect(await readdir(join(lake, 'links'))).toEqual([]);
    const left = await engine.db.query({
      text: 'select from attribution.links_history where _source = $1',
      values: [source],
    });
    expect(left).toEqual([]);
  });
});

describe('an invalid listing', () => {
  const ANSWERS: ReadonlyArray<[string, FaultRule, RegExp]> = [
    ['an object', { body: '{"links":[]}' }, /JSON that is not a list/],
    ['a list of strings', { body: '["a","b"]' }, /not a link, on page 1: a link is not an object/],
    ['links without an id', { body: '[{"url":"https://a.test"}]' }, /not a link, on page 1: a link has no id/],
    ['404', { status: 404 }, /404[\s\S]*next: the service has no GET \/links at this baseUrl/],
    ['401', { status: 401 }, /401[\s\S]*next: check apiKey/],
    ['403', { status: 403 }, /403[\s\S]*next: give this key permission to read links/],
  ];
  it.each(ANSWERS)('stops only this stream: %s', async (_name, fault, message) => {
    const sandbox = await open();
    const config = configWith(sandbox);
    await syncDone(config);
    const before = await linksOf(config);
    sandbox.service.faults.add({ ...fault, path: '/links', times: 100 });
    const outcomes = await sync(config, ['leads', 'links']);
    expect(outcomes.map(({ stream, report }) => [stream, report?.state])).toEqual([
      ['leads', 'done'],
      ['links', 'refused'],
    ]);
    expect(outcomes[1]?.fault?.describe()).toMatch(message);
    expect(await linksOf(config, '_listed_at is not null')).toEqual(before.filter(({ _listed_at }) => _listed_at));
  });

  it('with unusable records stays uncertified, and its other links are stored', async () => {
    const sandbox = await open();
    const config = configWith(sandbox);
    await syncDone(config);
    const shown = {
      id: 'link_beside',
      domain: 'd.test',
      key: 'k',
      url: 'https://a.test',
      createdAt: '2026-11-01T00:00:00Z',
    };
    const body = JSON.stringify([null, { url: 'https://b.test' }, shown]);
    sandbox.service.faults.add({ path: '/links', body, match: { page: '2' }, times: 100 });
    const [outcome] = await sync(config);
    expect(outcome?.report).toMatchObject({
      state: 'incomplete',
      note: expect.stringContaining('a record could not be used, on page 2'),
    });
    expect(idsOf(await linksOf(config, '_missing_since is null'))).toEqual([...truth(sandbox), 'link_beside'].sort());
    const findings = await checkService(serviceOf(config), new AbortController().signal);
    expect(findings.map(({ level, says }) => [level, says]).at(-1)).toEqual(['ok', 'lists its links']);
  });

  it('is named by doctor', async () => {
    const sandbox = await open();
    sandbox.service.faults.add({ path: '/links', status: 404, times: 1 });
    const findings = await checkService(serviceOf(configWith(sandbox)), new AbortController().signal);
    expect(findings.at(-1)).toMatchObject({
      ...{ level: 'fault', subject: 'source main: links' },
      fix: expect.stringContaining('the service has no GET /links at this baseUrl'),
    });
  });

  it('is retried later after HTML or a server error, and events continue', async () => {
    const faults = [{ body: '<html>maintenance</html>' }, { status: 500 }];
    const states = await Promise.all(
      faults.map(async (fault) => {
        const sandbox = await open();
        sandbox.service.faults.add({ ...fault, path: '/links', times: 100 });
        const outcomes = await sync(configWith(sandbox), ['leads', 'links']);
        return outcomes.map(({ stream, report, fault: stopped }) => [stream, report?.state, stopped?.name]);
      }),
    );
    for (const state of states)
      expect(state).toEqual([
        ['leads', 'done', undefined],
        ['links', 'incomplete', 'RetryLater'],
      ]);
  });

  it('on page 0 is requested once: a service that fails there counts from 1', async () => {
    const sandbox = await open();
    const config = configWith(sandbox);
    sandbox.service.faults.add({ status: 500, path: '/links', match: { page: '0' }, times: 100 });
    await syncDone(config);
    expect(idsOf(await linksOf(config))).toEqual(truth(sandbox));
    expect(sandbox.service.requests.filter(({ query }) => query.page === '0')).toHaveLength(1);
  });

  it('with a 401 parks the listing in a worker, and not the source', async () => {
    const sandbox = await open();
    const config = configWith(sandbox);
    sandbox.service.faults.add({ status: 401, path: '/links', times: 100 });
    await withSyncApp({ config, log: silentLog }, async (app) => {
      const scheduled = scheduledStreamsOf(config, app);
      await writeSchedules(
        app.state,
        scheduled.map(({ job: { source, stream }, schedule }) => ({ source, stream, plan: schedule })),
      );
      const deps = { ...app, log: silentLog, holder: holderOf('test'), timings: TIMINGS, onProgress() {} };
      const due = { source: sourceOf(config), stream: 'links' } as const;
      await runDueStream({ ...deps, scheduled: byStreamKey(scheduled) }, due, new AbortController().signal);
      const parked = await app.state.query({
        text: 'select stream from tributary.parked where source = $1',
        values: [due.source],
      });
      expect(parked).toEqual([{ stream: 'links' }]);
      const troubles = await findTroubles(app.state, byStreamKey(scheduled), ['warehouse']);
      const own = troubles.filter(({ source }) => source === due.source);
      expect(own).toEqual([{ ...due, kind: 'parked', message: expect.stringContaining('401') }]);
    });
  });
});
