import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { openPartition } from '../../src/sinks/files/partition-file.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { readFooter, readGroup } from '../../src/sinks/parquet/format/index.ts';
import { tidy } from '../../src/sinks/parquet/maintain.ts';
import { type LakePlace, lakeOf, lakePlace } from '../support/lake-place.ts';
import { filesIn, globOf, queryDuckdb } from '../support/lake-readers.ts';
import { certified, createWriter, MINUTE, NOON, receipt, rowOf, rowsOf } from '../support/sink-harness.ts';

/** Which file an event belongs to, and when a file is rewritten. */
describe.each(['day', 'hour'] as const)('a lake with one file per %s', (scheme) => {
  const stream = STREAMS.sales;
  const HOUR = 60 * MINUTE;
  const step = scheme === 'day' ? DAY_MS : HOUR;
  let place: LakePlace;
  beforeAll(async () => {
    place = await lakePlace({ scheme });
    await place.createSink().prepare(stream);
  });
  afterAll(() => place.close());

  const sale = (id: string, at: number, amount = 1) => rowOf(stream, id, at, { sale_amount: amount });
  const filesOf = async (source: string) =>
    (await filesIn(place.folder)).filter((file) => file.includes(`/${source}.`));
  const pathOf = (source: string, at: number): string => {
    const iso = new Date(at).toISOString();
    const hour = scheme === 'hour' ? `hour=${iso.slice(11, 13)}/` : '';
    return `sales/date=${iso.slice(0, 10)}/${hour}${source}.parquet`;
  };
  const versionOf = async (file: string) => (await stat(join(place.folder, file), { bigint: true })).mtimeNs;

  it('puts each event into the file of its time', async () => {
    const writer = await createWriter(place, stream);
    const { source } = writer.lease;
    const ends = [NOON - 12 * HOUR, NOON - 12 * HOUR - 0.001, NOON, Date.parse('0001-01-01T00:00:00.000Z')];
    await writer.commit(ends.map((at, i) => sale(`e${i}`, at)));
    expect(await filesOf(source)).toEqual([...new Set(ends.map((at) => pathOf(source, Math.floor(at))))].sort());
    const found = await queryDuckdb(
      `select date::varchar as date, ${scheme === 'hour' ? 'hour::int' : '0'} as hour, epoch_us("timestamp")::double / 1000 as at
       from ${globOf(place.folder, 'sales')} where _source = '${source}'`,
    );
    for (const { date, hour, at } of found) {
      const [day, time] = new Date(Math.floor(Number(at))).toISOString().split('T');
      expect([date, hour]).toEqual([day, scheme === 'hour' ? Number(time?.slice(0, 2)) : 0]);
    }
  });

  it('rewrites only files with new or changed events', async () => {
    const writer = await createWriter(place, stream);
    const { source } = writer.lease;
    const [one, two] = [pathOf(source, NOON), pathOf(source, NOON + step)];
    await writer.commit([sale('a', NOON), sale('b', NOON + step)]);
    const before = [await versionOf(one), await versionOf(two)];
    expect(await writer.commit([sale('a', NOON), sale('b', NOON + step)])).toEqual(receipt({ unchanged: 2 }));
    expect([await versionOf(one), await versionOf(two)]).toEqual(before);
    await writer.commit([sale('a', NOON), sale('b', NOON + step, 2)]);
    expect(await versionOf(one)).toBe(before[0]);
    expect(await versionOf(two)).not.toBe(before[1]);
  });

  it('keeps an event whose time changes in its first file, once', async () => {
    const writer = await createWriter(place, stream);
    const { source } = writer.lease;
    await writer.commit([sale('moves', NOON), sale('stays', NOON)]);
    expect(await writer.commit([sale('moves', NOON + 3 * step, 2)])).toEqual(receipt({ changed: 1 }));
    // Another process, which knows only the files, and a third time.
    expect(await writer.commit([sale('moves', NOON + 5 * step, 3), sale('new', NOON + 5 * step)])).toEqual(
      receipt({ new: 1, changed: 1 }),
    );
    const rows = await rowsOf(place, stream, source);
    expect(rows.get('moves')).toMatchObject({ timestamp: NOON + 5 * step, sale_amount: 3 });
    expect(await filesOf(source)).toEqual([pathOf(source, NOON), pathOf(source, NOON + 5 * step)].sort());
    // Of two times in one run, the newer counts.
    expect(await writer.commit([sale('moves', NOON + 4 * step, 9)])).toEqual(receipt({ unchanged: 1 }));
    expect(await writer.commit([sale('moves', NOON + 5 * step, 9)])).toEqual(receipt({ changed: 1 }));
    // A completely read window without the event marks it, in any file.
    const spans = [{ ...certified(NOON + 5 * step, NOON + 6 * step, 1), whole: true }];
    await writer.commit([sale('new', NOON + 5 * step)], { spans });
    const marked = [...(await rowsOf(place, stream, source))].filter(([, row]) => row._missing_since !== null);
    expect(marked.map(([id]) => id)).toEqual(['moves']);
  });

  it('lets a reader with the old footer read the new file', async () => {
    const writer = await createWriter(place, stream);
    const path = pathOf(writer.lease.source, NOON);
    const store = createFolderStore(place.folder);
    const at = { source: writer.lease.source, stream: stream.name };
    const look = async () => {
      const file = await openPartition(store, path, at);
      if (!file) throw new Error('no file');
      const rows = await Promise.all(file.file.groups.map((group) => file.rows(group)));
      await file.close();
      return { file: file.file, size: file.size, identity: file.identity, rows };
    };
    await writer.commit([sale('a', NOON), sale('b', NOON + 5)]);
    // Every kind of change: after the others, between them, of one of them; often enough to use up the free space.
    for (let i = 1; i < 12; i++) {
      const seen = await look();
      await writer.commit([sale('a', NOON, i + 1), sale(`n${i}`, NOON + (i % 3 === 0 ? 2 : 100 + i))]);
      const open = await store.open(path);
      if (!open) throw new Error('no file');
      // With the old size: the new file begins with the old one.
      const file = await readFooter({ ...open, size: seen.size });
      const again = await Promise.all(file.groups.map((group) => readGroup(open, file, group)));
      await open.close();
      expect(again).toEqual(seen.rows);
      expect((await look()).rows.flat()).toHaveLength(2 + i);
    }
    // After tidying, it has only its own bytes.
    const before = await look();
    await tidy({ ...lakeOf(place), scheme }, at, 0);
    const after = await look();
    expect(after.rows).toEqual(before.rows);
    expect(after.size).toBeLessThan(before.size / 2);
    await tidy({ ...lakeOf(place), scheme }, at, 0);
    expect((await look()).identity).toBe(after.identity);
    expect(await writer.commit([sale('a', NOON, 12)])).toEqual(receipt({ unchanged: 1 }));
  });
});
