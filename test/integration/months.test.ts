import { expect, it } from 'vitest';
import { seenStage, selectChanged } from '../../src/sinks/postgres/compare.ts';
import { changedStage, markMissing, mergeStage } from '../../src/sinks/postgres/merge.ts';
import { asParameter } from '../../src/sinks/postgres/staged.ts';
import { untilWaiting } from '../support/locks.ts';
import { keysOf, monthsPlace, partsOf, SALES, saleAt } from '../support/months.ts';
import { createWriter, newSource, receipt, rowOf, rowsOf } from '../support/sink-harness.ts';

/** Monthly partitions: rows go to their month, exist once, and block nothing. Every test has its own months. */

const place = monthsPlace();

it('creates a partition for each UTC month with its first row', async () => {
  const writer = await createWriter(place(), SALES);
  const first = [saleAt('a', '2021-01-31T23:59:59.999Z'), saleAt('b', '2021-02-01T00:00:00Z')];
  expect(await writer.commit(first)).toEqual(receipt({ new: 2 }));
  expect(await writer.commit([saleAt('c', '2021-12-31T23:30:00-01:00'), ...first])).toEqual(
    receipt({ new: 1, unchanged: 2 }),
  );
  expect(await partsOf(place(), writer.lease.source)).toEqual([
    'a in sales_2021_01',
    'b in sales_2021_02',
    'c in sales_2022_01',
  ]);
  const indexes = await place().db.query<{ name: string }>({
    text: `select indexdef as name from pg_indexes where tablename = 'sales_2022_01' order by 1`,
  });
  expect(indexes.map(({ name }) => name.replace(/.*btree /, ''))).toEqual([
    '("timestamp")',
    `(((("timestamp" AT TIME ZONE 'UTC'::text))::date))`,
    '(_source, event_id, "timestamp")',
  ]);
});

it('puts an instant where Postgres will hold it, in whole microseconds', async () => {
  const writer = await createWriter(place(), SALES);
  const edge = Date.parse('2021-04-01T00:00:00Z') - 0.0002;
  expect(await writer.commit([rowOf(SALES, 'edge', edge)])).toEqual(receipt({ new: 1 }));
  expect(await partsOf(place(), writer.lease.source)).toEqual(['edge in sales_2021_04']);
});

it('accepts extreme times, without a partition for each of their months', async () => {
  const writer = await createWriter(place(), SALES);
  const times = ['1970-01-01T00:00:00Z', '1999-12-31T23:59:59Z', '2000-01-01T00:00:00Z', '2099-12-31T23:59:59Z'];
  const late = ['2100-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z'];
  const rows = [...times, ...late].map((time, i) => saleAt(`e${i}`, time));
  expect(await writer.commit(rows)).toEqual(receipt({ new: 6 }));
  expect(await writer.commit(rows)).toEqual(receipt({ unchanged: 6 }));
  expect(await writer.commit(rows.map((_, i) => saleAt(`e${i}`, [...times, ...late][i] ?? '', 2)))).toEqual(
    receipt({ changed: 6 }),
  );
  expect(await partsOf(place(), writer.lease.source)).toEqual([
    'e0 in sales_before_2000',
    'e1 in sales_before_2000',
    'e2 in sales_2000_01',
    'e3 in sales_2099_12',
    'e4 in sales_from_2100',
    'e5 in sales_from_2100',
  ]);
  // To the microsecond, although a double cannot distinguish them out there.
  const [last] = await place().db.query({
    text: `select to_char(max("timestamp") at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') as at from attribution.sales
      where _source = $1`,
    values: [writer.lease.source],
  });
  expect(last).toEqual({ at: '9999-12-31 23:59:59.999000' });
});

it('keeps one row of an event whose time moves to another month, and finds it there', async () => {
  const writer = await createWriter(place(), SALES);
  const { source } = writer.lease;
  await writer.commit([saleAt('moves', '2022-03-31T23:00:00Z', 1), saleAt('stays', '2022-03-31T23:00:00Z', 1)]);
  const before = (await rowsOf(place(), SALES, source)).get('moves');
  const moved = saleAt('moves', '2022-05-01T01:00:00Z', 2);
  expect(await writer.commit([moved])).toEqual(receipt({ changed: 1 }));
  expect(await partsOf(place(), source)).toEqual(['moves in sales_2022_05', 'stays in sales_2022_03']);
  expect(await keysOf(place(), source)).toEqual(await partsOf(place(), source));
  const after = (await rowsOf(place(), SALES, source)).get('moves');
  expect(after).toMatchObject({ sale_amount: 2, _first_synced_at: before?._first_synced_at });

  expect(await writer.commit([moved])).toEqual(receipt({ unchanged: 1 }));
  // The later run counts, even if its time is earlier.
  const back = await writer.commit([saleAt('moves', '2022-03-31T23:00:00Z', 1)], { runId: '20261114T120000-00000002' });
  expect(back).toEqual(receipt({ changed: 1 }));
  expect(await partsOf(place(), source)).toEqual(['moves in sales_2022_03', 'stays in sales_2022_03']);
  expect(await keysOf(place(), source)).toEqual(await partsOf(place(), source));
  expect(await writer.commit([saleAt('moves', '2022-06-01T00:00:00Z', 3)])).toEqual(receipt({ changed: 1 }));
  expect(await partsOf(place(), source)).toEqual(['moves in sales_2022_06', 'stays in sales_2022_03']);
});

