import { describe, expect, it } from 'vitest';
import { runWorkerApp } from '../../src/app/worker.ts';
import type { Config } from '../../src/config/index.ts';
import { type Alert, findTroubles, sendAlerts } from '../../src/jobs/alerts.ts';
import { byStreamKey, type ScheduledStream } from '../../src/jobs/schedule.ts';
import { readStatus, type StreamStatus } from '../../src/sync/status.ts';
import { dump } from '../support/dump.ts';
import { openEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { serve } from '../support/http-server.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { FAST, until, workerConfig } from '../support/workers.ts';

/** What a worker does when the service refuses, and whom it alerts. */

const [{ db, url }, good, strict] = await Promise.all([
  forThisFile(openEngine()),
  smallSandbox(),
  smallSandbox({ apiKey: 'right-key' }),
]);
const lines: string[] = [];
const log = { ...silentLog, error: (_fields: object, message: string) => void lines.push(message) };

/** A worker in this process, until `work` ends. */
async function withWorker<T>(config: Config, work: () => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const worker = runWorkerApp({ config, log, signal: stop.signal, timings: FAST });
  try {
    return await Promise.race([work(), worker.then(() => Promise.reject(new Error('the worker ended')))]);
  } finally {
    stop.abort();
    await worker;
  }
}

const configWith = (apiKey: string, rest: Record<string, unknown> = {}): Config =>
  workerConfig({
    stateUrl: url,
    queueUrl: undefined,
    sandboxes: { good, strict: { baseUrl: strict.baseUrl, apiKey } },
    rest,
  });

const statusOf = async (source: string): Promise<StreamStatus[]> =>
  (await readStatus(db)).filter((status) => status.source === source);
const requestsTo = (sandbox: Sandbox): number => sandbox.service.log.entries.length;

describe('a refused key', () => {
  const alerts: Alert[] = [];

  it('parks its source with the reason, and is not retried; other sources continue', async () => {
    const hook = await serve((request, response) => {
      request.setEncoding('utf8').on('data', (text: string) => alerts.push(JSON.parse(text) as Alert));
      request.on('end', () => response.end());
    });
    await withWorker(configWith('wrong-key', { alerts: { webhook: hook.baseUrl } }), async () => {
      await until('the source is parked', async () => (await statusOf('strict')).some(({ parked }) => parked));
      const seen = requestsTo(good);
      // Streams that were running when the first was refused send one request each.
      await until('running streams have ended', () => requestsTo(good) > seen + 6);
      const [asked, polled] = [requestsTo(strict), requestsTo(good)];
      await until('the other source is polled again', () => requestsTo(good) > polled + 9);
      expect(requestsTo(strict)).toBe(asked);
      // Three streams may have been running at once; none tries again.
      expect(asked).toBeLessThanOrEqual(3);
      await until('the webhook is called', () => alerts.length > 0);
    });
    const [status] = await statusOf('strict');
    expect(status?.parked).toMatchObject({
      reason: expect.stringContaining('the service answered 401'),
      nextStep: expect.stringContaining('check apiKey'),
    });
    // In about a quarter of an hour.
    const minutes = (Date.parse(status?.nextRunAt ?? '') - Date.now()) / 60_000;
    expect(minutes).toBeGreaterThan(13);
    expect(minutes).toBeLessThan(16);
  });

  it('is reported once: to the webhook, and in the log at error level', () => {
    expect(alerts).toEqual([
      expect.objectContaining({ event: 'opened', kind: 'parked', source: 'strict', stream: '*' }),
    ]);
    expect(lines.filter((line) => line.startsWith('strict parked: '))).toHaveLength(1);
  });

  it('stays parked when a worker starts with the same key', async () => {
    const asked = requestsTo(strict);
    const polled = requestsTo(good);
    await withWorker(configWith('wrong-key'), () => until('the other is polled', () => requestsTo(good) > polled + 5));
    expect(requestsTo(strict)).toBe(asked);
  });

  it('is probed once when due, and then less often', async () => {
    const asked = requestsTo(strict);
    await db.query({ text: `update tributary.parked set next_probe_at = now()` });
    await db.query({ text: `update tributary.schedules set next_run_at = now() where source = 'strict'` });
    await withWorker(configWith('wrong-key'), async () => {
      await until('it is probed', async () => {
        const [row] = await db.query<{ probes: number; rests: number }>({
          text: `select probes, extract(epoch from next_probe_at - now())::float8 / 60 as rests from tributary.parked`,
        });
        return row?.probes === 1 && row.rests > 25;
      });
      const polled = requestsTo(good);
      await until('the other is polled', () => requestsTo(good) > polled + 5);
    });
    expect(requestsTo(strict) - asked).toBe(1);
  });

  it('resumes at once with another key, and reports its recovery once', async () => {
    const ends: Alert[] = [];
    const hook = await serve((request, response) => {
      request.setEncoding('utf8').on('data', (text: string) => ends.push(JSON.parse(text) as Alert));
      request.on('end', () => response.end());
    });
    await withWorker(configWith('right-key', { alerts: { webhook: hook.baseUrl } }), async () => {
      // In any order: on a busy machine one of them is always running.
      await until('all streams are done', async () => {
        const text = `select distinct stream from tributary.runs where source = 'strict' and state = 'done'`;
        return (await db.query({ text })).length === 3;
      });
      await until('the webhook is called', () => ends.length > 0);
    });
    expect(ends).toEqual([
      expect.objectContaining({ event: 'recovered', kind: 'parked', text: 'strict recovered, no longer parked' }),
    ]);
    expect((await statusOf('strict')).map(({ parked }) => parked)).toEqual([null, null, null]);
  });

  it('is nowhere in the database', async () => {
    const everything = await dump(db);
    expect(everything).toContain('the service answered 401');
    for (const secret of ['wrong-key', 'right-key', good.apiKey]) expect(everything).not.toContain(secret);
  });
});

describe('many workers that check for incidents', () => {
  const troubled = async (webhook: string | undefined, times: number): Promise<void> => {
    const deps = { state: db, log, scheduled: byStreamKey([]), sinks: [{ name: 'warehouse' }], webhook };
    await Promise.all(Array.from({ length: times }, () => sendAlerts(deps)));
  };
  const park = (source: string) =>
    db.query({
      text: `insert into tributary.parked (source, stream, fingerprint, reason, next_probe_at) values ($1, '*', 'f', 'no', now())`,
      values: [source],
    });

  it('update the message of an open incident: a refusal, then an outage', async () => {
    const words = async (): Promise<string[]> =>
      (
        await db.query<{ message: string }>({
          text: `select message from tributary.incidents where source = 'changing' and closed_at is null`,
        })
      ).map(({ message }) => message);
    await park('changing');
    await troubled(undefined, 1);
    expect(await words()).toEqual(['stopped, because no']);
    await db.query({
      text: `
        insert into tributary.runs (id, kind, source, stream, state, started_at, finished_at, message)
        values ('changing-1', 'sync', 'changing', 'clicks', 'incomplete', now(), now() + interval '1 s', 'the service does not answer.')`,
    });
    await troubled(undefined, 1);
    expect(await words()).toEqual([
      'stopped: the last try failed, because the service does not answer. Before that: no',
    ]);
    await db.query({
      text: `
        insert into tributary.runs (id, kind, source, stream, state, started_at, finished_at, message)
        values ('changing-2', 'sync', 'changing', 'clicks', 'refused', now() + interval '2 s', now() + interval '3 s', 'no')`,
    });
    await troubled(undefined, 1);
    expect(await words()).toEqual(['stopped, because no']);
  });

  it('send one message, and one when it is over', async () => {
    const seen: string[] = [];
    const hook = await serve((request, response) => {
      request.setEncoding('utf8').on('data', (text: string) => seen.push((JSON.parse(text) as Alert).event));
      request.on('end', () => response.end());
    });
    await park('often');
    await troubled(hook.baseUrl, 5);
    await troubled(hook.baseUrl, 5);
    expect(seen).toEqual(['opened']);
    await db.query({ text: `delete from tributary.parked where source = 'often'` });
    await troubled(hook.baseUrl, 5);
    await troubled(hook.baseUrl, 5);
    expect(seen).toEqual(['opened', 'recovered']);
  });

  it('keep a muted kind in the log, and send text without Slack markup', async () => {
    const seen: Alert[] = [];
    const hook = await serve((request, response) => {
      request.setEncoding('utf8').on('data', (text: string) => seen.push(JSON.parse(text) as Alert));
      request.on('end', () => response.end());
    });
    const deps = { state: db, log, scheduled: byStreamKey([]), sinks: [{ name: 'warehouse' }], webhook: hook.baseUrl };
    await park('quiet');
    await sendAlerts({ ...deps, muted: ['parked'] });
    expect(seen).toEqual([]);
    await db.query({
      text: `insert into tributary.parked (source, stream, fingerprint, reason, next_probe_at)
        values ('loud', '*', 'f', 'says <!channel> & more', now())`,
    });
    await sendAlerts({ ...deps, muted: ['late'] });
    expect(seen.map(({ source, text }) => [source, text])).toEqual([
      ['loud', expect.stringContaining('says &lt;!channel&gt; &amp; more')],
    ]);
    expect(seen[0]?.message).toContain('says <!channel> & more');
  });

  it('resend a message that could not be delivered', async () => {
    let status = 500;
    const hook = await serve((request, response) => {
      request.resume();
      response.writeHead(status).end();
    });
    await park('unheard');
    await troubled(hook.baseUrl, 2);
    await troubled(hook.baseUrl, 2);
    expect(hook.seen).toHaveLength(1);
    status = 200;
    await db.query({ text: `update tributary.incidents set claimed_until = now() where source = 'unheard'` });
    await troubled(hook.baseUrl, 2);
    await troubled(hook.baseUrl, 2);
    expect(hook.seen).toHaveLength(2);
    expect(lines.some((line) => line.includes(hook.baseUrl))).toBe(false);
  });
});

describe('an incident other than a refusal', () => {
  const MINUTE = 60_000;
  const plan: ScheduledStream = {
    job: { source: 'behind', stream: 'leads' } as ScheduledStream['job'],
    schedule: 'every 60000 ms from 0',
    maxLagMs: 30 * MINUTE,
    fingerprint: 'f',
  };
  const found = async (sinks: string[] = ['warehouse']): Promise<string[]> => {
    const all = await findTroubles(db, byStreamKey([plan]), sinks);
    return all.filter(({ source }) => source === 'behind').map(({ kind, message }) => `${kind}: ${message}`);
  };
  const complete = (sink: string, minutesAgo: number) =>
    db.query({
      text: `
        insert into tributary.cursors (source, stream, sink, since, complete_through)
        values ('behind', 'leads', $1, '2026-01-01', now() - make_interval(mins => $2))
        on conflict (source, stream, sink) do update set complete_through = excluded.complete_through`,
      values: [sink, minutesAgo],
    });
  /** In both sinks, by a successful run: from then on the stream can be late. */
  const caughtUp = async (): Promise<void> => {
    await db.query({
      text: `
        insert into tributary.windows (source, stream, sink, start_at, end_at, state, rows, run_id, read_at, proven_at)
        select 'behind', 'leads', s, '2026-01-01', '2026-01-02', 'certified', 1, 'r', now(), now() from unnest(array['warehouse', 'lake']) s`,
    });
    await db.query({
      text: `
        insert into tributary.runs (id, kind, source, stream, state, finished_at)
        values ('caught-up', 'sync', 'behind', 'leads', 'done', now())`,
    });
  };

  it('a stream is late if its slowest sink is', async () => {
    await db.query({
      text: `insert into tributary.schedules (source, stream, plan, created_at) values ('behind', 'leads', 'x', now() - interval '31 minutes')`,
    });
    expect(await found()).toEqual([
      'late: the first sync has not moved for 31 min, more than maxLag (30 min): nothing is proven complete yet',
    ]);
    await caughtUp();
    await complete('warehouse', 20);
    expect(await found()).toEqual([]);
    await complete('lake', 240);
    expect(await found()).toEqual([]);
    expect(await found(['warehouse', 'lake'])).toEqual([
      expect.stringMatching(/^late: 4 h behind, more than maxLag \(30 min\): complete only through 20/),
    ]);
    await complete('warehouse', 40);
    expect(await found()).toEqual([expect.stringMatching(/^late: 40 min behind/)]);
    await complete('warehouse', 1);
  });

  it('a window is reported when a second run could not certify it either', async () => {
    const read = (tries: number) =>
      db.query({
        text: `
          insert into tributary.windows (source, stream, sink, start_at, end_at, state, rows, run_id, note, tries)
          values ('behind', 'leads', 'warehouse', '2026-11-01', '2026-11-02', 'uncertified', 1, 'r', 'ties', $1)
          on conflict (source, stream, sink, start_at) do update set tries = excluded.tries`,
        values: [tries],
      });
    await read(1);
    expect(await found()).toEqual([]);
    await read(2);
    expect(await found()).toEqual([
      'uncertified: 2026-11-01 00:00 to 2026-11-02 00:00 UTC (exclusive) could not be proven complete: ties',
    ]);
    // A sink that the config no longer names is ignored.
    expect(await found(['lake'])).toEqual([expect.stringMatching(/^late: 4 h behind/)]);
    await read(5);
    const status = (await statusOf('behind')).find(({ sink }) => sink === 'warehouse');
    expect(status).toMatchObject({ uncertifiedWindows: 1, parkedWindows: 1 });
  });
});
