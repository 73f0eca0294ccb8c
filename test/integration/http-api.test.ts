import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { quarantine } from '../../src/cursor/quarantine.ts';
import type {
  Backfill,
  Backfills,
  Budget,
  Coverage,
  CoverageWindows,
  EventRows,
  Overview,
  Quarantine,
  QuarantineRecord,
  Rows,
  RunDetail,
  RunLog,
  Runs,
  SchemaChanges,
  SyncStarted,
  TopLinks,
} from '../../src/http/api-types.ts';
import { emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { type DescribedRoom, describedRoom, ROOM_TOKEN, routesIn, syncedRoom } from '../support/http-room.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { until, workerConfig } from '../support/workers.ts';

const DAY_MS = 86_400_000;
const day = (ago: number): string => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);
const LARGE = 9_007_199_254_740_993n;

const { db, url } = await forThisFile(emptyEngine());
const sandbox = await smallSandbox({ days: 60 });
const room = await forThisFile(
  syncedRoom(
    workerConfig({
      ...{ stateUrl: url, queueUrl: undefined, sandboxes: { main: sandbox }, every: '5m', stream: { maxLag: '1h' } },
      rest: { privacy: { linkPassword: 'keep' } },
    }),
  ),
);
let described: DescribedRoom;
beforeAll(async () => {
  // What a calm service does not cause: an invalid record, a new field, an unproven window, one never read.
  const record = {
    event: 'lead',
    timestamp: `${day(3)}T10:00:00Z`,
    amount: LARGE,
    click: { id: 'c-1', ip: '203.0.113.9' },
    link: { id: 'l-1', password: 'canary-password' },
    customer: { id: 'cus-1', name: 'Ada Example', email: 'ada@example.org' },
  };
  await quarantine(db, { source: 'main', stream: 'leads', runId: 'r' }, [
    { record, reason: 'it has no id' },
    { record: { ...record, timestamp: 'never' }, reason: 'it has no time' },
  ]);
  await db.query({
    text: `insert into tributary.columns (stream, path, name, kind, previous_kind, source, run_id)
      values ('clicks', 'click.ua', 'click_ua', 'text', 'integer', 'main', 'r')`,
  });
  const { since } = (await room.json<Overview>('/api/overview')).streams[0]?.sinks[0] ?? { since: '' };
  const [one, two, three] = [1, 2, 3].map((n) => new Date(Date.parse(since) + n * DAY_MS).toISOString());
  await db.query({ text: `delete from tributary.windows where stream = 'sales'` });
  await db.query({
    text: `insert into tributary.windows (source, stream, sink, start_at, end_at, state, rows, run_id, note)
      values ('main', 'sales', 'warehouse', $1, $2, 'certified', 7, 'r', null),
        ('main', 'sales', 'warehouse', $3, $4, 'uncertified', 5, 'r', 'it drifted')`,
    values: [since, one, two, three],
  });
  described = await describedRoom(room);
});

const ask: DescribedRoom['ask'] = (...args) => described.ask(...args);
const get = <T>(path: string): Promise<T> => described.get<T>(path);