it('refuses a duplicate event at any time, even from a writer that missed the first', async () => {
  const writer = await createWriter(place(), SALES);
  const { source } = writer.lease;
  await writer.commit([saleAt('other', '2022-08-01T00:00:00Z')]);
  const other = await place().db.begin();
  try {
    await other.query({
      text: `insert into attribution._sales_keys values ($1, 'twice', '2022-07-01T00:00:00Z')`,
      values: [source],
    });
    const late = writer.commit([saleAt('twice', '2022-08-01T00:00:00Z')]);
    late.catch(() => {});
    await untilWaiting(place().db);
    await other.commit();
    await expect(late).rejects.toThrow(/duplicate key.*_sales_keys/);
  } finally {
    await other.rollback();
  }
  expect(await partsOf(place(), source)).toEqual(['other in sales_2022_08']);
});

it('lets several processes create the same months at once', async () => {
  const writers = await Promise.all(Array.from({ length: 6 }, () => createWriter(place(), SALES)));
  const rows = Array.from({ length: 8 }, (_, i) => saleAt(`e${i}`, `2023-0${i + 1}-15T00:00:00Z`));
  const receipts = await Promise.all(writers.map((writer) => writer.commit(rows)));
  expect(receipts).toEqual(writers.map(() => receipt({ new: 8 })));
  for (const { lease } of writers) expect(await partsOf(place(), lease.source)).toHaveLength(8);
});

it('readers and a writer that starts a month do not block each other', async () => {
  const writer = await createWriter(place(), SALES);
  const report = await place().db.begin();
  try {
    // If the writer waits after all, the server cancels it, and the test fails instead of hanging.
    await report.query({ text: "set local idle_in_transaction_session_timeout = '3s'" });
    await report.query({ text: 'select count(*) from attribution.sales' });
    expect(await writer.commit([saleAt('a', '2023-11-01T00:00:00Z')])).toEqual(receipt({ new: 1 }));
    // A report sees a month that began during it: it reads what is committed.
    const seen = { text: 'select 1 from attribution.sales where _source = $1', values: [writer.lease.source] };
    expect(await report.query(seen)).toHaveLength(1);
  } finally {
    await report.rollback();
  }
});

const planOf = async (text: string, values: readonly unknown[]): Promise<string[]> => {
  const lines = await place().db.query<{ 'QUERY PLAN': string }>({ text: `explain ${text}`, values });
  const tables = lines.flatMap((line) => line['QUERY PLAN'].match(/\bsales_(?:\d{4}_\d\d|\w+_\d{4})\b(?=\s)/g) ?? []);
  return [...new Set(tables)].sort();
};

it('prunes to the requested months: reports, the merge, and the marks of deleted events', async () => {
  const source = newSource();
  const writer = await createWriter(place(), SALES, source);
  const times = ['2024-01-10', '2024-02-10', '2024-03-10', '2024-04-10'].map((day) => `${day}T00:00:00Z`);
  await writer.commit(times.map((time, i) => saleAt(`e${i}`, time)));
  const all = 'select count(*) from attribution.sales';
  expect((await planOf(all, [])).length).toBeGreaterThanOrEqual(4);
  const february = [times[1], times[2]];
  const range = `${all} where "timestamp" >= $1 and "timestamp" < $2`;
  expect(await planOf(range, february)).toEqual(['sales_2024_02', 'sales_2024_03']);

  const target = { schema: 'attribution', stream: SALES, partition: 'month', source, runId: 'run' } as const;
  const known = [1, 3].map((i) => ({ event_id: `e${i}`, at: Date.parse(times[i] ?? '') }));
  const merge = mergeStage(target, asParameter(changedStage(SALES), []), known);
  expect(await planOf(merge.text, merge.values ?? [])).toEqual(['sales_2024_02', 'sales_2024_04']);
  const compare = selectChanged(target, asParameter(seenStage(SALES), []), known);
  expect(await planOf(compare.text, compare.values ?? [])).toEqual(['sales_2024_02', 'sales_2024_04']);
  const window = { start: Date.parse(times[2] ?? ''), end: Date.parse(times[3] ?? '') };
  const marks = markMissing(target, window, []);
  expect(await planOf(marks.text, marks.values ?? [])).toEqual(['sales_2024_03', 'sales_2024_04']);
});
