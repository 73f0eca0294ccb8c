import { join } from 'node:path';
import { expect, it } from 'vitest';
import { peakBytesOf } from '../../bench/support/proc.ts';
import { connect } from '../../src/cursor/database/index.ts';
import { freshPlace } from '../support/cli.ts';
import { serve } from '../support/http-server.ts';
import { largeRows } from '../support/large-rows.ts';
import { freshDatabase } from '../support/postgres.ts';

/** Pages of 25 MB are legal; what is held of them at a time is bounded in bytes, whatever the number of streams and sinks. */

const MB = 2 ** 20;
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
  const sync = place.start(['sync', '--config', config]);
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
