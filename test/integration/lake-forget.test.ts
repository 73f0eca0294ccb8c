import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { forget } from '../../src/sync/maintain/forget.ts';
import { type LakePlace, lakePlace } from '../support/lake-place.ts';
import { filesIn } from '../support/lake-readers.ts';
import { createWriter, NOON, newSource, receipt, rowOf, rowsOf } from '../support/sink-harness.ts';

/** To forget a person, only files that contain them are rewritten, and no file keeps a trace. */
let place: LakePlace;
beforeAll(async () => {
  // Compression that leaves short texts intact: what remains in a file can be found by its bytes.
  place = await lakePlace({ compression: 'snappy' });
  for (const name of STREAM_NAMES) await place.createSink().prepare(STREAMS[name]);
});
afterAll(() => place.close());

const forgetIn = (erasure: Parameters<typeof forget>[1]) =>
  forget({ state: place.state, sinks: [place.createSink()], holder: 'a test' }, erasure);
const holds = async (text: string): Promise<string[]> => {
  const files = (await filesIn(place.folder)).filter((file) => file.endsWith('.parquet'));
  const bytes = await Promise.all(files.map((file) => readFile(join(place.folder, file))));
  return files.filter((_, i) => bytes[i]?.includes(text));
};

it('clears the events of a customer in the files that have them, permanently', async () => {
  const source = newSource();
  const writer = await createWriter(place, STREAMS.leads, source);
  const lead = (id: string, at: number, customer: string, name: string) =>
    rowOf(STREAMS.leads, id, at, { customer_id: customer, customer_name: name, customer_email: `${name}@x.test` });
  await writer.commit([lead('a', NOON, 'cus_1', 'Adaline'), lead('b', NOON + DAY_MS, 'cus_2', 'Barbara')]);
  // Changed again, so that the file still contains the old version of the group.
  await writer.commit([lead('a2', NOON, 'cus_1', 'Adaline'), lead('c', NOON - DAY_MS, 'cus_1', 'Adaline')]);
  await writer.commit([lead('c', NOON - DAY_MS + 1, 'cus_3', 'Charlotte')]);
  expect(await holds('Adaline')).toHaveLength(2);
  expect(await forgetIn({ source, kind: 'customer', id: 'cus_1' })).toEqual({
    [`leads/date=2026-11-14/${source}.parquet`]: 2,
    'tributary.quarantine': 0,
  });
  expect(await holds('Adaline')).toEqual([]);
  const rows = await rowsOf(place, STREAMS.leads, source);
  expect(rows.get('a')).toMatchObject({ customer_id: null, customer_name: null, customer_email: null, event: 'lead' });
  expect(rows.get('b')?.customer_name).toBe('Barbara');
  expect(rows.get('c')?.customer_name).toBe('Charlotte');
  // The service still has them.
  await writer.commit([lead('a', NOON, 'cus_1', 'Adaline'), lead('d', NOON, 'cus_1', 'Adaline')]);
  expect(await holds('Adaline')).toEqual([]);
});

it('deletes a click, and a file when its last one goes', async () => {
  const source = newSource();
  const writer = await createWriter(place, STREAMS.clicks, source);
  const click = (id: string, at: number) => rowOf(STREAMS.clicks, id, at, { click_id: id, click_ip: '10.11.12.13' });
  await writer.commit([click('c1', NOON), click('c2', NOON), click('c3', NOON + DAY_MS)]);
  const file = (day: number) => `clicks/date=2026-11-${day}/${source}.parquet`;
  expect(await forgetIn({ source, kind: 'click', id: 'c1' })).toMatchObject({ [file(14)]: 1 });
  expect(await forgetIn({ source, kind: 'click', id: 'c3' })).toMatchObject({ [file(15)]: 1 });
  expect([...(await rowsOf(place, STREAMS.clicks, source)).keys()]).toEqual(['c2']);
  expect(await filesIn(place.folder)).not.toContain(file(15));
  expect(await writer.commit([click('c1', NOON), click('c2', NOON), click('c4', NOON + DAY_MS)])).toEqual(
    receipt({ new: 1, unchanged: 1 }),
  );
});

it('removes a source and leaves the others', async () => {
  const [gone, stays] = [await createWriter(place, STREAMS.sales), await createWriter(place, STREAMS.sales)];
  for (const writer of [gone, stays]) {
    await writer.commit([rowOf(STREAMS.sales, 'x', NOON)]);
    await writer.lease.release();
  }
  const { source } = gone.lease;
  expect(await forgetIn({ source, kind: 'source' })).toMatchObject({ [`sales/date=2026-11-14/${source}.parquet`]: 1 });
  expect((await filesIn(place.folder)).filter((file) => file.includes(source))).toEqual([]);
  expect((await rowsOf(place, STREAMS.sales, stays.lease.source)).size).toBe(1);
  const again = await createWriter(place, STREAMS.sales, source);
  expect(await again.commit([rowOf(STREAMS.sales, 'x', NOON)])).toEqual(receipt({ new: 1 }));
});

it('is not undone by a sync that had read the person before', async () => {
  const source = newSource();
  const writer = await createWriter(place, STREAMS.leads, source);
  const batch = await place.createSink().open(STREAMS.leads);
  await batch.write([rowOf(STREAMS.leads, 'e1', NOON, { customer_id: 'cus_7', customer_name: 'Seventh' })]);
  await forgetIn({ source, kind: 'customer', id: 'cus_7' });
  await batch.commit(writer.advance());
  expect((await rowsOf(place, STREAMS.leads, source)).get('e1')).toMatchObject({
    customer_id: null,
    customer_name: null,
  });
  expect(await holds('Seventh')).toEqual([]);
});

it('does not lose rows of a concurrent sync', async () => {
  const source = newSource();
  const writer = await createWriter(place, STREAMS.leads, source);
  const lead = (id: string, customer: string) => rowOf(STREAMS.leads, id, NOON, { customer_id: customer });
  await writer.commit([lead('first', 'cus_0')]);
  const ids = Array.from({ length: 6 }, (_, i) => `l${i}`);
  const syncing = (async () => {
    for (const id of ids) await writer.commit([lead(id, `cus_${id}`)]);
  })();
  for (const id of ids.slice(0, 3)) await forgetIn({ source, kind: 'customer', id: `cus_${id}` });
  await syncing;
  const rows = await rowsOf(place, STREAMS.leads, source);
  expect([...rows.keys()].sort()).toEqual(['first', ...ids]);
  for (const id of ids.slice(0, 3)) expect(rows.get(id)?.customer_id).toBeNull();
});
