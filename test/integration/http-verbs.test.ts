import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Cursors, Diagnosis, Forgotten, Verification, Verifications } from '../../src/http/api-types.ts';
import { emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { type DescribedRoom, describedRoom, NOBODY, routesIn, syncedRoom } from '../support/http-room.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { until, workerConfig } from '../support/workers.ts';

/** Operations that the command line had first, with a worker, tables and a lake. */
const [{ db, url }, sandbox, lake] = await Promise.all([
  forThisFile(emptyEngine()),
  smallSandbox({ rows: { clicks: 300, leads: 60, sales: 40 }, days: 10 }),
  mkdtemp(join(tmpdir(), 'tributary-verbs-')),
]);
afterAll(() => rm(lake, { recursive: true, force: true }));
const rest = { sinks: { warehouse: { type: 'postgres' }, lake: { type: 'parquet', path: lake } } };
const room = await forThisFile(
  syncedRoom(workerConfig({ stateUrl: url, queueUrl: undefined, sandboxes: { main: sandbox }, every: '1h', rest })),
);
const described: DescribedRoom = await describedRoom(room);

const ask: DescribedRoom['ask'] = (...args) => described.ask(...args);
const get = <T>(path: string): Promise<T> => described.get<T>(path);
const statusOf = async (path: string, body: unknown): Promise<number> => (await ask('POST', path, body)).status;
const RANGE = { from: '11d', to: 'now' };

describe('verify', () => {
  const started = async (body: object): Promise<string> => {
    const { status, body: begun } = await ask<Verification>('POST', '/api/verifications', { ...RANGE, ...body });
    expect([status, begun.state]).toEqual([202, 'running']);
    return begun.id;
  };
  const ended = async (id: string): Promise<Verification> => {
    await until('it has ended', async () => (await get<Verification>(`/api/verifications/${id}`)).state !== 'running');
    return get<Verification>(`/api/verifications/${id}`);
  };

  it('finds every sink correct', async () => {
    const found = await ended(await started({}));
    expect(found).toMatchObject({ state: 'done', clean: true, progress: 1, message: null });
    expect(
      found.results.map(({ stream, sinks }) => [stream, sinks.map(({ sink, missing }) => [sink, missing])]),
    ).toEqual(
      ['clicks', 'leads', 'sales'].map((stream) => [
        stream,
        [
          ['warehouse', 0],
          ['lake', 0],
        ],
      ]),
    );
    const { verifications } = await get<Verifications>('/api/verifications');
    expect(verifications.map(({ id }) => id)).toEqual([found.id]);
    expect(verifications[0]).not.toHaveProperty('results');
  });

  it('reports what is missing, by the service and by the other sink, and repairs it', async () => {
    await db.query({
      text: `delete from attribution.leads where event_id in (select event_id from attribution.leads order by "timestamp" limit 5)`,
    });
    const one = { streams: ['leads'], sink: 'warehouse' };
    const found = await ended(await started(one));
    expect(found).toMatchObject({
      state: 'done',
      clean: false,
      results: [{ sinks: [{ sink: 'warehouse', missing: 5 }] }],
    });
    expect(found.results[0]?.sinks[0]?.examples).toHaveLength(5);
    const between = await ended(await started({ streams: ['leads'], between: ['lake', 'warehouse'] }));
    expect(between.results[0]).toMatchObject({ against: 'lake', requests: 0, sinks: [{ missing: 5 }] });
    const repaired = await ended(await started({ ...one, repair: true }));
    expect(repaired).toMatchObject({ clean: true, results: [{ repaired: { sinks: [{ missing: 0 }] } }] });
  });

  it('runs one at a time, can be watched and cancelled, and reports why it stopped', async () => {
    sandbox.service.faults.add({ hang: true, times: 100 });
    const id = await started({ streams: ['sales'] });
    expect(await statusOf('/api/verifications', RANGE)).toBe(409);
    expect(await statusOf(`/api/verifications/${id}/cancel`, undefined)).toBe(200);
    expect(await ended(id)).toMatchObject({ state: 'cancelled', clean: null, results: [] });
    expect(await statusOf(`/api/verifications/${id}/cancel`, undefined)).toBe(409);
    sandbox.service.faults.clear();
    sandbox.service.faults.add({ status: 403, message: 'not on this plan', times: 10 });
    const refused = await ended(await started({ streams: ['sales'] }));
    expect(refused).toMatchObject({ state: 'failed', message: expect.stringContaining('not on this plan') });
    sandbox.service.faults.clear();
  });

  it('refuses invalid requests', async () => {
    for (const [wrong, expected] of [
      [{ from: 'x', to: 'now' }, 400],
      [{ from: 'now', to: '7d' }, 409],
      [{ ...RANGE, sink: 'x' }, 404],
      [{ ...RANGE, between: ['lake'] }, 400],
      [{ ...RANGE, between: ['lake', 'lake'] }, 409],
      [{ ...RANGE, between: ['lake', 'warehouse'], repair: true }, 409],
      [{ ...RANGE, source: 'x' }, 404],
    ] as const)
      expect([wrong, await statusOf('/api/verifications', wrong)]).toEqual([wrong, expected]);
    expect((await ask('GET', '/api/verifications/none')).status).toBe(404);
  });
});

describe('cursor', () => {
  it('is shown, moved back, forward only if forced, and reset', async () => {
    const { cursors } = await get<Cursors>('/api/cursors');
    expect(cursors.map(({ stream, sink }) => `${stream} ${sink}`)).toEqual(
      ['clicks', 'leads', 'sales'].flatMap((stream) => [`${stream} lake`, `${stream} warehouse`]),
    );
    const [before] = (await get<Cursors>('/api/cursors?source=main&stream=sales&sink=lake')).cursors;
    const to = new Date(Date.now() - 3 * 86_400_000).toISOString();
    const move = (change: object) => ask<Cursors>('POST', '/api/cursors/move', { streams: ['sales'], to, ...change });
    expect((await move({ sink: 'lake' })).body.cursors).toMatchObject([{ sink: 'lake', completeThrough: to }]);
    // The other sink stays where it was.
    expect((await get<Cursors>('/api/cursors?stream=sales&sink=warehouse')).cursors[0]?.completeThrough).not.toBe(to);
    const forward = await ask<{ error: { message: string } }>('POST', '/api/cursors/move', {
      streams: ['sales'],
      sink: 'lake',
      to: before?.completeThrough,
    });
    expect([forward.status, forward.body.error.message]).toEqual([409, expect.stringContaining('not certified')]);
    const forced = await move({ sink: 'lake', to: before?.completeThrough, force: true });
    expect(forced.body.cursors[0]?.completeThrough).toBe(before?.completeThrough);
    expect((await move({ to: '2099-01-01' })).status).toBe(409);
    expect((await move({ source: 'x' })).status).toBe(404);
    expect((await move({ streams: [] })).status).toBe(400);
    const reset = (confirm: object) =>
      ask<Cursors>('POST', '/api/cursors/reset', { streams: ['sales'], sink: 'lake', ...confirm });
    // The source is named twice, so that nobody resets all progress by accident.
    expect([(await reset({})).status, (await reset({ confirm: 'mian' })).status]).toEqual([400, 409]);
    expect((await get<Cursors>('/api/cursors?stream=sales')).cursors.length).toBe(2);
    expect((await reset({ confirm: 'main' })).body.cursors).toEqual([]);
    expect((await get<Cursors>('/api/cursors?stream=sales')).cursors.map(({ sink }) => sink)).toEqual(['warehouse']);
  });

  it('is not moved during a sync', async () => {
    sandbox.service.faults.add({ hang: true, times: 100, match: { event: 'clicks' } });
    await ask('POST', '/api/sync', { streams: ['clicks'] });
    await until(
      'it is at work',
      async () => (await db.query({ text: 'select from tributary.leases where expires_at > now()' })).length > 0,
    );
    const refused = await ask<{ error: { message: string } }>('POST', '/api/cursors/reset', {
      streams: ['clicks'],
      confirm: 'main',
    });
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      expect.stringContaining('is writing this stream'),
    ]);
    sandbox.service.faults.clear();
  });
});

