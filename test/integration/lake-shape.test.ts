import { expect, it } from 'vitest';
import type { Kind } from '../../src/model/columns.ts';
import { evolvedStream } from '../../src/model/evolution.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { filePath, partitionOf } from '../../src/sinks/parquet/lake.ts';
import { openOf, writeNext } from '../../src/sinks/parquet/lake-files.ts';
import { createParquetSink } from '../../src/sinks/parquet/parquet-sink.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { lakeOf, lakePlace } from '../support/lake-place.ts';
import { globOf, queryDuckdb } from '../support/lake-readers.ts';
import { certified, createWriter, NOON, newSource, receipt, rowOf, rowsOf } from '../support/sink-harness.ts';

const DAY = 86_400_000;

/** Differences between files and state, and between the config of now and before. */
const place = await forThisFile(lakePlace());

const grown = (name: string, kind: Kind) => evolvedStream(STREAMS.leads, [{ path: `click.${name}`, name, kind }]);

it('reports columns wider than known here, before anything is written', async () => {
  const wide = grown('click_wide', 'text');
  await place.createSink().prepare(wide);
  const writer = await createWriter(place, wide);
  await writer.commit([rowOf(wide, 'a', NOON, { click_wide: 'x' })]);
  const narrow = grown('click_wide', 'integer');
  const wider = { name: 'ShapeChanged', wider: { click_wide: 'text' } };
  await expect(place.createSink().prepare(narrow)).rejects.toMatchObject(wider);
  const batch = await place.createSink().open(narrow);
  await batch.write([rowOf(narrow, 'b', NOON, { click_wide: 1 })]);
  await expect(batch.commit(writer.advance())).rejects.toMatchObject(wider);
  expect((await rowsOf(place, wide, writer.lease.source)).size).toBe(1);
});

it('keeps columns and values that only the file has', async () => {
  const known = grown('click_lost', 'json');
  const writer = await createWriter(place, known);
  const { source } = writer.lease;
  await writer.commit([rowOf(known, 'a', NOON, { click_lost: { x: [1] } }), rowOf(known, 'b', NOON)]);
  await writer.lease.release();
  const without = await createWriter(place, STREAMS.leads, source);
  const changed = rowOf(STREAMS.leads, 'a', NOON, { click_country: 'DE' });
  expect(await without.commit([changed, rowOf(STREAMS.leads, 'c', NOON)])).toEqual(receipt({ new: 1, changed: 1 }));
  const rows = await rowsOf(place, known, source);
  expect(rows.get('a')).toMatchObject({ click_country: 'DE', click_lost: { x: [1] } });
  expect(rows.get('c')?.click_lost).toBeNull();
});

it('stays readable by name when text becomes JSON: files with the text are rewritten', async () => {
  const [text, json] = [grown('click_note', 'text'), grown('click_note', 'json')];
  await place.createSink().prepare(text);
  const writer = await createWriter(place, text);
  const { source } = writer.lease;
  await writer.commit([rowOf(text, 'a', NOON, { click_note: 'plain' }), rowOf(text, 'b', NOON - DAY)]);
  await writer.lease.release();
  await place.createSink().prepare(json);
  const after = await createWriter(place, json, source);
  await after.commit([rowOf(json, 'c', NOON + DAY, { click_note: { x: 1 } })]);
  const rows = await queryDuckdb(
    `select click_note::varchar as note from ${globOf(place.folder, 'leads')} where _source = '${source}' order by event_id`,
  );
  expect(rows.map(({ note }) => note)).toEqual(['"plain"', null, '{"x":1}']);
});

it('has portable types, and metadata with its source and stream', async () => {
  const writer = await createWriter(place, STREAMS.sales, newSource());
  await writer.commit([rowOf(STREAMS.sales, 'a', NOON, { sale_amount: 1, metadata: { a: 1 }, click_qr: true })]);
  const file = `${place.folder}/sales/date=2026-11-14/${writer.lease.source}.parquet`;
  const types = await queryDuckdb(`describe select "timestamp", sale_amount, metadata, click_qr from '${file}'`);
  expect(types.map((row) => row.column_type)).toEqual(['TIMESTAMP WITH TIME ZONE', 'BIGINT', 'JSON', 'BOOLEAN']);
  const entries = await queryDuckdb(`select decode(key) as k, decode(value) as v from parquet_kv_metadata('${file}')`);
  expect(Object.fromEntries(entries.map(({ k, v }) => [k, v]))).toMatchObject({
    'tributary.source': writer.lease.source,
    'tributary.stream': 'sales',
    'tributary.run': '20261114T120000-00000001',
    'tributary.schema': expect.stringMatching(/^[0-9a-f]{12}$/),
  });
});

