import { connect as connectSocket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LiveEvent, Readiness } from '../../src/http/api-types.ts';
import { createEvents } from '../../src/http/live.ts';
import { type Engine, emptyEngine } from '../support/engine.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { type HttpRoom, listenTo, syncedRoom } from '../support/http-room.ts';
import { serve } from '../support/http-server.ts';
import { hasRedis, startRedis, type TestRedis } from '../support/redis.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { until, workerConfig } from '../support/workers.ts';

let engine: Engine;
let redis: TestRedis;
let line: FaultProxy;
let room: HttpRoom;

beforeAll(async () => {
  [engine, redis] = await Promise.all([emptyEngine(), startRedis()]);
  line = await startFaultProxy(engine.url);
  const sandbox = await smallSandbox();
  const config = { stateUrl: line.url, queueUrl: redis.url, sandboxes: { main: sandbox }, every: '1h' };
  room = await syncedRoom(workerConfig(config));
});
afterAll(async () => {
  await room.close();
  await line.close();
  await engine.close();
});

const kinds = (events: readonly LiveEvent[]): string[] => events.map(({ event }) => event);
const topicsOf = (events: readonly LiveEvent[]): string[] =>
  events.flatMap((one) => (one.event === 'changed' ? one.data.topics : []));
const setAside = (digest: string) =>
  engine.db.query({
    text: `insert into tributary.quarantine (source, stream, digest, reason, record, run_id) values ('main', 'leads', $1, 'odd', '{}', 'r')`,
    values: [digest],
  });
const readiness = async (): Promise<Readiness & { status: number }> => {
  const response = await room.get('/readyz');
  return { status: response.status, ...((await response.json()) as Readiness) };
};
const broken = async (): Promise<string[]> => (await readiness()).parts.filter(({ ok }) => !ok).map(({ name }) => name);

describe.skipIf(!hasRedis)('live', () => {
  it('sends the current state, then only changes, to all listeners', async () => {
    const [one, two] = await Promise.all([listenTo(room.url), listenTo(room.url)]);
    await until('both have the current state', () =>
      [one, two].every(({ events }) => kinds(events).includes('overview')),
    );
    expect(kinds(one.events).sort()).toEqual(['overview', 'readiness']);
    await setAside('a');
    await until('both got the change', () => [one, two].every(({ events }) => topicsOf(events).includes('quarantine')));
    for (const { events } of [one, two]) {
      expect(topicsOf(events)).toEqual(['quarantine']);
      const overviews = events.flatMap((event) => (event.event === 'overview' ? [event.data] : []));
      expect(overviews.map(({ streams }) => streams[1]?.quarantined)).toEqual([0, 1]);
    }
    // Without changes, only heartbeats are sent.
    const [before, beats] = [one.events.length, one.beats()];
    await until('two heartbeats have passed', () => one.beats() >= beats + 2);
    expect(one.events.length).toBe(before);
    one.close();
    two.close();
  });

  it('a browser that reconnects gets what it missed, once; after too long it starts over', async () => {
    const first = await listenTo(room.url);
    await until('it has the current state', () => kinds(first.events).includes('overview'));
    first.close();
    const lastId = first.events.at(-1)?.id ?? '';
    const watcher = await listenTo(room.url);
    await setAside('b');
    await until('another listener got the change', () => topicsOf(watcher.events).includes('quarantine'));
    const back = await listenTo(room.url, lastId);
    await until('it got the change too', () => topicsOf(back.events).includes('quarantine'));
    expect(topicsOf(back.events)).toEqual(['quarantine']);
    expect(kinds(back.events)).not.toContain('reset');
    expect(new Set(back.events.map(({ id }) => id)).size).toBe(back.events.length);
    const expired = await listenTo(room.url, 'cafe0000.7');
    await until('it has the current state', () => kinds(expired.events).includes('overview'));
    expect(kinds(expired.events)[0]).toBe('reset');
    for (const each of [watcher, back, expired]) each.close();
  });
});

