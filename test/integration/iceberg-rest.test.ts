import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RetryLater } from '../../src/model/errors.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { closed, listening } from '../support/front.ts';
import { type IcebergPlace, icebergRestPlace, KEEP_NOTHING } from '../support/iceberg-place.ts';
import { certified, createWriter, MINUTE, NOON, rowOf, rowsOf } from '../support/sink-harness.ts';
import { sinkSuite } from '../support/sink-suite.ts';

/** The fate of a request: `pass` forwards it; a status is answered instead, before it is forwarded or after it took effect. */
type Fate = 'pass' | { before: number } | { after: number };

/** A proxy of a real catalog that injects faults. */
async function catalogProxy(target: string, fateOf: (method: string, path: string, token: string) => Fate) {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const [method, path] = [request.method ?? 'GET', request.url ?? '/'];
    const fate = fateOf(method, path, (request.headers.authorization ?? '').replace('Bearer ', ''));
    const refuse = (status: number): void => void response.writeHead(status).end('{}');
    if (typeof fate === 'object' && 'before' in fate) return refuse(fate.before);
    const answer = await fetch(target + path, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const text = await answer.text();
    if (typeof fate === 'object') return refuse(fate.after);
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  });
  return { uri: `http://127.0.0.1:${await listening(server)}`, close: () => closed(server) };
}

/**
 * Needs a real catalog at TRIBUTARY_ICEBERG_REST. `npm run interop -- iceberg-rest` starts the reference server of Iceberg
 * and runs this.
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

    it('loses and duplicates nothing, however often the state misses a commit', async () => {
      const stream = STREAMS.sales;
      const writer = await createWriter(place, stream, 'one');
      const sale = (id: string, minute: number, amount = 1) =>
        rowOf(stream, id, NOON + minute * MINUTE, { sale_amount: amount });
      await writer.commit([sale('a', 0)]);
      // The table has already changed: only COMMIT itself fails.
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

    it('joins, expires and forgets', async () => {
      const stream = STREAMS.sales;
      const writer = await createWriter(place, stream, 'two');
      for (let i = 0; i < 3; i++) await writer.commit([rowOf(stream, `e${i}`, NOON + i * MINUTE)]);
      const sink = place.createSink(KEEP_NOTHING);
      const done = Object.entries(await sink.maintain()).find(([name]) => name.endsWith('.sales'))?.[1];
      expect(done).toMatchObject({ joined: expect.any(Number), files: 2 });
      // The next maintenance removes the files that joining replaced.
      await sink.maintain();
      expect((await place.lookAt('sales')).metadata.snapshots).toHaveLength(1);
      await sink.erase({ source: 'two', kind: 'source' });
      expect((await rowsOf(place, stream, 'two')).size).toBe(0);
      expect((await rowsOf(place, stream, 'one')).size).toBe(4);
    });

    it('keeps its identity through our commits, including those that the state missed, and loses it when dropped', async () => {
      const stream = STREAMS.sales;
      const writer = await createWriter(place, stream, 'three');
      const sink = place.createSink();
      const window = { start: NOON, end: NOON + 60 * MINUTE };
      const identify = () => sink.identify(place.state, { source: 'three', stream: 'sales' });
      await writer.commit([rowOf(stream, 'a', NOON)]);
      // The first check records what happened before.
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

  describe('that fails in the middle', () => {
    let fate: Fate = 'pass';
    let valid = 'first';
    let token = 'first';
    let place: IcebergPlace;
    const opened: Array<() => Promise<void>> = [];
    beforeAll(async () => {
      const proxy = await catalogProxy(uri, (method, path, sent) => {
        if (sent !== valid) return { before: 401 };
        return method === 'POST' && path.endsWith('/tables/sales') ? fate : 'pass';
      });
      place = await icebergRestPlace(proxy.uri, () => token);
      opened.push(() => place.close(), proxy.close);
      await place.createSink().prepare(STREAMS.sales);
    });
    afterAll(async () => {
      for (const close of opened) await close();
    });

    const stream = STREAMS.sales;
    const sale = (id: string, minute: number) => rowOf(stream, id, NOON + minute * MINUTE);
    const held = async (): Promise<number> => (await rowsOf(place, stream, 'one')).size;

    it('counts a commit that succeeded before a 5xx, and repeats one that did not; nothing is duplicated', async () => {
      const writer = await createWriter(place, stream, 'one');
      const sink = place.createSink();
      await writer.commit([sale('a', 0)]);
      await sink.attest(stream, 'one', []);
      const identity = await sink.identify(place.state, { source: 'one', stream: 'sales' });
      fate = { after: 503 };
      expect(await writer.commit([sale('b', 1)])).toMatchObject({ new: 1 });
      fate = { before: 502 };
      await expect(writer.commit([sale('c', 2)])).rejects.toThrow(RetryLater);
      expect(await held()).toBe(2);
      fate = 'pass';
      expect(await writer.commit([sale('a', 0), sale('b', 1), sale('c', 2)])).toMatchObject({ new: 1, unchanged: 2 });
      expect(await held()).toBe(3);
      expect(await sink.identify(place.state, { source: 'one', stream: 'sales' })).toBe(identity);
      await writer.lease.release();
    });

    it('refuses a commit over one of another program (409), and merges into the new version', async () => {
      const writer = await createWriter(place, stream, 'one');
      fate = { before: 409 };
      await expect(writer.commit([sale('d', 3)])).rejects.toThrow(/another program changed the Iceberg table/);
      fate = 'pass';
      expect(await writer.commit([sale('c', 2), sale('d', 3)])).toMatchObject({ new: 1, unchanged: 1 });
      expect(await held()).toBe(4);
      await writer.lease.release();
    });

    it('reports expired credentials, loses nothing, and continues with new ones', async () => {
      const writer = await createWriter(place, stream, 'one');
      valid = 'second';
      await expect(writer.commit([sale('e', 4)])).rejects.toThrow(/refused .*401/);
      token = 'second';
      await writer.lease.release();
      const again = await createWriter(place, stream, 'one');
      expect(await again.commit([sale('d', 3), sale('e', 4)])).toMatchObject({ new: 1, unchanged: 1 });
      expect(await held()).toBe(5);
    });

    it('records progress in its properties, without a snapshot', async () => {
      const writer = await createWriter(place, stream, 'two');
      await writer.commit([sale('a', 0)], { spans: [certified(NOON, NOON + MINUTE, 1)] });
      const before = (await place.lookAt('sales')).metadata.snapshots.length;
      await writer.commit([], { spans: [certified(NOON + MINUTE, NOON + 30 * MINUTE)] });
      await place.createSink().publishProgress({ source: 'two', stream: 'sales' });
      const { metadata } = await place.lookAt('sales');
      expect(metadata.snapshots).toHaveLength(before);
      expect(metadata.properties).toMatchObject({ 'tributary.complete-through.two': '2026-11-14T12:30:00.000Z' });
    });
  });
});
