import type { Row } from '../../src/model/flatten.ts';
import { STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { ofFile, type PostgresPlace, postgresPlace } from './postgres-place.ts';
import { rowOf } from './sink-harness.ts';

/** Sales in monthly partitions, in the test file's own place. */

export const SALES = STREAMS.sales;

export const monthsPlace = () =>
  ofFile(
    async () => {
      const place = await postgresPlace({ schema: 'attribution', partition: 'month' });
      for (const name of STREAM_NAMES) await place.createSink().prepare(STREAMS[name]);
      return place;
    },
    (place) => place.close(),
  );

export const saleAt = (id: string, time: string, amount = 1): Row =>
  rowOf(SALES, id, Date.parse(time), { sale_amount: amount });

/** The partition of each event of a source; a duplicate is listed twice. */
export async function partsOf({ db }: PostgresPlace, source: string): Promise<string[]> {
  const rows = await db.query<{ id: string; part: string }>({
    text: `
      select event_id as id, c.relname as part from attribution.sales s join pg_class c on c.oid = s.tableoid
      where _source = $1 order by 1, 2`,
    values: [source],
  });
  return rows.map(({ id, part }) => `${id} in ${part}`);
}

/** The partition that the key of each event leads to. */
export async function keysOf({ db }: PostgresPlace, source: string): Promise<string[]> {
  const rows = await db.query<{ key: string }>({
    text: `
      select event_id || to_char("timestamp" at time zone 'UTC', '" in sales_"YYYY_MM') as key
      from attribution._sales_keys where _source = $1 order by 1`,
    values: [source],
  });
  return rows.map(({ key }) => key);
}