describe('the API agrees with the tables', () => {
  it('overview: every stream with its watermark, target and runs', async () => {
    const { streams, troubles } = await get<Overview>('/api/overview');
    expect(streams.map(({ stream }) => stream)).toEqual(['clicks', 'leads', 'sales']);
    expect(streams[0]).toMatchObject({ configured: true, maxLagSeconds: 3600, late: false, parked: null });
    expect(streams.map(({ quarantined }) => quarantined)).toEqual([0, 2, 0]);
    expect(streams.map(({ uncertifiedWindows }) => uncertifiedWindows)).toEqual([0, 0, 1]);
    expect(streams.every(({ lastSuccessAt, nextRunAt }) => lastSuccessAt !== null && nextRunAt !== null)).toBe(true);
    expect(troubles).toEqual([]);
  });

  it('coverage: days in every state, each day once', async () => {
    const { feeds } = await get<Coverage>('/api/coverage');
    const of = (stream: string) => feeds.find((feed) => feed.stream === stream)?.days ?? [];
    expect(of('clicks').map(({ state }) => state)).toEqual(['certified', 'open']);
    expect(of('leads').map(({ state }) => state)).toEqual(['certified', 'quarantined', 'certified', 'open']);
    expect(of('leads')[1]).toEqual({ date: day(3), count: 1, state: 'quarantined' });
    expect(
      of('sales')
        .map(({ state, count }) => [state, count])
        .slice(0, 3),
    ).toEqual([
      ['certified', 1],
      ['gap', 1],
      ['uncertified', 1],
    ]);
    for (const { days } of feeds) {
      const last = days.reduce(
        (at, { date, count }) => {
          expect(Date.parse(date)).toBe(at);
          return at + count * DAY_MS;
        },
        Date.parse(days[0]?.date ?? ''),
      );
      expect(new Date(last - DAY_MS).toISOString().slice(0, 10)).toBe(day(0));
    }
    const few = await get<Coverage>(`/api/coverage?stream=sales&from=${day(29)}&to=${day(27)}`);
    expect(few.feeds.map(({ days }) => days.reduce((sum, { count }) => sum + count, 0))).toEqual([2]);
  });

  it('coverage of one stream: the rows of each day, unless a window of several days has them', async () => {
    const rowsOf = async (query: string) => (await get<Coverage>(`/api/coverage${query}`)).feeds[0]?.rows ?? [];
    expect(await rowsOf('?stream=clicks')).toEqual([]);
    const table = await db.query<{ date: string; rows: number }>({
      text: `
        select to_char("timestamp" at time zone 'UTC', 'YYYY-MM-DD') as date, count(*) as rows
        from attribution.clicks group by 1 order by 1`,
    });
    const clicks = await rowsOf('?source=main&stream=clicks');
    expect(clicks.length).toBeGreaterThan(20);
    // Time younger than the settle time is in no window yet.
    const isOld = ({ date }: { date: string }): boolean => date < day(1);
    expect(clicks.filter(isOld)).toEqual(table.filter(isOld));
    expect(await rowsOf(`?source=main&stream=clicks&from=${day(9)}&to=${day(6)}`)).toHaveLength(3);
    // A later poll may have read today.
    const sales = async () => (await rowsOf(`?source=main&stream=sales&to=${day(9)}`)).map(({ rows }) => rows);
    expect(await sales()).toEqual([7, 5]);
    const move = (hours: number) =>
      db.query({
        text: `update tributary.windows set end_at = end_at + make_interval(hours => $1) where note = 'it drifted'`,
        values: [hours],
      });
    await move(1);
    expect(await sales()).toEqual([7, null, null]);
    await move(-1);
  });

  it('windows of some days: what was read, what was not, and the quarantined records', async () => {
    const feed = 'source=main&sink=warehouse';
    const { windows } = await get<CoverageWindows>(`/api/coverage/windows?${feed}&stream=sales&from=31d&to=20d`);
    expect(windows.map(({ state }) => state)).toEqual(['certified', 'gap', 'uncertified', 'open']);
    expect(windows[2]).toMatchObject({ rows: 5, note: 'it drifted', runId: 'r' });
    expect(windows[1]).toMatchObject({ rows: null, readAt: null });
    const { quarantined } = await get<CoverageWindows>(`/api/coverage/windows?${feed}&stream=leads&from=5d&to=now`);
    expect(quarantined).toHaveLength(1);
    expect((await ask('GET', `/api/coverage/windows?${feed}&stream=leads&from=90d&to=now`)).status).toBe(409);
    expect((await ask('GET', '/api/coverage/windows?source=x&sink=y&stream=leads&from=5d&to=now')).status).toBe(404);
    expect((await ask('GET', '/api/coverage/windows?source=main')).status).toBe(400);
  });

  it('rows, budget and runs: the same figures three ways', async () => {
    // If a run ends between two requests, they are repeated.
    await vi.waitFor(async () => {
      const { runs } = await get<Runs>('/api/runs?limit=500');
      const { series } = await get<Rows>('/api/rows?per=day');
      for (const { stream, points } of series) {
        const sum = (of: ReadonlyArray<{ new: number }>) => of.reduce((all, one) => all + one.new, 0);
        expect(sum(points)).toBe(sum(runs.filter((run) => run.stream === stream)));
        const [counted] = await db.query<{ n: number }>({ text: `select count(*) as n from attribution.${stream}` });
        expect(sum(points)).toBe(counted?.n);
      }
      const { series: byDay } = await get<EventRows>('/api/rows/events?from=400d');
      for (const { stream, points } of byDay) {
        const [{ n } = { n: 0 }] = await db.query<{ n: number }>({
          text: `select count(*) as n from attribution.${stream} where "timestamp" < $1`,
          values: [points.at(-1)?.at],
        });
        // From the ledger, which has the sales row inserted above. The last day is not over.
        const days = points.slice(0, stream === 'sales' ? undefined : -1);
        expect(days.reduce((sum, { rows }) => sum + rows, 0)).toBe(stream === 'sales' ? 12 : n);
      }
      expect(series.flatMap(({ points }) => points).every((point) => point.firstSync <= point.new)).toBe(true);
      expect(series.flatMap(({ points }) => points).some((point) => point.firstSync > 0)).toBe(true);
      const { keys } = await get<Budget>('/api/budget?minutes=60&step=60');
      expect(keys.map(({ sources }) => sources)).toEqual([['main']]);
      const requests = runs.reduce((sum, run) => sum + run.requests, 0);
      expect(keys[0]?.points.reduce((sum, point) => sum + point.requests, 0)).toBeGreaterThanOrEqual(requests);
    }, 10_000);
    // Past days are counted once and cached: old runs that are inserted later are not counted, those of today are.
    const days = async () => (await get<Rows>('/api/rows?per=day&stream=leads')).series.flatMap(({ points }) => points);
    const insert = (id: string, ago: string) =>
      db.query({
        text: `insert into tributary.runs (id, kind, source, stream, state, started_at, finished_at, rows_new)
          values ($1, 'sync', 'main', 'leads', 'done', now() - $2::interval, now(), 5)`,
        values: [id, ago],
      });
    const [before] = [await days(), await insert('old', '10 days'), await insert('now', '0')];
    const after = await days();
    expect(after.length).toBe(before.length);
    expect(after.at(-1)?.new).toBe((before.at(-1)?.new ?? 0) + 5);
    await db.query({ text: `delete from tributary.runs where id in ('old', 'now')` });
    expect((await get<Rows>('/api/rows?stream=leads')).series.map(({ stream }) => stream)).toEqual(['leads']);
  });

  it('runs come in pages, and each can be read', async () => {
    const { runs } = await get<Runs>('/api/runs?limit=500');
    const paged: string[] = [];
    for (let before = ''; ; ) {
      const page = await get<Runs>(`/api/runs?limit=1${before}`);
      paged.push(...page.runs.map(({ id }) => id));
      if (page.next === null) break;
      before = `&before=${page.next}`;
    }
    expect(paged).toEqual(runs.map(({ id }) => id));
    expect((await get<Runs>('/api/runs?state=failed')).runs).toEqual([]);
    expect((await get<Runs>('/api/runs?kind=sync&stream=clicks')).runs.length).toBeGreaterThan(0);
    expect(await get(`/api/runs/${paged[0]}`)).toMatchObject({ id: paged[0], typeMismatches: {} });
    expect((await ask('GET', '/api/runs/none')).status).toBe(404);
  });

  it('quarantine: the record as received, without personal data', async () => {
    const { total, records } = await get<Quarantine>('/api/quarantine');
    expect([total, records.map(({ reason }) => reason).sort()]).toEqual([2, ['it has no id', 'it has no time']]);
    const paged = await get<Quarantine>('/api/quarantine?limit=1');
    const rest = await get<Quarantine>(`/api/quarantine?limit=1&before=${paged.next}`);
    expect([...paged.records, ...rest.records, rest.next]).toEqual([...records, null]);
    expect((await get<Quarantine>('/api/quarantine?stream=clicks')).records).toEqual([]);
    for (const { id } of records) {
      const { record } = await get<QuarantineRecord>(`/api/quarantine/${id}`);
      expect(record).toContain(String(LARGE));
      expect(record).not.toMatch(/Ada|example\.org|203\.0\.113|canary/);
    }
    expect((await ask('GET', '/api/quarantine/999999')).status).toBe(404);
    expect((await ask('GET', '/api/quarantine/%27')).status).toBe(404);
  });

  it('a valid record is written and leaves quarantine; an invalid one stays until it is dropped', async () => {
    const { records } = await get<Quarantine>('/api/quarantine');
    const idOf = (reason: string) => records.find((one) => one.reason === reason)?.id;
    const retry = async (reason: string) =>
      (await ask<{ reason: string | null }>('POST', `/api/quarantine/${idOf(reason)}/retry`)).body.reason;
    expect(await retry('it has no id')).toBeNull();
    expect(await retry('it has no time')).toMatch(/timestamp/);
    expect((await get<Quarantine>('/api/quarantine')).records.map(({ reason }) => reason)).toEqual(['it has no time']);
    expect((await room.send('DELETE', `/api/quarantine/${idOf('it has no time')}`)).status).toBe(204);
    expect((await get<Quarantine>('/api/quarantine')).total).toBe(0);
    const written = await db.query({ text: `select 1 from attribution.leads where click_id = 'c-1'` });
    expect(written).toHaveLength(1);
  });

  it('schema changes and top links', async () => {
    const { changes } = await get<SchemaChanges>('/api/schema-changes');
    const change = { path: 'click.ua', column: 'click_ua', kind: 'text', previousKind: 'integer' };
    expect(changes.filter(({ path }) => path === 'click.ua')).toMatchObject([change]);
    for (const stream of ['clicks', 'leads', 'sales'] as const) {
      const { links, sink } = await get<TopLinks>(`/api/links/top?by=${stream}&limit=3&from=30d`);
      const best = await db.query<{ id: string; n: number }>({
        text: `select link_id as id, count(*) as n from attribution.${stream} where "timestamp" >= now() - interval '30 days'
          group by 1 order by n desc, 1 limit 3`,
      });
      expect([sink, links.map((link) => [link.linkId, link[stream]])]).toEqual([
        'warehouse',
        best.map(({ id, n }) => [id, n]),
      ]);
      expect(links.every(({ shortLink }) => shortLink?.includes('/'))).toBe(true);
      const [first] = links;
      for (const q of [first?.linkId, first?.shortLink?.toUpperCase()]) {
        const named = await get<TopLinks>(`/api/links/top?by=${stream}&from=30d&q=${encodeURIComponent(q ?? '')}`);
        expect(named.links[0]).toEqual(first);
      }
      expect((await get<TopLinks>('/api/links/top?q=%25')).links).toEqual([]);
    }
    const run = (await get<Runs>('/api/runs?state=done&kind=sync&limit=1')).runs[0]?.id ?? '';
    expect((await get<RunLog>(`/api/runs/${run}/log`)).requests.length).toBeGreaterThan(0);
    expect((await ask('GET', '/api/runs/nobody/log')).status).toBe(404);
  });
});