describe('forget', () => {
  const emails = async () =>
    await db.query<{ id: string; email: string }>({
      text: `select customer_id as id, customer_email as email from attribution.leads where customer_email is not null order by "timestamp"`,
    });

  it('erases a person everywhere, and reports where', async () => {
    const [person] = await emails();
    expect(person?.email).toBeDefined();
    const { status, body } = await ask<Forgotten>('POST', '/api/forget', { source: 'main', customer: person?.id });
    expect(status).toBe(200);
    expect(
      Object.entries(body.touched)
        .filter(([, rows]) => rows > 0)
        .map(([place]) => place),
    ).toContain('attribution.customers');
    expect((await emails()).map(({ email }) => email)).not.toContain(person?.email);
    const again = await ask<Forgotten>('POST', '/api/forget', { source: 'main', click: 'nobody' });
    expect(Object.values(again.body.touched).every((rows) => rows === 0)).toBe(true);
  });

  it('needs a token, and an explicit confirmation', async () => {
    const { status } = await room.send('POST', '/api/forget', { source: 'main', everything: true }, NOBODY);
    expect(status).toBe(401);
    for (const [wrong, expected] of [
      [{ source: 'main' }, 400],
      [{ source: 'main', customer: '' }, 400],
      [{ source: 'main', everything: false }, 400],
      [{ source: 'main', everything: true }, 400],
      [{ source: 'main', everything: true, confirm: 'mian' }, 409],
      [{ source: 'main', customer: 'a', click: 'b' }, 400],
      [{ customer: 'a' }, 400],
      [{ source: 'mian', customer: 'a' }, 404],
    ] as const)
      expect([wrong, await statusOf('/api/forget', wrong)]).toEqual([wrong, expected]);
    expect((await emails()).length).toBeGreaterThan(0);
  });
});

