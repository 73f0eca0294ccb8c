import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Backfills, Overview } from '../../src/http/api-types.ts';
import { listening, passTo } from '../support/front.ts';
import { type HttpRoom, ROOM_TOKEN, startHttpRoom } from '../support/http-room.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { until, workerConfig } from '../support/workers.ts';

/** A backfill of several streams is one request: all of it is queued, or nothing. */

let database: TestDatabase;
let room: HttpRoom;
let front: Server;
/** What the service does when it is asked for sales. */
let sales: 'answers' | 'refuses' | 'is silent' = 'answers';

beforeAll(async () => {
  const sandbox = await smallSandbox({ rows: { clicks: 300, leads: 60, sales: 40 }, days: 10 });
  const pass = passTo(sandbox);
  front = createServer((request, response) => {
    const isSales = request.url?.includes('event=sales');
    if (!isSales || sales === 'answers') return pass(request, response);
    if (sales === 'refuses') response.writeHead(403, { 'content-type': 'application/json' }).end('{}');
  });
  database = await freshDatabase();
  const sandboxes = { main: { baseUrl: `http://127.0.0.1:${await listening(front)}`, apiKey: sandbox.apiKey } };
  room = await startHttpRoom(
    workerConfig({ stateUrl: database.url, queueUrl: undefined, sandboxes, every: '1h', rest: {} }),
  );
  await until('every stream is synced', async () => {
    const { streams } = await room.json<Overview>('/api/overview');
    return streams.every(({ lastRun }) => lastRun?.state === 'done');
  });
});
afterAll(async () => {
  await room.close();
  front.closeAllConnections();
  front.close();
  await database.drop();
});

const queued = async (): Promise<string[]> =>
  (await room.json<Backfills>('/api/backfills')).backfills.map(({ stream }) => stream).sort();
const RANGE = { from: '9d', to: '2d', force: true };

it('queues nothing where one of its streams is refused', async () => {
  sales = 'refuses';
  const answer = await room.send('POST', '/api/backfills', RANGE);
  expect(answer.ok).toBe(false);
  expect(await queued()).toEqual([]);
});

it('queues nothing where the tab is closed before it is answered', async () => {
  sales = 'is silent';
  const tab = new AbortController();
  const asked = fetch(`${room.url}/api/backfills`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ROOM_TOKEN}` },
    body: JSON.stringify(RANGE),
    signal: tab.signal,
  });
  // Clicks and leads have been priced by then: before, they were queued at once.
  await sleep(1000);
  tab.abort();
  await expect(asked).rejects.toThrow();
  sales = 'answers';
  await sleep(500);
  expect(await queued()).toEqual([]);
});

it('queues all of it where the service answers', async () => {
  expect((await room.send('POST', '/api/backfills', RANGE)).status).toBe(201);
  expect(await queued()).toEqual(['clicks', 'leads', 'sales']);
});
