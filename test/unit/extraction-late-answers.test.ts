import { createServer, type ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { createClient } from '../../src/api/client.ts';
import { createEventsApi } from '../../src/api/events-api.ts';
import { createLimiter } from '../../src/api/limiter.ts';
import { closed, listening } from '../support/front.ts';
import { DAY } from '../support/sandbox-sync.ts';
import { silentLog } from '../support/silent-log.ts';
import { createWrittenSync, plainly, spread, type WrittenEvent } from '../support/written-service.ts';

/** Answers that never end, over HTTP: the client's own timeouts and cut connections, not a status, show that a query is too large. */
type Respond = (response: ServerResponse, asked: { ms: number; rows: WrittenEvent[] }) => void;

const answerFully: Respond = (response, { rows }) => response.end(JSON.stringify(rows));
const begun: Respond = (response, { rows }) => response.write(JSON.stringify(rows).slice(0, 20));

test.each<[string, Respond]>([
  ['ranges above 30 days are not answered', (response, asked) => asked.ms <= 30 * DAY && answerFully(response, asked)],
  [
    'ranges above 30 days get only the start of an answer',
    (response, asked) => (asked.ms <= 30 * DAY ? answerFully : begun)(response, asked),
  ],
  [
    'of pages above 400 rows an answer begins',
    (response, asked) => (asked.rows.length <= 400 ? answerFully : begun)(response, asked),
  ],
  [
    'a proxy closes the connection amid pages above 400 rows',
    (response, asked) => {
      if (asked.rows.length <= 400) return answerFully(response, asked);
      response.setHeader('content-length', 1e6);
      begun(response, asked);
      setTimeout(() => response.destroy(), 5);
    },
  ],
])('%s: the sync is complete', async (_name, respond) => {
  const now = Date.now();
  const events = spread(3000, now - 120 * DAY, now);
  const server = createServer((request, response) => {
    const asked = new URL(request.url ?? '', 'http://service').searchParams;
    const [start = 0, end = 0] = ['start', 'end'].map((name) => Date.parse(asked.get(name) ?? ''));
    const [page = 0, limit = 0] = ['page', 'limit'].map((name) => Number(asked.get(name)));
    const query = { start, end, page, limit };
    const rows = plainly(
      { ...query, sortOrder: asked.get('sortOrder') as 'asc', stream: 'clicks', filters: {} },
      events,
    );
    respond(response, { ms: query.end - query.start, rows });
  });
  const baseUrl = `http://127.0.0.1:${await listening(server)}`;
  try {
    const client = createClient({ baseUrl, apiKey: 'key_1', timeouts: { headersMs: 150, idleMs: 150 } });
    const limiter = createLimiter({ requestsPerSecond: 500 });
    const api = createEventsApi({ client, limiter, log: silentLog, retries: { firstWaitMs: 1 } });
    const options = { api, since: now - 122 * DAY, now: Date.now };
    const sync = createWrittenSync({ events, answers: plainly }, options);
    const { error } = await sync.run();
    expect(error).toBeUndefined();
    expect(events.filter(({ id }) => !sync.sink.rows.has(id))).toEqual([]);
    expect(sync.watermark()).toBeGreaterThan(now - DAY);
    expect(api.stats().requests).toBeLessThan(150);
  } finally {
    server.closeAllConnections();
    await closed(server);
  }
});