describe('the installation', () => {
  it('is checked part by part, once for all concurrent requests', async () => {
    const before = sandbox.service.requests.length;
    const looks = await Promise.all([1, 2, 3].map(() => get<Diagnosis>('/api/doctor')));
    const [{ findings = [] } = {}] = looks;
    expect(findings.map(({ subject }) => subject)).toEqual(
      expect.arrayContaining(['state', 'sink warehouse', 'sink lake', 'queue', 'source main']),
    );
    expect(findings.filter(({ level }) => level === 'fault')).toEqual([]);
    expect(sandbox.service.requests.length - before).toBe(1);
  });

  it('prints its config without secrets, and its tables in every format', async () => {
    const config = await get<{ sources: { main: { apiKey: string; plan: string } } }>('/api/config');
    expect(config.sources.main).toMatchObject({ apiKey: '***', plan: 'enterprise' });
    for (const [format, type, text] of [
      ['sql', 'application/sql', 'create table if not exists "attribution"."clicks"'],
      ['markdown', 'text/markdown', '# Data dictionary'],
      ['json', 'application/json', '"tables"'],
      ['dbt', 'application/yaml', 'version: 2'],
      ['duckdb', 'application/sql', 'read_parquet'],
    ] as const) {
      const response = await room.get(`/api/schema?format=${format}`);
      expect(response.headers.get('content-type')).toContain(type);
      expect((await response.text()).toLowerCase()).toContain(text.toLowerCase());
    }
    expect(await (await room.get('/api/schema')).text()).toMatch(/^create schema/);
    expect((await ask('GET', '/api/schema?format=x')).status).toBe(400);
  });

  it('has had all of these operations requested', () => {
    const ours = /\/api\/(verifications|cursors|forget|doctor|config|schema)(\/|$)/;
    expect(routesIn(described.description).filter((one) => ours.test(one) && !described.asked.has(one))).toEqual([]);
  });
});