describe('commands over HTTP', () => {
  const REQUEST = { source: 'main', streams: ['clicks'], from: day(60), to: day(31) };

  it('a price stops its requests when the client disconnects', async () => {
    const before = sandbox.service.requests.length;
    // Longer than a busy machine needs to notice the disconnect.
    sandbox.service.faults.add({ delayMs: 8000, times: 50, match: { event: 'leads' } });
    const gone = new AbortController();
    const asked = fetch(`${room.url}/api/backfills/price`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ROOM_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...REQUEST, streams: ['leads'], from: day(60), to: day(0) }),
      signal: gone.signal,
    });
    await until('the service is asked', async () => sandbox.service.requests.length > before);
    gone.abort();
    await expect(asked).rejects.toThrow();
    sandbox.service.faults.clear();
    await sleep(2000);
    const leads = sandbox.service.requests.slice(before).filter(({ query }) => query.event === 'leads');
    expect(leads).toHaveLength(1);
  });

  it('a backfill is priced, then started, paused, resumed and done; or cancelled', async () => {
    const priced = await ask<{ streams: Array<{ rows: number; requests: number; certified: number }> }>(
      'POST',
      '/api/backfills/price',
      REQUEST,
    );
    expect(priced.status).toBe(200);
    expect(priced.body.streams[0]?.rows).toBeGreaterThan(0);
    for (const pricedRows of [{ 'main/clicks': -1 }, { 'main/clicks': 1.5 }, { 'main/clicks': '7' }, [7], 7])
      expect((await ask('POST', '/api/backfills', { ...REQUEST, pricedRows })).status).toBe(400);
    const pricedRows = { 'main/clicks': priced.body.streams[0]?.rows, 'main/nothing': 7 };
    const started = await ask<Backfills>('POST', '/api/backfills', { ...REQUEST, pricedRows });
    expect([started.status, started.body.backfills.length]).toEqual([201, 1]);
    const id = started.body.backfills[0]?.id ?? '';
    const read = () => get<Backfill>(`/api/backfills/${id}`);
    await until('the backfill is done', async () => (await read()).state === 'done');
    const done = await read();
    expect(done).toMatchObject({ progress: 1, actions: [], etaSeconds: null, running: false });
    expect(done.rows).toBeGreaterThan(0);
    const refused = await ask<{ error: { message: string } }>('POST', `/api/backfills/${id}/pause`);
    expect([refused.status, refused.body.error.message]).toEqual([409, expect.stringContaining('is done')]);
    expect((await ask('POST', '/api/backfills/none/cancel')).status).toBe(404);

    // Read already: the answer says that there is nothing to do.
    const again = await ask<Backfills>('POST', '/api/backfills', REQUEST);
    expect(again.body.backfills).toMatchObject([{ state: 'done', progress: 1, rows: 0 }]);

    // The service does not answer for a while, so that there is a backfill to stop.
    sandbox.service.faults.add({ status: 503, message: 'later', match: { event: 'leads' }, times: 20 });
    await db.query({
      text: `insert into tributary.backfills (id, source, stream, start_at, end_at, force, state)
        values ('slow', 'main', 'leads', now() - interval '60 days', now() - interval '40 days', false, 'paused');
        insert into tributary.backfill_windows (backfill_id, start_at, end_at)
        values ('slow', now() - interval '60 days', now() - interval '40 days')`,
    });
    const act = async (action: string) => (await ask<Backfill>('POST', `/api/backfills/slow/${action}`)).body;
    expect(await act('resume')).toMatchObject({ state: 'queued', actions: ['pause', 'cancel'] });
    expect(await act('pause')).toMatchObject({ state: 'paused', actions: ['resume', 'cancel'] });
    expect(await act('cancel')).toMatchObject({ state: 'cancelled', actions: [] });
    expect((await ask('POST', '/api/backfills/slow/retry')).status).toBe(409);
    expect((await get<Backfills>('/api/backfills')).backfills.map(({ id: each }) => each)).toContain('slow');
  });

  it('an invalid request is refused with a remedy, and the service gets no request', async () => {
    await db.query({
      text: `insert into tributary.backfills (id, source, stream, start_at, end_at, force, state)
        values ('twin', 'main', 'clicks', '2020-01-01T00:00Z', '2020-02-01T00:00Z', true, 'paused')`,
    });
    for (const [wrong, expected] of [
      [{ from: '1d' }, 400],
      [{ ...REQUEST, from: 'x' }, 400],
      [{ ...REQUEST, to: '70d' }, 409],
      [{ ...REQUEST, to: '2728-01-01' }, 409],
      [{ ...REQUEST, from: '2020-01-01', to: '2020-02-01', force: true }, 409],
      [{ ...REQUEST, source: 'x' }, 404],
      [{ ...REQUEST, more: 1 }, 400],
      [{ ...REQUEST, streams: ['x'] }, 400],
    ] as const) {
      const { status, body } = await ask<{ error: { next: string | null } }>('POST', '/api/backfills', wrong);
      expect([status, body.error.next]).toEqual([expected, expect.any(String)]);
    }
  });

  it('sync now: the worker starts the stream', async () => {
    const runs = async () =>
      (await get<Runs>('/api/runs?stream=sales&kind=sync')).runs.filter(({ state }) => state !== 'running').length;
    const before = await runs();
    const { status, body } = await ask('POST', '/api/sync', { streams: ['sales'] });
    expect([status, body]).toEqual([
      202,
      // Its result is unknown yet.
      expect.objectContaining({ ok: null, streams: [expect.objectContaining({ source: 'main', stream: 'sales' })] }),
    ]);
    await until('sales ran again', async () => (await runs()) > before);
  });

  it('sync and wait: the response has the run, and the run can be polled', async () => {
    sandbox.service.faults.clear();
    const { body } = await ask<SyncStarted>('POST', '/api/sync', { streams: ['clicks', 'leads'], wait: 60 });
    expect(body).toMatchObject({ done: true, ok: true, streams: [{ state: 'done' }, { state: 'done' }] });
    const { id: runId } = await get<RunDetail>(`/api/runs/${body.streams[0]?.runId}`);
    expect(runId).toBe(body.streams[0]?.runId);
    const started = await ask<SyncStarted>('POST', '/api/sync', { streams: ['leads'] });
    const polled = await get<SyncStarted>(`/api/sync/${encodeURIComponent(started.body.id)}?wait=60`);
    expect(polled).toMatchObject({ id: started.body.id, done: true });
    expect(polled.streams[0]?.runId).not.toBe(body.streams[1]?.runId);
    expect((await ask('GET', '/api/sync/nothing')).status).toBe(404);
  });

  it('sync now: a parked stream is probed at once, and its probe interval starts again', async () => {
    const parked = () =>
      db.query<{ probes: number; soon: boolean }>({
        text: `select probes, next_probe_at < now() + interval '1 hour' as soon from tributary.parked`,
      });
    const sync = () => ask<SyncStarted>('POST', '/api/sync', { streams: ['sales'] });
    sandbox.service.faults.add({ status: 403, message: 'not on this plan', times: 1000 });
    await sync();
    await until('it is parked', async () => (await parked()).length === 1);
    await db.query({ text: `update tributary.parked set probes = 9, next_probe_at = now() + interval '6 hours'` });
    await until('it was refused again', async () => {
      await sync();
      return (await parked())[0]?.probes === 1;
    });
    expect(await parked()).toEqual([{ probes: 1, soon: true }]);
    sandbox.service.faults.clear();
    await until('it is no longer parked', async () => {
      await sync();
      return (await parked()).length === 0;
    });
  });

  it('session is described too, and every operation has been requested', async () => {
    await get('/api/session');
    await get('/api/audit');
    const silent = ['DELETE /api/quarantine/{id}', 'POST /api/session', 'DELETE /api/session'];
    // Those of http-verbs.test.ts and http-export.test.ts.
    const elsewhere = /\/api\/(verifications|cursors|forget|export|doctor|config|schema)(\/|$)/;
    const left = routesIn(described.description).filter((one) => !described.asked.has(one) && !elsewhere.test(one));
    expect(left).toEqual(silent);
    expect(described.description.openapi).toBe('3.1.0');
  });
});