it('is not split by day and by hour at once', async () => {
  const hourly = createParquetSink({ ...lakeOf(place), scheme: 'hour' });
  await expect(hourly.prepare(STREAMS.leads)).rejects.toMatchObject({
    name: 'ConfigError',
    message: expect.stringContaining('one file per day'),
    next: expect.stringContaining('set partition of the sink to day again'),
  });
});

it('keeps NUL, which is valid UTF-8; replaces invalid characters, and names the column', async () => {
  await place.createSink().prepare(STREAMS.leads);
  const writer = await createWriter(place, STREAMS.leads);
  const nul = rowOf(STREAMS.leads, 'n\0', NOON, { event_name: 'a\0b', metadata: { 'k\0': 'v\0' } }, { x: 'y\0' });
  const half = rowOf(STREAMS.leads, 'h', NOON, { event_name: 'a\ud800b', metadata: { k: '\udc00' } });
  expect(await writer.commit([nul, half])).toEqual(receipt({ new: 2, sanitized: 2 }));
  const rows = await rowsOf(place, STREAMS.leads, writer.lease.source);
  // The key is the same in every sink, whatever the sink can hold.
  expect(rows.get('n\ufffd')).toMatchObject({
    event_name: 'a\0b',
    metadata: { 'k\0': 'v\0' },
    _extra: { x: 'y\0', _mended: ['event_id'] },
  });
  expect(rows.get('h')).toMatchObject({
    event_name: 'a\ufffdb',
    metadata: { k: '\ufffd' },
    _extra: { _mended: ['event_name', 'metadata'] },
  });
  expect(await writer.commit([nul, half])).toMatchObject({ unchanged: 2 });
});

it('treats a text as equal when another sink or an earlier version replaced its NUL', async () => {
  const writer = await createWriter(place, STREAMS.leads);
  const lead = (text: string) =>
    rowOf(STREAMS.leads, `n${text}`, NOON, { event_name: text, customer_id: `c${text}`, metadata: { text } });
  await writer.commit([lead('\ufffd')]);
  const { source } = writer.lease;
  expect(await writer.commit([lead('\0')])).toEqual(receipt({ unchanged: 1, sanitized: 1 }));
  const window = { start: NOON, end: NOON + 1 };
  const question = { stream: STREAMS.leads, source, window, rows: [lead('\0')], isWhole: true };
  expect(await place.createSink().compare(question)).toEqual([]);
  await writer.commit([rowOf(STREAMS.leads, 'other', NOON, { customer_id: 'c\0' })]);
  expect(await place.createSink().erase({ source, kind: 'customer', id: 'c\0' })).toEqual({
    [`leads/date=2026-11-14/${source}.parquet`]: 2,
  });
});

it('a comparison finds an event that is twice in a file, and the next commit of its window removes it', async () => {
  const stream = STREAMS.sales;
  const writer = await createWriter(place, stream, 'twice');
  const events = ['e0', 'e1'].map((id, i) => rowOf(stream, id, NOON + i));
  await writer.commit(events);
  const lake = lakeOf(place);
  const [feed, day] = [{ stream: stream.name, source: 'twice' }, partitionOf('day', NOON)];
  const present = await openOf(lake, feed, day);
  if (!present) throw new Error('a file');
  const [, again] = await present.rows(present.file.groups[0] as never);
  const { columns, metadata } = present.file;
  const path = filePath('day', stream.name, 'twice', day);
  const made = await writeNext(lake, { path, present, columns, edits: new Map(), added: [again as never], metadata });
  await made?.staged.publish(present.identity);
  await present.close();

  const window = { start: NOON, end: NOON + 10 };
  const question = { stream, source: 'twice', window, rows: events, isWhole: true };
  expect(await place.createSink().compare(question)).toMatchObject([{ kind: 'extra', id: 'e1' }]);
  await writer.commit(events, { spans: [{ ...certified(window.start, window.end), whole: true }] });
  expect(await place.createSink().compare(question)).toEqual([]);
  expect([...(await rowsOf(place, stream, 'twice')).keys()].sort()).toEqual(['e0', 'e1']);
});