describe.skipIf(!hasRedis)('many listeners', () => {
  it('are refused above the limit, and admitted when one leaves', async () => {
    const all = await Promise.all(Array.from({ length: 200 }, () => listenTo(room.url)));
    const late = await room.get('/api/events');
    expect([late.status, late.headers.get('retry-after')]).toEqual([503, '30']);
    expect(await late.json()).toMatchObject({ error: { message: '200 pages are already connected' } });
    expect((await room.get('/api/overview')).status).toBe(200);
    all.pop()?.close();
    await until('a place is free', async () => {
      const one = await listenTo(room.url).catch(() => undefined);
      one?.close();
      return one !== undefined;
    });
    for (const each of all) each.close();
  });

  it('do not fill the memory: a slow one is dropped, the others continue', async () => {
    const sends = new Set<(text: string) => void>();
    const live = {
      subscribe(send: (text: string) => void) {
        send('retry: 2000\n\n');
        sends.add(send);
        return () => sends.delete(send);
      },
    };
    const events = createEvents(live, { holds: () => true, onChange: () => {} });
    const visitor = { name: 'x', role: 'read', session: undefined, grant: '' } as const;
    const { port, baseUrl } = await serve((_, response) => events.serve(response, visitor, undefined, {}));
    const sleeper = connectSocket(port, '127.0.0.1').pause();
    sleeper.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    const reader = await listenTo(baseUrl);
    await until('both listen', () => sends.size === 2);
    const text = `id: 1.1\nevent: reset\ndata: ${JSON.stringify('x'.repeat(100_000))}\n\n`;
    let sent = 0;
    for (; sends.size === 2; sent++) {
      for (const send of sends) send(text);
      await until('the reader has received it', () => reader.events.length > sent);
    }
    // Socket buffers of the system, and a megabyte of ours.
    expect(sent * text.length).toBeLessThan(20_000_000);
    sleeper.destroy();
    reader.close();
  });
});

describe.skipIf(!hasRedis)('health', () => {
  it('is ready while all is well', async () => {
    expect(await readiness()).toMatchObject({ status: 200, ready: true });
    expect((await readiness()).parts.map(({ name }) => name)).toEqual(['state', 'queue']);
  });

  it('reports that the queue is unavailable, stays alive, and reports its return', async () => {
    const watcher = await listenTo(room.url);
    const lastReadiness = () =>
      watcher.events.flatMap((event) => (event.event === 'readiness' ? [event.data.ready] : [])).at(-1);
    await until('it was sent ready', () => lastReadiness() === true);
    await redis.stop();
    await until('the queue is unavailable', async () => (await broken()).includes('queue'));
    expect(await broken()).toEqual(['queue']);
    expect((await readiness()).status).toBe(503);
    expect((await room.get('/healthz')).status).toBe(200);
    expect((await room.get('/api/overview')).status).toBe(200);
    expect(await (await room.get('/metrics')).text()).toMatch(/tributary_up{part="queue"} 0/);
    await until('it was sent not ready', () => lastReadiness() === false);
    await redis.start();
    await until('the queue is back', async () => (await readiness()).ready);
    await until('it was sent ready again', () => lastReadiness() === true);
    watcher.close();
  });

  it('reports that the state is unavailable, stays alive, and reports its return', async () => {
    const watcher = await listenTo(room.url);
    await line.fail({ kind: 'refuse' });
    await until('the state is unavailable', async () => (await broken()).includes('state'));
    expect(await broken()).toEqual(['state']);
    expect((await room.get('/healthz')).status).toBe(200);
    const answer = await room.get('/api/overview');
    expect([answer.status, ((await answer.json()) as { error: { message: string } }).error.message]).toEqual([
      503,
      expect.stringMatching(/Postgres|database/i),
    ]);
    const metrics = await (await room.get('/metrics')).text();
    expect(metrics).toMatch(/tributary_up{part="state"} 0/);
    // An unknown value is not reported as zero.
    expect(metrics).not.toMatch(/tributary_lag_seconds{/);
    await line.heal();
    await until('the state is back', async () => (await readiness()).ready);
    watcher.close();
  });
});

describe.skipIf(!hasRedis)('shutdown', () => {
  it('ends event streams', async () => {
    const watcher = await listenTo(room.url);
    await room.close();
    await watcher.ended;
    expect(await room.get('/healthz').catch(() => 'gone')).toBe('gone');
  });
});
