import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { openFeed, recordOf } from '../support/feed.ts';
import { keysOf, partsOf, SALES, saleAt } from '../support/months.ts';
import { postgresPlace } from '../support/postgres-place.ts';
import { startStock, stockPostgres } from '../support/servers.ts';
import { createWriter, receipt } from '../support/sink-harness.ts';
import { sinkSuite } from '../support/sink-suite.ts';

/** The oldest supported server, as the distribution ships it. */

const bin = stockPostgres(15);
if (bin === undefined) {
  it('Postgres 15 is not installed: nothing was tested on it', () => expect(bin).toBeUndefined());
} else {
  describe('stock Postgres 15', () => {
    let server: Awaited<ReturnType<typeof startStock>>;
    beforeAll(async () => {
      server = await startStock(bin);
    });
    afterAll(() => server.close());

    it('has its version', async () => {
      const db = connect({ url: server.url, max: 1 });
      const [version] = await db.query<{ server_version: string }>({ text: 'show server_version' });
      await db.close();
      expect(version?.server_version).toMatch(/^15\./);
    });

    it('evolves, widens, marks and shows its views', async () => {
      const place = await postgresPlace({ schema: 'attribution', server: server.url });
      try {
        for (const name of STREAM_NAMES) await place.createSink().prepare(STREAMS[name]);
        const { send } = await openFeed({ state: place.state, sinks: [place.createSink()], stream: 'sales' });
        const seen = [1, 0.5, 'x', { deep: 1 }];
        for (const [i, value] of seen.entries()) await send([recordOf(`e${i}`, { grows: value, link: { id: 'l' } })]);
        const shown = await place.db.query({ text: 'select grows from attribution.sales order by event_id' });
        expect(shown).toEqual([{ grows: '1' }, { grows: '0.5' }, { grows: 'x' }, { grows: { deep: 1 } }]);
        expect(await place.db.query({ text: 'select sales from attribution.daily_link_performance' })).toEqual([
          { sales: 4 },
        ]);
        expect(await place.db.query({ text: 'select stream from attribution.coverage' })).toEqual([
          { stream: 'sales' },
        ]);
      } finally {
        await place.close();
      }
    });

    it('moves an event from one month to another', async () => {
      const place = await postgresPlace({ schema: 'attribution', server: server.url, partition: 'month' });
      try {
        await place.createSink().prepare(SALES);
        const writer = await createWriter(place, SALES);
        const { source } = writer.lease;
        expect(await writer.commit([saleAt('a', '2026-01-31T00:00:00Z')])).toEqual(receipt({ new: 1 }));
        expect(await writer.commit([saleAt('a', '2026-02-01T00:00:00Z')])).toEqual(receipt({ changed: 1 }));
        expect(await partsOf(place, source)).toEqual(['a in sales_2026_02']);
        expect(await keysOf(place, source)).toEqual(['a in sales_2026_02']);
      } finally {
        await place.close();
      }
    });

    sinkSuite('stock Postgres 15', () => postgresPlace({ server: server.url }));
    sinkSuite('stock Postgres 15, in monthly partitions', () =>
      postgresPlace({ server: server.url, partition: 'month' }),
    );
  });
}
