import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lastCommit, readCursor } from '../../src/cursor/cursors.ts';
import { acquireLease } from '../../src/cursor/leases.ts';
import { readLedger } from '../../src/cursor/ledger.ts';
import { createFlattenLink } from '../../src/extract/links/link-row.ts';
import type { Row } from '../../src/model/flatten.ts';
import { STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { growthSuite } from './sink-growth.ts';
import {
  asEntries,
  certified,
  createWriter,
  type MakeSink,
  MINUTE,
  NOON,
  newSource,
  receipt,
  rowOf,
  rowsOf,
  type SinkPlace,
} from './sink-harness.ts';
import { valueSuite } from './sink-values.ts';

/**
 * The requirements for every sink. A new sink is a folder that passes this suite: its test opens it
 * on a new place and reads the rows back.
 */
export function sinkSuite(name: string, makeSink: MakeSink): void {
  describe(`sink: ${name}`, () => {
    const stream = STREAMS.sales;
    const DAY = 24 * 60;
    let place: SinkPlace;

    beforeAll(async () => {
      place = await makeSink();
      for (const known of STREAM_NAMES) await place.createSink().prepare(STREAMS[known]);
    });
    afterAll(() => place.close());

    const sale = (id: string, minute = 0, amount = 1, extra: Row['extra'] = null): Row =>
      rowOf(stream, id, NOON + minute * MINUTE, { sale_amount: amount }, extra);

    it('prepares repeatedly, and from several processes at once', async () => {
      const fresh = await makeSink();
      try {
        const crowd = Array.from({ length: 4 }, () => fresh.createSink());
        await Promise.all(crowd.flatMap((sink) => STREAM_NAMES.map((known) => sink.prepare(STREAMS[known]))));
        const writer = await createWriter(fresh, stream);
        await writer.commit([sale('kept')]);
        await fresh.createSink().prepare(stream);
        expect(await fresh.readRows(stream)).toHaveLength(1);
        expect(await fresh.readRows(STREAMS.clicks)).toEqual([]);
      } finally {
        await fresh.close();
      }
    });

    it('counts new, changed and unchanged rows in every batch', async () => {
      const writer = await createWriter(place, stream);
      expect(await writer.commit([sale('a'), sale('b'), sale('c')])).toEqual(receipt({ new: 3 }));
      const again = [sale('a'), sale('b', 0, 2), sale('d')];
      expect(await writer.commit(again, { runId: '20261114T120000-00000002' })).toEqual(
        receipt({ new: 1, changed: 1, unchanged: 1 }),
      );
      const rows = await rowsOf(place, stream, writer.lease.source);
      expect([...rows.values()].map((row) => [row.event_id, row.sale_amount, row._run_id]).sort()).toEqual([
        ['a', 1, '20261114T120000-00000001'],
        ['b', 2, '20261114T120000-00000002'],
        ['c', 1, '20261114T120000-00000001'],
        ['d', 1, '20261114T120000-00000002'],
      ]);
    });

    it("keeps the time of a row's first write, and updates the last only with the row", async () => {
      const writer = await createWriter(place, stream);
      const stored = async () => (await rowsOf(place, stream, writer.lease.source)).get('a');
      await writer.commit([sale('a')]);
      const first = await stored();
      await writer.commit([sale('a')]);
      expect(await stored()).toEqual(first);
      await writer.commit([sale('a', 0, 2)]);
      const changed = await stored();
      expect(changed?._first_synced_at).toBe(first?._first_synced_at);
      expect(Number(changed?._synced_at)).toBeGreaterThan(Number(first?._synced_at));
    });

    it('stores the newest version of an event that one run reads twice, in one batch or several', async () => {
      const writer = await createWriter(place, stream);
      const batch = [sale('a', 1, 10), sale('a', 2, 20), sale('a', -2 * DAY, 30), sale('tie', 5, 1), sale('tie', 5, 2)];
      expect(await writer.commit(batch)).toEqual(receipt({ new: 2 }));
      const stored = async () => (await rowsOf(place, stream, writer.lease.source)).get('a');
      expect(await stored()).toMatchObject({ sale_amount: 20, timestamp: NOON + 2 * MINUTE });
      expect((await rowsOf(place, stream, writer.lease.source)).get('tie')?.sale_amount).toBe(2);
      // Newest first, as a tail; and oldest first, as a backfill.
      for (const older of [1, 0, -2 * DAY]) {
        expect(await writer.commit([sale('a', older, 10)])).toEqual(receipt({ unchanged: 1 }));
      }
      expect(await stored()).toMatchObject({ sale_amount: 20, timestamp: NOON + 2 * MINUTE });
      expect(await writer.commit([sale('a', 3, 40)])).toEqual(receipt({ changed: 1 }));
      expect(await stored()).toMatchObject({ sale_amount: 40, timestamp: NOON + 3 * MINUTE });
    });

    it("stores the version of a later run, also if the event's time moved in either direction", async () => {
      const writer = await createWriter(place, stream);
      const stored = async () => (await rowsOf(place, stream, writer.lease.source)).get('a');
      await writer.commit([sale('a', 5, 50)]);
      for (const [minute, amount] of [
        [4, 40],
        [-2 * DAY, 20],
        [6, 60],
      ] as const) {
        const runId = `run of ${amount}`;
        expect(await writer.commit([sale('a', minute, amount)], { runId })).toEqual(receipt({ changed: 1 }));
        expect(await stored()).toMatchObject({
          sale_amount: amount,
          timestamp: NOON + minute * MINUTE,
          _run_id: runId,
        });
      }
    });

    it('marks an event that moved back, until it is read at its new time', async () => {
      const writer = await createWriter(place, stream);
      const stored = async () => (await rowsOf(place, stream, writer.lease.source)).get('a');
      const whole = (start: number, end: number, rows: number) => ({
        spans: [{ ...certified(NOON + start * MINUTE, NOON + end * MINUTE, rows), whole: true }],
      });
      await writer.commit([sale('a', 5)]);
      await writer.commit([], whole(5, 10, 0));
      expect((await stored())?._missing_since).not.toBeNull();
      expect(await writer.commit([sale('a', 1)], whole(0, 5, 1))).toEqual(receipt({ changed: 1 }));
      expect(await stored()).toMatchObject({ timestamp: NOON + MINUTE, _missing_since: null });
      expect(await writer.commit([], whole(5, 10, 0))).toEqual(receipt({}));
      expect((await stored())?._missing_since).toBeNull();
    });

    it('does not count a row as changed if only joined fields change', async () => {
      const writer = await createWriter(place, stream);
      const source = writer.lease.source;
      const values = { text: 'x', integer: 1, number: 1.5, boolean: true, timestamp: NOON, json: { x: 1 } };
      const joined = stream.columns.filter((column) => column.volatile);
      expect(joined.map((column) => column.name)).toEqual(expect.arrayContaining(['link_clicks', 'customer_name']));
      await writer.commit([sale('a'), ...joined.map(({ name }) => sale(name))]);
      const before = await rowsOf(place, stream, source);
      const moved = joined.map(({ name, kind }) => rowOf(stream, name, NOON, { sale_amount: 1, [name]: values[kind] }));
      expect(await writer.commit(moved)).toEqual(receipt({ unchanged: joined.length }));
      // Unknown joined fields, and contradicting aliases of joined ones, change likewise.
      for (const extra of [{ link: { utmId: 1 } }, { customer: { vip: true } }, { domain: 'old.test', key: 'k' }]) {
        expect(await writer.commit([sale('a', 0, 1, extra)])).toEqual(receipt({ unchanged: 1 }));
      }
      expect(await rowsOf(place, stream, source)).toEqual(before);
      expect(await writer.commit([sale('a', 0, 1, { taxRate: 19 })])).toEqual(receipt({ changed: 1 }));
      expect(await writer.commit([sale('a', 0, 1, { taxRate: 19, link: { utmId: 2 } })])).toMatchObject({ changed: 0 });
    });

    it('compares its rows with a reading, and names the columns that differ', async ({ skip }) => {
      const sink = place.createSink();
      if (!sink.compare) return skip();
      const writer = await createWriter(place, stream);
      const { source } = writer.lease;
      await writer.commit(['same', 'extra', 'amount', 'moved', 'gone'].map((id) => sale(id)));
      const whole = [{ ...certified(NOON, NOON + MINUTE, 4), whole: true }];
      await writer.commit(
        ['same', 'extra', 'amount', 'moved'].map((id) => sale(id)),
        { spans: whole },
      );
      const rows = [sale('same'), sale('amount', 0, 2, { tax: 1 }), sale('moved', 1), sale('new'), sale('gone')];
      const window = { start: NOON, end: NOON + 2 * MINUTE };
      const found = await sink.compare({ stream, source, window, rows, isWhole: true });
      expect(found.map(({ kind, id, columns }) => [kind, id, ...columns].join(' ')).sort()).toEqual([
        'different amount sale_amount _extra',
        'different gone _missing_since',
        'different moved timestamp',
        'extra extra',
        'missing new',
      ]);
    });

    it('the ledger has the number of rows of each window, however often and in whatever parts it is read', async ({
      skip,
    }) => {
      const sink = place.createSink();
      if (!sink.attest) return skip();
      const writer = await createWriter(place, stream);
      const { source } = writer.lease;
      const windows = async () =>
        (await readLedger(place.state, writer.advance(), 0)).map(({ start, end, rows }) => ({ start, end, rows }));
      const check = async (most: number): Promise<void> => {
        const ledger = await windows();
        const times = [...(await rowsOf(place, stream, source)).values()].map(({ timestamp }) => Number(timestamp));
        const there = ledger.map(({ start, end }) => ({
          ...{ start, end },
          rows: times.filter((at) => at >= start && at < end).length,
        }));
        expect(ledger).toEqual(there);
        expect(await sink.attest?.(stream, source, ledger)).toEqual(there.map(({ rows }) => ({ rows })));
        expect(Math.max(...there.map(({ rows }) => rows))).toBe(most);
      };
      const span = (from: number, to: number) => certified(NOON + from * MINUTE, NOON + to * MINUTE, 0);
      const open = (from: number, to: number) => ({ ...span(from, to), certified: undefined, note: 'not proven' });
      // Delivered first, proven later by a commit without rows.
      await writer.commit([sale('a', 1), sale('b', 5), sale('c', 9), sale('edge', 10)]);
      await writer.commit([], { spans: [span(0, 10)] });
      await check(3);
      // Late rows of a proven window, in a batch that proves another; one row on the boundary.
      await writer.commit([sale('late', 3), sale('d', 12)], { spans: [span(10, 20)] });
      await check(6);
      // Reread with an overlap: rows count once, and windows of other days have their own counts.
      await writer.commit([sale('b', 5), sale('late', 3), sale('e', 21), sale('old', -2 * DAY)], {
        spans: [span(4, 22)],
      });
      await writer.commit([], { spans: [span(-3 * DAY, -DAY)] });
      await check(7);
      // A row that moves leaves its window; one that moves outside of all windows is in none.
      await writer.commit([sale('a', -2 * DAY, 2), sale('d', DAY + 5, 2)], { runId: '20261114T120000-00000002' });
      await check(5);
      // Split by what could not be proven, and proven in part.
      await writer.commit([sale('f', 30), sale('g', 35), sale('h', 39)], { spans: [open(25, 40)] });
      await check(5);
      await writer.commit([sale('i', 31)], { spans: [span(28, 33)], runId: '20261114T120000-00000003' });
      await check(5);
    });

    it('keeps its identity until another writer changes it, in other processes too', async ({ skip }) => {
      const sink = place.createSink();
      if (!sink.identify || !sink.attest) return skip();
      const writer = await createWriter(place, stream);
      const { source } = writer.lease;
      const feed = { source, stream: stream.name };
      const identify = async (by = sink): Promise<string | undefined> => {
        // A close look first, if the sink has one.
        await by.attest?.(stream, source, [{ start: NOON, end: NOON + MINUTE }]);
        return by.identify?.(place.state, feed, await lastCommit(place.state, { ...feed, sink: by.name }));
      };
      await writer.commit([sale('a', 0)]);
      const first = await identify();
      for (const id of ['b', 'c'])
        await writer.commit([sale(id, 1)], { spans: [certified(NOON, NOON + 5 * MINUTE, 0)] });
      await (await createWriter(place, stream)).commit([sale('other', 2)]);
      expect([await identify(), await identify(place.createSink())]).toEqual([first, first]);
      expect(await sink.attest(stream, 'nobody', [{ start: 0, end: NOON + DAY * MINUTE }])).toEqual([{ rows: 0 }]);
    });

    it('the ledger has one row less after a click is forgotten', async ({ skip }) => {
      const sink = place.createSink();
      if (!sink.attest || !sink.erase) return skip();
      const writer = await createWriter(place, STREAMS.clicks);
      const { source } = writer.lease;
      const click = (id: string, minute: number): Row => rowOf(STREAMS.clicks, id, NOON + minute * MINUTE);
      const spans = [0, DAY].map((from) => certified(NOON + from * MINUTE, NOON + (from + 10) * MINUTE, 0));
      await writer.commit([click('a', 1), click('b', 2), click('c', DAY + 1)], { spans });
      const ledger = async () => (await readLedger(place.state, writer.advance(), 0)).map(({ rows }) => rows);
      expect(await ledger()).toEqual([2, 1]);
      for (const id of ['a', 'c', 'nobody']) await sink.erase({ source, kind: 'click', id });
      expect(await ledger()).toEqual([1, 0]);
      expect(await sink.attest(STREAMS.clicks, source, spans)).toEqual([{ rows: 1 }, { rows: 0 }]);
    });

    it('replaces all links of a source by a listing, and marks those that a proven one lacks', async ({ skip }) => {
      const { state } = place;
      const replace = place.createSink().replaceLinks ?? skip();
      const source = newSource();
      const lease = await acquireLease(state, source, 'links', `test of ${source}`);
      const flatten = createFlattenLink();
      const made = new Date(NOON).toISOString();
      let listings = 0;
      const list = (titles: Record<string, string>, isProven = true, epoch = lease.epoch) =>
        replace({
          ...{ source, runId: '20261114T120000-00000001', epoch, isProven, keepHistory: false },
          ...{ at: NOON + MINUTE * ++listings, startedAt: NOON + MINUTE * listings },
          rows: Object.entries(titles).map(([id, title]) => flatten({ id, title, createdAt: made, updatedAt: made })),
        });
      expect(await list({ a: 'A', b: 'B', c: 'C' })).toEqual(receipt({ new: 3 }));
      expect(await list({ a: 'A', b: 'B2' }, false)).toEqual(receipt({ changed: 1, unchanged: 1 }));
      expect(await list({ a: 'A', b: 'B2' })).toEqual(receipt({ changed: 1, unchanged: 2 }));
      expect(await list({ a: 'A', b: 'B2' })).toEqual(receipt({ unchanged: 2 }));
      expect(await list({ a: 'A', b: 'B2', c: 'C' })).toEqual(receipt({ changed: 1, unchanged: 2 }));
      await expect(list({ a: 'A' }, true, lease.epoch - 1)).rejects.toThrow(/lost its lease on the stream/);
      expect(await list({ a: 'A', b: 'B2', c: 'C' })).toEqual(receipt({ unchanged: 3 }));
    });

    it('leaves no files or rows after abort', async () => {
      const writer = await createWriter(place, stream);
      const batch = await place.createSink().open(stream);
      await batch.write([sale('a')]);
      await batch.abort();
      expect(await rowsOf(place, stream, writer.lease.source)).toEqual(new Map());
      expect(await readCursor(place.state, writer.advance())).toBeUndefined();
    });

    it('shows nothing before commit', async () => {
      const writer = await createWriter(place, stream);
      const batch = await place.createSink().open(stream);
      await batch.write([sale('a')]);
      await batch.write([sale('b')]);
      expect(await rowsOf(place, stream, writer.lease.source)).toEqual(new Map());
      await batch.commit(writer.advance());
      expect([...(await rowsOf(place, stream, writer.lease.source)).keys()].sort()).toEqual(['a', 'b']);
    });

    it('advances the ledger by a commit without rows', async () => {
      const writer = await createWriter(place, stream);
      const spans = [certified(NOON, NOON + MINUTE)];
      expect(await writer.commit([], { spans })).toEqual(receipt({}));
      expect(await readCursor(place.state, writer.advance())).toMatchObject({ completeThrough: NOON + MINUTE });
      expect(await readLedger(place.state, writer.advance(), 0)).toMatchObject(asEntries(spans));
    });

    it('keeps two sources apart, even with equal ids', async () => {
      const [one, two] = [await createWriter(place, stream), await createWriter(place, stream)];
      await one.commit([sale('same', 0, 1)]);
      expect(await two.commit([sale('same', 0, 2)])).toEqual(receipt({ new: 1 }));
      expect((await rowsOf(place, stream, one.lease.source)).get('same')?.sale_amount).toBe(1);
      expect((await rowsOf(place, stream, two.lease.source)).get('same')?.sale_amount).toBe(2);
    });

    const spans = [certified(NOON, NOON + MINUTE, 1)];
    const rejected = [{ record: { odd: true }, reason: 'odd' }];
    const refuses = async (writer: Awaited<ReturnType<typeof createWriter>>): Promise<void> => {
      const { source } = writer.lease;
      await expect(writer.commit([sale('late')], { spans }, rejected)).rejects.toThrow(/lost its lease on the stream/);
      expect(await rowsOf(place, stream, source)).toEqual(new Map());
      expect(await readLedger(place.state, writer.advance(), 0)).toEqual([]);
      const kept = { text: 'select * from tributary.quarantine where source = $1', values: [source] };
      expect(await place.state.query(kept)).toEqual([]);
    };

    it('rejects a writer whose lease has ended, and writes none of its rows', async () => {
      const writer = await createWriter(place, stream);
      await writer.lease.release();
      await refuses(writer);
    });

    it('rejects a writer whose stream was taken over, and writes none of its rows', async () => {
      const old = await createWriter(place, stream);
      await old.lease.release();
      const next = await createWriter(place, stream, old.lease.source);
      await refuses(old);
      expect(await next.commit([sale('late')], { spans })).toEqual(receipt({ new: 1 }));
    });

    it('never shows a cursor ahead of the rows', async () => {
      // In a separate table, so that the other tests read small ones.
      const writer = await createWriter(place, STREAMS.leads);
      const { source } = writer.lease;
      const batch = Array.from({ length: 3000 }, (_, i) => rowOf(STREAMS.leads, `e${i}`, NOON));
      let done = false;
      const committed = writer.commit(batch, { spans }).finally(() => {
        done = true;
      });
      while (!done) {
        const cursor = await readCursor(place.state, writer.advance());
        if (cursor !== undefined) expect((await rowsOf(place, STREAMS.leads, source)).size).toBe(batch.length);
      }
      expect(await committed).toMatchObject({ new: 3000 });
    });

    it('does not move the cursor when a commit fails; a retry of the batch stores it without duplicates', async () => {
      const writer = await createWriter(place, stream);
      const { source } = writer.lease;
      // An invalid instant: the state fails to write it, after the rows were written but before the commit.
      await expect(writer.commit([sale('a')], { spans, since: Number.NaN })).rejects.toThrow(RangeError);
      expect(await readCursor(place.state, writer.advance())).toBeUndefined();
      expect(await readLedger(place.state, writer.advance(), 0)).toEqual([]);
      const { changed, ...rest } = await writer.commit([sale('a'), sale('b')], { spans });
      expect(changed).toBe(0);
      expect(rest.new + rest.unchanged).toBe(2);
      expect((await rowsOf(place, stream, source)).size).toBe(2);
    });

    valueSuite(() => place);
    growthSuite(() => place);
  });
}
