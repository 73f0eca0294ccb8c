import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import type { Backfills } from '../../src/http/api-types.ts';
import { emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { listening, passTo } from '../support/front.ts';
import { ROOM_TOKEN, syncedRoom } from '../support/http-room.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { workerConfig } from '../support/workers.ts';

/** A backfill of several streams is one request: all of it is queued, or nothing. */

/** The behaviour of the service for sales. */
let sales: 'answers' | 'refuses' | 'is silent' = 'answers';

const sandbox = await smallSandbox({ rows: { clicks: 300, leads: 60, sales: 40 }, days: 10 });
const pass = passTo(sandbox);
const front = createServer((request, response) => {
  const isSales = request.url?.includes('event=sales');
  if (!isSales || sales === 'answers') return pass(request, response);
  if (sales === 'refuses') response.writeHead(403, { 'content-type': 'application/json' }).end('{}');
});
afterAll(() => {
  front.closeAllConnections();
  front.close();
});
const { url } = await forThisFile(emptyEngine());
const sandboxes = { main: { baseUrl: `http://127.0.0.1:${await listening(front)}`, apiKey: sandbox.apiKey } };
const room = await forThisFile(
  syncedRoom(workerConfig({ stateUrl: url, queueUrl: undefined, sandboxes, every: '1h', rest: {} })),
);

const queued = async (): Promise<string[]> =>
  (await room.json<Backfills>('/api/backfills')).backfills.map(({ stream }) => stream).sort();
const RANGE = { from: '9d', to: '2d', force: true };

it('queues nothing if one of its streams is refused', async () => {
  sales = 'refuses';
  const answer = await room.send('POST', '/api/backfills', RANGE);
  expect(answer.ok).toBe(false);
  expect(await queued()).toEqual([]);
});

it('queues nothing if the client disconnects before the answer', async () => {
  sales = 'is silent';
  const tab = new AbortController();
  const asked = fetch(`${room.url}/api/backfills`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ROOM_TOKEN}` },
    body: JSON.stringify(RANGE),
    signal: tab.signal,
  });
  // Clicks and leads are priced by then: earlier versions queued them at once.
  await sleep(1000);
  tab.abort();
  await expect(asked).rejects.toThrow();
  sales = 'answers';
  await sleep(500);
  expect(await queued()).toEqual([]);
});

it('queues everything if the service answers', async () => {
  expect((await room.send('POST', '/api/backfills', RANGE)).status).toBe(201);
  expect(await queued()).toEqual(['clicks', 'leads', 'sales']);
});
