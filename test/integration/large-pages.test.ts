import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { peakBytesOf } from '../../bench/support/proc.ts';
import { connect } from '../../src/cursor/database/index.ts';
import { freshPlace } from '../support/cli.ts';
import { serve } from '../support/http-server.ts';
import { freshDatabase } from '../support/postgres.ts';

/** A service with large rows: so many per stream, a second apart, with so many bytes of metadata each. */
interface LargeRows {
  rows: number;
  rowBytes: number;
  /** When the newest of them happened. */
  newest: number;
}

const APART_MS = 1000;

function largeRows({ rows, rowBytes, newest }: LargeRows): RequestListener {
  const oldest = newest - (rows - 1) * APART_MS;
  return (request, response) => {
    const asked = new URL(request.url ?? '/', 'http://localhost').searchParams;
    const [page, limit] = [Number(asked.get('page')), Number(asked.get('limit'))];
    const first = Math.max(0, Math.ceil((Date.parse(asked.get('start') ?? '') - oldest) / APART_MS));
    const last = Math.min(rows - 1, Math.ceil((Date.parse(asked.get('end') ?? '') - oldest) / APART_MS) - 1);
    const shown = Math.max(0, Math.min(limit, last - first + 1 - (page - 1) * limit));
    const isAscending = asked.get('sortOrder') === 'asc';
    response.writeHead(200, { 'content-type': 'application/json' });
    const line = Array.from({ length: shown }, (_, i) => {
      const place = (page - 1) * limit + i;
      const at = isAscending ? first + place : last - place;
      return JSON.stringify(rowOf(asked.get('event') ?? '', at, oldest + at * APART_MS, rowBytes));
    });
    response.end(`[${line.join()}]`);
  };
}

/** All rows differ, so that compression and comparison gain nothing. */
function rowOf(event: string, i: number, at: number, bytes: number): object {
  const word = `${event} ${i} ${((i * 2_654_435_761) % 2 ** 32).toString(36)} `;
  const text = word.repeat(Math.ceil(bytes / word.length)).slice(0, bytes);
  return {
    event: event.replace(/s$/, ''),
    timestamp: new Date(at).toISOString(),
    eventId: `${event}-${i}`,
    eventName: 'large',
    click: { id: `click-${i}` },
    customer: { id: `customer-${i}` },
    metadata: { text },
  };
}

/** Pages of 25 MB are legal; memory for them is limited in bytes, for any number of streams and sinks. */

const MB = 2 ** 20;
// Node's own choice in a container with 512 MB. Without it, garbage stays as long as the machine is busy, however little is live.
const HEAP_OF_512_MB = '--max-old-space-size=256';
const ROWS = 3000;

it('pages of 25 MB of three streams into three sinks take less than 512 MB', async () => {
  const newest = Math.floor(Date.now() / 1000) * 1000 - 3_600_000;
  const { baseUrl } = await serve(largeRows({ rows: ROWS, rowBytes: 25_000, newest }));
  const [place, database] = [await freshPlace(), await freshDatabase()];
  const config = await place.config(
    JSON.stringify({
      sources: {
        main: {
          ...{ baseUrl, apiKey: 'key_of_the_test', plan: 'enterprise', requestsPerSecond: 50, since: '2d' },
          streams: { clicks: {}, leads: {}, sales: {} },
        },
      },
      state: { url: database.url },
      sinks: {
        warehouse: { type: 'postgres', schema: 'large' },
        lake: { type: 'parquet', path: join(place.dir, 'lake') },
        tables: { type: 'iceberg', warehouse: join(place.dir, 'tables') },
      },
    }),
  );
  const sync = place.start(['sync', '--config', config], { NODE_OPTIONS: HEAP_OF_512_MB });
  let peak = 0;
  const looking = setInterval(() => {
    peak = Math.max(peak, peakBytesOf(sync.pid) ?? 0);
  }, 50);
  const { code, text } = await sync.done;
  clearInterval(looking);
  expect(code, text).toBe(0);
  const db = connect({ url: database.url });
  const [held] = await db.query({
    text: `select (select count(*) from large.clicks)::int + (select count(*) from large.leads)::int
      + (select count(*) from large.sales)::int as rows`,
    values: [],
  });
  await db.close();
  expect(held).toEqual({ rows: 3 * ROWS });
  expect(peak / MB).toBeLessThan(512);
}, 600_000);
