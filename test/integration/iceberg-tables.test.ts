import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { quarantine } from '../../src/cursor/quarantine.ts';
import { RetryLater } from '../../src/model/errors.ts';
import { STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { KEEP_SNAPSHOTS } from '../../src/sinks/iceberg/upkeep/keep-snapshots.ts';
import {
  ageTable,
  everyAvro,
  filesOf,
  type IcebergPlace,
  icebergPlace,
  KEEP_NOTHING,
  namedBy,
  pathOf,
} from '../support/iceberg-place.ts';
import { filesIn, queryDuckdb } from '../support/lake-readers.ts';
import { certified, createWriter, MINUTE, NOON, rowOf, rowsOf } from '../support/sink-harness.ts';

let place: IcebergPlace;
beforeEach(async () => {
  place = await icebergPlace();
  for (const name of STREAM_NAMES) await place.createSink().prepare(STREAMS[name]);
});
afterEach(() => place.close());

const stream = STREAMS.sales;
const sale = (id: string, minute = 0, values = {}) => rowOf(stream, id, NOON + minute * MINUTE, values);

/** Everything on disk that is not data of the current snapshot. */
const dataFiles = async (table: string): Promise<string[]> =>
  (await filesIn(place.folder)).filter((path) => path.startsWith(`attribution/${table}/data/`));

const HOUR_MS = 3_600_000;

describe('a snapshot', () => {
  it('records what is certified: since when, through when, and what was set aside, of each source and of all', async () => {
    const [one, two] = [await createWriter(place, stream, 'one'), await createWriter(place, stream, 'two')];
    await one.commit([sale('a')], { spans: [certified(NOON, NOON + 2 * MINUTE, 1)] });
    const first = (await place.lookAt('sales')).metadata.snapshots.at(-1)?.summary;
    expect(first).toMatchObject({
      operation: 'append',
      'tributary.since': '2026-11-14T12:00:00.000Z',
      'tributary.complete-through': '2026-11-14T12:02:00.000Z',
      'tributary.complete-through.one': '2026-11-14T12:02:00.000Z',
      'tributary.set-aside': '0',
      'total-records': '1',
    });
    await quarantine(place.state, { source: 'two', stream: 'sales', runId: 'r' }, [
      { record: { x: 1 }, reason: 'odd' },
    ]);
    await two.commit([sale('a')]);
    const { metadata } = await place.lookAt('sales');
    const second = metadata.snapshots.at(-1)?.summary;
    // The other source has nothing certified, so all sources together have nothing certified.
    expect(second).not.toHaveProperty('tributary.complete-through');
    expect(second).toMatchObject({ 'tributary.set-aside.two': '1' });
    // The snapshot names the sources of its rows; the table names every source.
    expect(Object.keys(second ?? {}).filter((key) => key.endsWith('.one'))).toEqual([]);
    expect(metadata.properties).toMatchObject({
      'tributary.complete-through.one': '2026-11-14T12:02:00.000Z',
      'tributary.set-aside.two': '1',
    });
  });

  it('is not created without rows: the table records progress every quarter of an hour', async () => {
    const [sink, writer] = [place.createSink(), await createWriter(place, stream, 'one')];
    await writer.commit([sale('a')], { spans: [certified(NOON, NOON + MINUTE, 1)] });
    const before = await place.lookAt('sales');
    const feed = { source: 'one', stream: 'sales' } as const;
    const identify = () => sink.identify(place.state, feed);
    const identity = await identify();
    const shown: unknown[] = [];
    for (let minute = 2; minute <= 40; minute++) {
      const spans = [certified(NOON, NOON + minute * MINUTE, 1)];
      await writer.commit(minute % 2 === 0 ? [] : [sale('a')], { spans });
      await sink.publishProgress(feed);
      const { metadata } = await place.lookAt('sales');
      const { 'tributary.complete-through.one': through } = metadata.properties as Record<string, string>;
      if (through !== shown.at(-1)) shown.push(through);
      expect(Date.parse(through ?? '')).toBeGreaterThan(NOON + (minute - 15) * MINUTE);
      expect(await identify()).toBe(identity);
    }
    const after = await place.lookAt('sales');
    expect(after.metadata.snapshots).toEqual(before.metadata.snapshots);
    expect(shown).toEqual(['12:01', '12:16', '12:31'].map((time) => `2026-11-14T${time}:00.000Z`));
    // A revoked certification is written at once.
    await place.state.query({
      text: "update tributary.cursors set complete_through = '2026-11-14T12:30:00Z' where source = 'one'",
    });
    await sink.publishProgress(feed);
    expect((await place.lookAt('sales')).metadata.properties).toMatchObject({
      'tributary.complete-through': '2026-11-14T12:30:00.000Z',
    });
  });

  it('is shared by concurrent commits of sources; a commit that cannot be written fails alone', async () => {
    const sink = place.createSink();
    const sharing = { ...place, createSink: () => sink };
    const sources = ['one', 'two', 'three', 'four', 'lost'];
    const writers = await Promise.all(sources.map((source) => createWriter(sharing, stream, source)));
    await writers[4]?.lease.release();
    const outcomes = await Promise.allSettled(
      writers.map((writer, i) => writer.commit([sale('a', i, { link_id: 'l', customer_id: 'c' })])),
    );
    expect(outcomes.map(({ status }) => status)).toEqual([...Array(4).fill('fulfilled'), 'rejected']);
    expect(outcomes.slice(0, 4)).toMatchObject(Array(4).fill({ value: { new: 1 } }));
    for (const source of sources.slice(0, 4)) expect((await rowsOf(place, stream, source)).size).toBe(1);
    expect((await rowsOf(place, stream, 'lost')).size).toBe(0);
    const together = await Promise.all(writers.slice(0, 4).map((writer, i) => writer.commit([sale('b', i + 10)])));
    expect(together).toMatchObject(Array(4).fill({ new: 1 }));
    const { snapshots } = (await place.lookAt('sales')).metadata;
    // The first one alone, the others together.
    expect(snapshots.slice(-2).map(({ summary }) => summary['added-records'])).toEqual(['1', '3']);
    expect((await place.readRows(stream)).length).toBe(8);
  });

  it('reads the same after changes and joining', async () => {
    const writer = await createWriter(place, stream, 'one');
    for (let i = 0; i < 12; i++) await writer.commit([sale(`e${i}`, i), sale('same', 0, { sale_amount: i })]);
    const { metadata } = await place.lookAt('sales');
    await place.createSink({}).maintain({ isDueOnly: true });
    const { files } = await place.lookAt('sales');
    expect(files).toHaveLength(1);
    expect(files[0]?.rows).toBe(13);
    for (const [i, snapshot] of metadata.snapshots.entries()) {
      const held = await filesOf(snapshot['manifest-list']);
      const [row] = await queryDuckdb(
        `select count(*) as n, max(sale_amount) as amount from read_parquet([${held.map(({ path }) => `'${path}'`)}])`,
      );
      expect(row).toEqual({ n: BigInt(i + 2), amount: BigInt(i) });
    }
  });
});

describe('an event', () => {
  it('that moves to another day is in its new partition only', async () => {
    const writer = await createWriter(place, stream, 'one');
    await writer.commit([sale('a'), sale('b')]);
    expect(await writer.commit([rowOf(stream, 'a', NOON + DAY_MS)])).toMatchObject({ changed: 1, new: 0 });
    expect(await writer.commit([rowOf(stream, 'a', NOON + DAY_MS)])).toMatchObject({ unchanged: 1 });
    expect((await rowsOf(place, stream, 'one')).size).toBe(2);
    const { files } = await place.lookAt('sales');
    for (const { path } of files) {
      const [row] = await queryDuckdb(`select distinct timestamp::date::varchar as day from read_parquet('${path}')`);
      expect(path).toContain(`timestamp_day=${row?.day}/one-`);
    }
  });
});

describe('a renamed sink', () => {
  it('finds the rows of the table, and duplicates none', async () => {
    const writer = await createWriter(place, stream, 'one');
    await writer.commit([sale('a'), sale('b', 1)]);
    await place.state.query({ text: 'delete from tributary.lake_tracks' });
    await place.state.query({ text: 'delete from tributary.lake_index' });
    expect(await writer.commit([sale('a'), sale('b', 1, { sale_amount: 2 }), sale('c', 2)])).toMatchObject({
      new: 1,
      changed: 1,
      unchanged: 1,
    });
    expect((await rowsOf(place, stream, 'one')).size).toBe(3);
  });
});

describe('links and customers', () => {
  it('have one row each with the newest reading from any stream; empty values overwrite nothing', async () => {
    const of = (id: string, clicks: number, email: string | null) => ({
      ...{ link_id: id, link_url: 'https://example.com', link_clicks: clicks },
      ...{ customer_id: `c-${id}`, customer_email: email, customer_name: email ?? 'Anonymous Fox' },
    });
    const [sales, leads] = [await createWriter(place, stream, 'one'), await createWriter(place, STREAMS.leads, 'one')];
    await sales.commit([sale('a', 0, of('x', 1, 'x@example.com')), sale('b', 1, of('y', 1, 'y@example.com'))]);
    await leads.commit([
      rowOf(STREAMS.leads, 'l', NOON, of('x', 2, null)),
      rowOf(STREAMS.leads, 'm', NOON, of('z', 1, null)),
    ]);
    const read = async (table: string, columns: string) => {
      const { files } = await place.lookAt(table);
      const paths = files.map(({ path }) => `'${path}'`);
      const rows = await queryDuckdb(`select ${columns} from read_parquet([${paths}]) order by 1`);
      return rows.map((row) => Object.values(row).map(String));
    };
    expect(await read('links', 'link_id, link_clicks')).toEqual([
      ['x', '2'],
      ['y', '1'],
      ['z', '1'],
    ]);
    expect(await read('customers', 'customer_id, customer_name')).toEqual([
      ['c-x', 'x@example.com'],
      ['c-y', 'y@example.com'],
      ['c-z', 'Anonymous Fox'],
    ]);
  });
});

describe('maintenance', () => {
  it('leaves no unreferenced file on disk', async () => {
    const writer = await createWriter(place, stream, 'one');
    for (let i = 0; i < 18; i++) await writer.commit([sale(`e${i}`, i), sale('same', 0, { sale_amount: i })]);
    await writeFile(join(place.folder, 'attribution/sales/data/one-left-behind.parquet'), 'orphan');
    const kept = await place.createSink({}).maintain();
    // Younger than a day: a commit in progress may reference it.
    expect(kept['attribution.sales']).toMatchObject({ expired: 0, removed: 0, files: 1 });
    const done = await place.createSink(KEEP_NOTHING).maintain();
    expect(done['attribution.sales']).toMatchObject({ joined: 0, files: 1 });
    const { metadata } = await place.lookAt('sales');
    expect(metadata.snapshots).toHaveLength(1);
    expect(await dataFiles('sales')).toHaveLength(1);
    const named = await namedBy(await place.lookAt('sales'));
    const there = (await filesIn(place.folder)).filter((path) => path.startsWith('attribution/sales/'));
    expect(there.filter((path) => !named.has(join(place.folder, path)))).toEqual([]);
    // The manifest list, the deleted files, and the current ones.
    expect(there.filter((path) => path.endsWith('.avro'))).toHaveLength(3);
    expect(there.filter((path) => path.endsWith('.json')).length).toBeLessThanOrEqual(21);
    expect((await rowsOf(place, stream, 'one')).size).toBe(19);
  });

  it('keeps a replaced snapshot for a day, for readers that started just before', async () => {
    const before = await createWriter(place, stream, 'one');
    await before.commit([sale('a')]);
    await before.lease.release();
    const { files } = await place.lookAt('sales');
    await ageTable(await place.lookAt('sales'), 30 * HOUR_MS);
    const after = await createWriter(place, stream, 'one');
    await after.commit([sale('a', 0, { sale_amount: 1 })]);
    expect((await place.lookAt('sales')).files).not.toEqual(files);
    await place.createSink().maintain();
    expect(await dataFiles('sales')).toHaveLength(2);
    expect((await place.lookAt('sales')).metadata.snapshots).toHaveLength(2);
    await ageTable(await place.lookAt('sales'), 30 * HOUR_MS);
    const brief = { ...KEEP_SNAPSHOTS, daily: DAY_MS };
    await place.createSink({ keep: brief }).maintain({ isDueOnly: true });
    expect(await dataFiles('sales')).toHaveLength(1);
    expect((await place.lookAt('sales')).metadata.snapshots).toHaveLength(1);
  });

  it('joins days one by one, in order, and keeps every row', async () => {
    const writer = await createWriter(place, stream, 'one');
    for (let i = 0; i < 10; i++) {
      const rows = [0, 1].flatMap((day) =>
        Array.from({ length: 2300 }, (_, n) =>
          rowOf(stream, `${day}-${i}-${n}`, NOON + day * DAY_MS + (n * 10 + i) * 1000),
        ),
      );
      await writer.commit(rows);
    }
    await place.createSink({}).maintain({ isDueOnly: true });
    const { files } = await place.lookAt('sales');
    expect(files.map(({ rows }) => rows)).toEqual([23_000, 23_000]);
    for (const { path } of files) {
      const [row] = await queryDuckdb(`
        select count(distinct event_id) as n, bool_and(coalesce(timestamp >= before, true)) as sorted from (
          select event_id, timestamp, lag(timestamp) over (order by file_row_number) as before
          from read_parquet('${path}', file_row_number = true))`);
      expect(row).toEqual({ n: 23_000n, sorted: true });
    }
  });
});

describe('reading', () => {
  it('sees no wrong result and no missing file during writes and joins', async () => {
    const writer = await createWriter(place, stream, 'one');
    await writer.commit([sale('e0')]);
    let done = false;
    const work = (async () => {
      for (let i = 1; i <= 12; i++) {
        await writer.commit([sale(`e${i}`, i), sale('e0', 0, { sale_amount: i })]);
        if (i % 4 === 0) await place.createSink({ mostSmall: 1 }).maintain({ isDueOnly: true });
      }
    })().finally(() => {
      done = true;
    });
    let [reads, before] = [0, 0];
    while (!done) {
      const rows = (await rowsOf(place, stream, 'one')).size;
      expect(rows).toBeGreaterThanOrEqual(before);
      [reads, before] = [reads + 1, rows];
    }
    await work;
    expect(reads).toBeGreaterThan(3);
    expect((await rowsOf(place, stream, 'one')).size).toBe(13);
  });
});

describe('forgetting', () => {
  it('leaves no byte: not in files, bounds of manifests, older snapshots, or leftovers of a killed writer', async () => {
    const writer = await createWriter(place, stream, 'one');
    const whose = (id: string) => ({
      customer_id: id,
      customer_email: `${id}@example.com`,
      customer_name: `Name ${id}`,
    });
    for (let i = 0; i < 3; i++) {
      await writer.commit([sale(`e${i}`, i, whose('aaa-gone')), sale(`k${i}`, i, whose('kept'))]);
    }
    const orphan = (await place.lookAt('sales')).files[0]?.path ?? '';
    await writeFile(
      orphan.replace(/one-[^/]+$/, 'one-0f0f0f0f-0000-4000-8000-000000000000.parquet'),
      await readFile(orphan),
    );
    const touched = await place.createSink().erase({ source: 'one', kind: 'customer', id: 'aaa-gone' });
    expect(touched).toMatchObject({ 'attribution.sales': 3, 'attribution.customers': 1 });
    const rows = await rowsOf(place, stream, 'one');
    expect([...rows.values()].filter((row) => row.customer_id === 'kept')).toHaveLength(3);
    expect(rows.size).toBe(6);

    for (const path of await filesIn(place.folder)) {
      const full = join(place.folder, path);
      if (path.endsWith('.parquet')) {
        const [row] = await queryDuckdb(
          `select count(*) as n from (select unnest(list_value(columns(c -> c like 'customer_%'))::varchar[]) as v from read_parquet('${full}')) where v like '%gone%'`,
        );
        expect([path, row?.n]).toEqual([path, 0n]);
      } else {
        expect(
          JSON.stringify(path.endsWith('.avro') ? await everyAvro(full) : await readFile(full, 'utf8')),
        ).not.toContain('gone');
      }
    }
  });

  it('removes a source completely, and leaves the other', async () => {
    const [one, two] = [await createWriter(place, stream, 'one'), await createWriter(place, stream, 'two')];
    const values = { link_id: 'l', link_url: 'https://example.com' };
    for (const writer of [one, two]) await writer.commit([sale('a', 0, values), sale('b', 1, values)]);
    expect(await place.createSink().erase({ source: 'one', kind: 'source' })).toMatchObject({
      'attribution.sales': 2,
      'attribution.links': 1,
    });
    expect((await rowsOf(place, stream, 'one')).size).toBe(0);
    expect((await rowsOf(place, stream, 'two')).size).toBe(2);
    expect((await filesIn(place.folder)).filter((path) => /\/one-[^/]+$/.test(path))).toEqual([]);
    await one.lease.release();
    const again = await createWriter(place, stream, 'one');
    expect(await again.commit([sale('a')])).toMatchObject({ new: 1 });
  });
});

describe('the catalog', () => {
  it('has the tables that pyiceberg and Java share', async () => {
    const columns = await place.state.query({
      text: `select table_name, column_name, character_maximum_length as length from information_schema.columns
        where table_schema = 'public' and table_name like 'iceberg%' order by table_name, ordinal_position`,
    });
    expect(columns.map((row) => Object.values(row).join(' '))).toEqual([
      'iceberg_namespace_properties catalog_name 255',
      'iceberg_namespace_properties namespace 255',
      'iceberg_namespace_properties property_key 255',
      'iceberg_namespace_properties property_value 1000',
      'iceberg_tables catalog_name 255',
      'iceberg_tables table_namespace 255',
      'iceberg_tables table_name 255',
      'iceberg_tables metadata_location 1000',
      'iceberg_tables previous_metadata_location 1000',
      'iceberg_tables iceberg_type 5',
    ]);
  });

  it('refuses a commit based on a version that another program has replaced; nothing of it stays', async () => {
    const writer = await createWriter(place, stream, 'one');
    await writer.commit([sale('a')]);
    const before = await filesIn(place.folder);
    const { location } = await place.lookAt('sales');
    // Another program commits just before us: a trigger replaces the version.
    const other = location.replace(/[^/]+$/, '00009-other.metadata.json');
    await writeFile(pathOf(other), await readFile(pathOf(location)));
    await place.state.query({
      text: `create function other() returns trigger language plpgsql as $$ begin
        if new.metadata_location <> '${other}' then return null; end if; return new; end $$`,
    });
    await place.state.query({
      text: 'create trigger other before update on public.iceberg_tables for each row execute function other()',
    });
    await expect(writer.commit([sale('b')])).rejects.toThrow(RetryLater);
    expect((await filesIn(place.folder)).filter((path) => !path.includes('00009-other'))).toEqual(before);
    await place.state.query({ text: 'drop trigger other on public.iceberg_tables' });
    // Merged into the new version.
    expect(await writer.commit([sale('b')])).toMatchObject({ new: 1 });
    expect((await rowsOf(place, stream, 'one')).size).toBe(2);
  });
});
