import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Instant } from '../../src/model/instant.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { DAY_MS, startOfDay, type Window } from '../../src/model/window.ts';
import type { ReadAgainMs } from '../../src/sinks/files/event-index.ts';
import type { Store } from '../../src/sinks/files/store/store.ts';
import type { Sink } from '../../src/sinks/sink.ts';
import { icebergPlace } from '../support/iceberg-place.ts';
import { type LakePlace, lakePlace } from '../support/lake-place.ts';
import { createWriter, receipt, rowOf, rowsOf, type SinkPlace, type Writer } from '../support/sink-harness.ts';

/** The index has events while their stream re-reads them, here four days and one more; older ones are found by their time. */

const stream = STREAMS.clicks;
const NOON = startOfDay(Date.now()) + DAY_MS / 2;
const ago = (days: number): Instant => NOON - days * DAY_MS;
const click = (id: string, days: number, country = 'DE') => rowOf(stream, id, ago(days), { click_country: country });
const dayOf = (days: number): Window => ({ start: startOfDay(ago(days)), end: startOfDay(ago(days)) + DAY_MS });
/** A window that was read completely. */
const complete = (days: number) => ({ ...dayOf(days), certified: undefined, whole: true, note: 'a test', rows: 0 });
/** Of two readings in one run, the newer time would win. */
const LATER = { runId: '20261114T120000-00000002' };
const LAST = { runId: '20261114T120000-00000003' };

/** How far back streams re-read. A test changes and restores it. */
let again = 4 * DAY_MS;
const readAgainMs: ReadAgainMs = () => again;

async function readingAgain<T>(days: number, work: () => Promise<T>): Promise<T> {
  const before = again;
  again = days * DAY_MS;
  try {
    return await work();
  } finally {
    again = before;
  }
}

const SINKS: Array<[string, () => Promise<SinkPlace>]> = [
  ['a lake', () => lakePlace({ readAgainMs })],
  ['Iceberg tables', () => icebergPlace(readAgainMs)],
];

describe.each(SINKS)('the index of %s', (_, makePlace) => {
  let place: SinkPlace;
  beforeAll(async () => {
    place = await makePlace();
    await place.createSink().prepare(stream);
  });
  afterAll(() => place.close());

  const indexed = async (): Promise<number> => {
    const [row] = await place.state.query<{ n: number }>({
      text: 'select count(*)::int as n from tributary.lake_index',
    });
    return row?.n ?? 0;
  };
  const rowsWith = async ({ lease }: Writer, id: string) =>
    (await place.readRows(stream)).filter((row) => row._source === lease.source && row.event_id === id);
  const ledgerRows = async ({ lease }: Writer, days: number): Promise<number | undefined> => {
    const [held] = (await (place.createSink() as Required<Sink>).attest(stream, lease.source, [dayOf(days)])) ?? [];
    return held?.rows;
  };

  it('has the events that are re-read, and none of an earlier backfill', async () => {
    const before = await indexed();
    const writer = await createWriter(place, stream);
    await writer.commit([click('old', 40), click('older', 400), click('new', 1), click('newer', 0)]);
    expect((await indexed()) - before).toBe(2);
  });

  it('does not duplicate an event that returns with its time, or with another of its day, at any age', async () => {
    const writer = await createWriter(place, stream);
    await writer.commit([click('a', 40), click('b', 40), click('c', 400), click('d', 1)]);
    expect(await writer.commit([click('a', 40), click('c', 400, 'FR'), click('d', 1)])).toEqual(
      receipt({ unchanged: 2, changed: 1 }),
    );
    const later = rowOf(stream, 'b', ago(40) + 3_600_000, { click_country: 'DE' });
    expect(await writer.commit([later, click('e', 40)])).toEqual(receipt({ changed: 1, new: 1 }));
    expect(await writer.commit([later])).toEqual(receipt({ unchanged: 1 }));
    expect((await rowsOf(place, stream, writer.lease.source)).size).toBe(5);
  });

  it('finds an event that moves within the re-read time, or from there to an older day', async () => {
    const writer = await createWriter(place, stream);
    await writer.commit([click('a', 1), click('b', 2)]);
    expect(await writer.commit([click('a', 3), click('b', 60)], LATER)).toEqual(receipt({ changed: 2 }));
    expect(await writer.commit([click('a', 3), click('b', 60)])).toEqual(receipt({ unchanged: 2 }));
    expect((await rowsOf(place, stream, writer.lease.source)).size).toBe(2);
  });

  it('evicts events in batches as they age, and duplicates none, including those that had moved', async () => {
    const writer = await createWriter(place, stream);
    await readingAgain(100, async () => {
      await writer.commit([click('a', 40), click('moved', 40), click('back', 2)]);
      await writer.commit([click('moved', 3), click('back', 41)], LATER);
    });
    // As many as an upgrade or a year of pause may leave.
    await place.state.query({
      text: `insert into tributary.lake_index (track, key, partition)
        select id, n, 0 from tributary.lake_tracks, generate_series(1, 45000) n where source = $1`,
      values: [writer.lease.source],
    });
    const sizes: number[] = [await indexed()];
    for (let i = 0; i < 4; i++) {
      expect(await writer.commit([click('a', 40), click('moved', 3), click('back', 41)])).toEqual(
        receipt({ unchanged: 3 }),
      );
      sizes.push(await indexed());
    }
    expect(sizes.slice(1).map((size, i) => (sizes[i] ?? 0) - size)).toEqual([20_000, 20_000, expect.any(Number), 0]);
    expect((await rowsOf(place, stream, writer.lease.source)).size).toBe(3);
  });

  it('extends backwards from the files when the config does; and from nothing after an upgrade', async () => {
    const writer = await createWriter(place, stream);
    await writer.commit([click('a', 40), click('b', 1)]);
    await readingAgain(50, async () => {
      expect(await writer.commit([click('a', 30)], LATER)).toEqual(receipt({ changed: 1 }));
      await place.state.query({ text: 'truncate tributary.lake_index' });
      await place.state.query({ text: 'update tributary.lake_tracks set indexed_from = null' });
      expect(await writer.commit([click('a', 20), click('b', 2)], LAST)).toEqual(receipt({ changed: 2 }));
    });
    expect((await rowsOf(place, stream, writer.lease.source)).size).toBe(2);
  });

  it('an event that moves from an older day is duplicated until a repair, which keeps the current one', async () => {
    const writer = await createWriter(place, stream);
    const sink = place.createSink() as Required<Sink>;
    await writer.commit([click('a', 40), click('moves', 40), click('gone', 40)]);
    expect(await writer.commit([click('moves', 30)])).toEqual(receipt({ new: 1 }));
    const reading = { stream, source: writer.lease.source, window: dayOf(40), rows: [click('a', 40)], isWhole: true };
    const extra = (await sink.compare(reading)).map(({ kind, id }) => [kind, id]);
    expect(extra.sort()).toEqual([
      ['extra', 'gone'],
      ['extra', 'moves'],
    ]);
    await sink.removeMoved(stream, writer.lease.source, dayOf(40));
    expect(await rowsWith(writer, 'moves')).toHaveLength(2);
    // Also with the day before and after in one batch: the event is shown there, not here.
    await writer.commit([click('a', 40), click('moves', 30)], { spans: [complete(40)] });
    await sink.removeMoved(stream, writer.lease.source, dayOf(40));
    const left = await rowsWith(writer, 'moves');
    expect(left.map((row) => [row.timestamp, row._missing_since])).toEqual([[ago(30), null]]);
    // The only copy stays, marked.
    expect((await rowsWith(writer, 'gone')).map((row) => row._missing_since !== null)).toEqual([true]);
    expect([await ledgerRows(writer, 40), await ledgerRows(writer, 30)]).toEqual([2, 1]);
    expect(await sink.compare(reading)).toEqual([]);
  });
});

