import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { type IcebergPlace, icebergRestPlace } from '../support/iceberg-place.ts';
import { createWriter, MINUTE, NOON, rowOf, rowsOf } from '../support/sink-harness.ts';
import { sinkSuite } from '../support/sink-suite.ts';

/**
 * Against a real catalog, which somebody has to start: TRIBUTARY_ICEBERG_REST is its address. The reference server of Iceberg
 * (`org.apache.iceberg.rest.RESTCatalogServer`, in the test fixtures of iceberg-open-api) will do.
 */
const uri = process.env.TRIBUTARY_ICEBERG_REST ?? '';

describe.skipIf(uri === '')('a REST catalog', () => {
  sinkSuite('Iceberg tables by a REST catalog', () => icebergRestPlace(uri));

  describe('that is ahead of the state', () => {
    let place: IcebergPlace;
    beforeAll(async () => {
      place = await icebergRestPlace(uri);
      await place.createSink().prepare(STREAMS.sales);
    });
    afterAll(() => place.close());

    it('loses and doubles nothing, however often the state fails to hear of a commit', async () => {
      const stream = STREAMS.sales;
      const writer = await createWriter(place, stream, 'one');
      const sale = (id: string, minute: number, amount = 1) =>
        rowOf(stream, id, NOON + minute * MINUTE, { sale_amount: amount });
      await writer.commit([sale('a', 0)]);
      // The table has changed by then: only COMMIT itself fails.
      await place.state.query({
        text: "create function fails() returns trigger language plpgsql as $$ begin raise exception 'no commit'; end $$",
      });
      await place.state.query({
        text: `create constraint trigger fails after insert or update on tributary.cursors
          deferrable initially deferred for each row execute function fails()`,
      });
      await expect(writer.commit([sale('b', 1), sale('a', 0, 2)])).rejects.toThrow();
      await expect(writer.commit([sale('c', 2)])).rejects.toThrow();
      expect((await rowsOf(place, stream, 'one')).size).toBe(3);
      await place.state.query({ text: 'drop trigger fails on tributary.cursors' });
      expect(await writer.commit([sale('a', 0, 2), sale('b', 1), sale('c', 2), sale('d', 3)])).toMatchObject({
        new: 1,
        unchanged: 3,
      });
      expect((await rowsOf(place, stream, 'one')).size).toBe(4);
    });

    it('joins, lets go and forgets', async () => {
      const stream = STREAMS.sales;
      const writer = await createWriter(place, stream, 'two');
      for (let i = 0; i < 3; i++) await writer.commit([rowOf(stream, `e${i}`, NOON + i * MINUTE)]);
      const sink = place.createSink({ keepMs: -60_000, orphanMs: -60_000 });
      const done = Object.entries(await sink.maintain()).find(([name]) => name.endsWith('.sales'))?.[1];
      expect(done).toMatchObject({ joined: expect.any(Number), files: 2 });
      expect((await place.lookAt('sales')).metadata.snapshots).toHaveLength(1);
      await sink.erase({ source: 'two', kind: 'source' });
      expect((await rowsOf(place, stream, 'two')).size).toBe(0);
      expect((await rowsOf(place, stream, 'one')).size).toBe(4);
    });

    it('is the same through commits of ours, also those that the state did not hear of, and another one once it is dropped', async () => {
      const stream = STREAMS.sales;
      const writer = await createWriter(place, stream, 'three');
      const sink = place.createSink();
      const window = { start: NOON, end: NOON + 60 * MINUTE };
      const identify = () => sink.identify(place.state, { source: 'three', stream: 'sales' }, undefined);
      await writer.commit([rowOf(stream, 'a', NOON)]);
      // The first look takes note of what happened before.
      expect(await sink.attest(stream, 'three', [window])).toEqual([{ rows: 1 }]);
      const identity = await identify();
      await writer.commit([rowOf(stream, 'b', NOON + MINUTE)]);
      expect(await identify()).toBe(identity);
      await place.state.query({
        text: `create constraint trigger fails after insert or update on tributary.cursors
          deferrable initially deferred for each row execute function fails()`,
      });
      await expect(writer.commit([rowOf(stream, 'c', NOON + 2 * MINUTE)])).rejects.toThrow();
      await place.state.query({ text: 'drop trigger fails on tributary.cursors' });
      expect(await identify()).toBe(identity);
      expect(await sink.attest(stream, 'three', [window])).toEqual([{ rows: 3 }]);
      const [namespace] = (sink.tableOf?.('sales') ?? '').split('.');
      const dropped = await fetch(`${uri}/v1/namespaces/${namespace}/tables/sales`, { method: 'DELETE' });
      expect(dropped.ok).toBe(true);
      expect(await identify()).not.toBe(identity);
      expect(await sink.attest(stream, 'three', [window])).toEqual([{ rows: 0 }]);
    });
  });
});