describe('a lake', () => {
  const cut = { publishes: Number.POSITIVE_INFINITY };
  const wrap = (store: Store): Store => ({
    ...store,
    async stage(path) {
      const staged = await store.stage(path);
      const publish = async (over: string | undefined): Promise<string> => {
        if (cut.publishes-- <= 0) throw new Error('killed');
        return staged.publish(over);
      };
      return { ...staged, publish };
    },
  });
  let place: LakePlace;
  beforeAll(async () => {
    place = await lakePlace({ readAgainMs, wrap });
    await place.createSink().prepare(stream);
  });
  afterAll(() => place.close());

  it('duplicates nothing when the first commit after an upgrade breaks off after any of its files', async () => {
    const writer = await createWriter(place, stream);
    const days = [60, 40, 3, 2, 1];
    const rows = (country: string) => days.map((day) => click(`d${day}`, day, country));
    await readingAgain(100, () => writer.commit(rows('DE')));
    for (let files = 0; files <= days.length; files++) {
      await place.state.query({ text: 'truncate tributary.lake_index' });
      await place.state.query({ text: 'update tributary.lake_tracks set indexed_from = null' });
      const batch = [...rows(`C${files}`), click(`n${files}`, 40), click(`m${files}`, 1)];
      cut.publishes = files;
      const outcome = await writer.commit(batch).then(
        () => 'done',
        () => 'cut',
      );
      cut.publishes = Number.POSITIVE_INFINITY;
      expect(outcome).toBe(files < days.length ? 'cut' : 'done');
      await writer.commit(batch);
      expect((await rowsOf(place, stream, writer.lease.source)).size).toBe(days.length + 2 * (files + 1));
    }
  });

  it('reports a copied file, whether or not its day is in the index', async () => {
    const writer = await createWriter(place, stream);
    const { source } = writer.lease;
    await writer.commit([click('a', 60), click('b', 40), click('c', 1)]);
    const pathOf = (days: number): string =>
      join(place.folder, 'clicks', `date=${new Date(ago(days)).toISOString().slice(0, 10)}`, `${source}.parquet`);
    for (const [from, to] of [
      [60, 50],
      [60, 2],
      [1, 45],
    ] as const) {
      await mkdir(dirname(pathOf(to)), { recursive: true });
      await copyFile(pathOf(from), pathOf(to));
      const [held] = await place.createSink().attest(stream, source, [dayOf(to)]);
      expect(held?.foreign).toMatch(/holds 1 events that another file holds too/);
      await place.createSink().removeForeign(stream, source, [dayOf(to)]);
      expect((await place.createSink().attest(stream, source, [dayOf(to)]))[0]).toEqual({ rows: 0 });
    }
    expect((await rowsOf(place, stream, source)).size).toBe(3);
  });
});
