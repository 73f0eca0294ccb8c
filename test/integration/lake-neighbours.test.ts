import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { createFileTarget, createSpool } from '../../src/sinks/export.ts';
import { keyOf } from '../../src/sinks/files/event-index.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { type Store, writeSmall } from '../../src/sinks/files/store/store.ts';
import { type LakePlace, lakePlace } from '../support/lake-place.ts';
import { filesIn, queryDuckdb } from '../support/lake-readers.ts';
import { createWriter, NOON, newSource, receipt, rowOf, rowsOf } from '../support/sink-harness.ts';

/** Other files in the folder, and other writers to it. */
const stream = STREAMS.clicks;
const DAY = 'clicks/date=2026-11-14';
const click = (id: string, country = 'DE') => rowOf(stream, id, NOON, { click_country: country });
let place: LakePlace;
beforeAll(async () => {
  place = await lakePlace();
  await place.createSink().prepare(stream);
  await mkdir(join(place.folder, DAY), { recursive: true });
});
afterAll(() => place.close());

it('removes leftovers of killed writers, and nothing else', async () => {
  const dead = 2 ** 22 + 1;
  const [ours, alive, elsewhere, old] = [
    `.main.parquet.${dead}@${hostname()}.1.tmp`,
    `.main.parquet.${process.ppid}@${hostname()}.1.tmp`,
    '.main.parquet.17@another-host.1.tmp',
    '.main.parquet.17@another-host.2.tmp',
  ] as const;
  const strangers = ['.hidden', 'notes.txt', 'main.parquet.tmp', '.other.tmp'];
  for (const name of [ours, alive, elsewhere, old, ...strangers]) await writeFile(join(place.folder, DAY, name), 'x');
  const lock = '.left.parquet.lock';
  await writeFile(join(place.folder, DAY, lock), ours);
  const longAgo = new Date(Date.now() - 3_600_000);
  for (const name of [old, ...strangers]) await utimes(join(place.folder, DAY, name), longAgo, longAgo);
  await (await createWriter(place, stream)).commit([click('a')]);
  const left = (await filesIn(join(place.folder, DAY))).filter((name) => !name.endsWith('.parquet'));
  expect(left.sort()).toEqual([alive, elsewhere, ...strangers].sort());
});

it('leaves files of others alone, and refuses one at its own path', async () => {
  const source = newSource();
  const foreign = join(place.folder, DAY, `${source}.parquet`);
  await queryDuckdb(`copy (select 1 as x) to '${foreign}' (format parquet)`);
  const bytes = await readFile(foreign);
  const writer = await createWriter(place, stream, source);
  await expect(writer.commit([click('a')])).rejects.toThrow(/was not written by Tributary/);
  expect(await readFile(foreign)).toEqual(bytes);
  await rename(foreign, join(place.folder, DAY, 'theirs.parquet'));
  expect(await writer.commit([click('a')])).toEqual(receipt({ new: 1 }));
  expect(await readFile(join(place.folder, DAY, 'theirs.parquet'))).toEqual(bytes);
  await rename(join(place.folder, DAY, 'theirs.parquet'), join(place.folder, 'theirs.parquet'));
});

it('refuses a torn file of its own, with a remedy', async () => {
  const writer = await createWriter(place, stream);
  await writer.commit([click('a')]);
  const file = join(place.folder, DAY, `${writer.lease.source}.parquet`);
  const intact = await readFile(file);
  await writeFile(file, intact.subarray(0, intact.length - 9));
  await expect(writer.commit([click('a', 'FR')])).rejects.toMatchObject({
    next: expect.stringContaining('verify --repair'),
  });
  await writeFile(file, intact);
  expect(await writer.commit([click('a', 'FR')])).toEqual(receipt({ changed: 1 }));
});

it('follows no link out of the lake, and no name with a path', async () => {
  const outside = await mkdtemp(join(tmpdir(), 'tributary-outside-'));
  await symlink(outside, join(place.folder, 'clicks/date=2026-11-20'));
  const writer = await createWriter(place, stream);
  const late = rowOf(stream, 'late', Date.UTC(2026, 10, 20));
  await expect(writer.commit([late])).rejects.toThrow(/leads out of the lake/);
  expect(await filesIn(outside)).toEqual([]);
  const target = join(outside, 'target.parquet');
  await writeFile(target, 'theirs');
  await symlink(target, join(place.folder, DAY, `${writer.lease.source}.parquet`));
  await expect(writer.commit([click('a')])).rejects.toThrow(/leads out of the lake/);
  expect(await readFile(target, 'utf8')).toBe('theirs');
  await rm(join(place.folder, DAY, `${writer.lease.source}.parquet`));
  await rm(outside, { recursive: true });
  const sly = await createWriter(place, stream, '../../sly');
  await expect(sly.commit([click('a')])).rejects.toThrow(/cannot be the name of a file/);
  await expect(createFolderStore(place.folder).stage('../sly.parquet')).rejects.toThrow(/leads out of the lake/);
});

it('refuses the second of two independent writers', async () => {
  const store = createFolderStore(place.folder);
  const folder = 'leads/date=2026-11-14';
  const path = `${folder}/main.parquet`;
  const make = async (text: string) => {
    const staged = await store.stage(path);
    await staged.write(Buffer.from(text), 0);
    await (await staged.finish()).close();
    return staged;
  };
  const [one, two] = [await make('one'), await make('two')];
  const identity = await one.publish(undefined);
  await expect(two.publish(undefined)).rejects.toThrow(/replaced by another writer/);
  const [three, four] = [await make('three'), await make('four')];
  const next = await three.publish(identity);
  expect(next).not.toBe(identity);
  await expect(four.publish(identity)).rejects.toThrow(/replaced by another writer/);
  // Exactly while the other replaces the file.
  await writeFile(join(place.folder, folder, '.main.parquet.lock'), `.x.parquet.${process.ppid}@elsewhere.1.lock`);
  const five = await make('five');
  await expect(five.publish(next)).rejects.toThrow(/another writer is replacing/);
  for (const staged of [one, two, three, four, five]) await staged.discard();
  expect(await readFile(join(place.folder, path), 'utf8')).toBe('three');
});

it('does not duplicate an event that another state database has written to any file', async () => {
  const other = await lakePlace({ folder: place.folder });
  const source = newSource();
  const [ours, theirs] = [await createWriter(place, stream, source), await createWriter(other, stream, source)];
  await ours.commit([click('a')]);
  expect(await theirs.commit([click('a'), click('b'), click('c')])).toEqual(receipt({ new: 2, unchanged: 1 }));
  // Written by a process that compared its files long ago.
  expect(await ours.commit([click('b'), click('d')])).toEqual(receipt({ new: 1, unchanged: 1 }));
  expect(await ours.commit([click('c', 'FR')])).toEqual(receipt({ changed: 1 }));
  // One foreign file makes it check all of them: the other process has put the event into the file of another day.
  const late = (id: string, day: number) => rowOf(stream, id, NOON + day * DAY_MS);
  await theirs.commit([late('moves', 1), click('x')]);
  expect(await ours.commit([late('moves', 2), click('e')])).toEqual(receipt({ new: 1, changed: 1 }));
  expect([...(await rowsOf(place, stream, source)).keys()].sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'moves', 'x']);
  await other.close();
});

it('does not duplicate an event after a file was restored or removed', async () => {
  const writer = await createWriter(place, stream);
  const file = join(place.folder, DAY, `${writer.lease.source}.parquet`);
  await writer.commit([click('a')]);
  await writer.commit([click('b')]);
  const newer = await readFile(file);
  // The state is restored from a copy that is older than the lake.
  await place.state.query({ text: 'delete from tributary.lake_index where key = $1', values: [String(keyOf('b'))] });
  await writeFile(file, newer);
  expect(await writer.commit([click('b'), click('c')])).toEqual(receipt({ new: 1, unchanged: 1 }));
  await rm(file);
  expect(await writer.commit([click('a'), click('d')])).toEqual(receipt({ new: 2 }));
  expect([...(await rowsOf(place, stream, writer.lease.source)).keys()].sort()).toEqual(['a', 'd']);
});

it('does not duplicate events that two processes write concurrently', async () => {
  const other = await lakePlace({ folder: place.folder });
  const source = newSource();
  const writers = [await createWriter(place, stream, source), await createWriter(other, stream, source)];
  let refused = 0;
  for (let round = 0; round < 8; round++) {
    const batch = [click(`same-${round}`), click(`same-${round - 1}`, `C${round}`)];
    const outcomes = await Promise.allSettled(writers.map((writer) => writer.commit(batch)));
    refused += outcomes.filter(({ status }) => status === 'rejected').length;
  }
  expect(refused).toBeLessThan(16);
  for (const writer of writers) await writer.commit([click('same-7', 'C8')]);
  expect((await rowsOf(place, stream, source)).size).toBeGreaterThan(1);
  await other.close();
});

it('loses nothing when two processes write concurrently', async () => {
  // Neither publishes its file before the other has written its own, from the same file.
  const waiting: (() => void)[] = [];
  const bothHaveWritten = () =>
    new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 2) for (const go of waiting.splice(0)) go();
    });
  const wrap = (store: Store): Store => ({
    ...store,
    async stage(path) {
      const staged = await store.stage(path);
      return { ...staged, publish: (over) => bothHaveWritten().then(() => staged.publish(over)) };
    },
  });
  const places = [await lakePlace({ folder: place.folder, wrap }), await lakePlace({ folder: place.folder, wrap })];
  const source = newSource();
  const writers = await Promise.all(places.map((each) => createWriter(each, stream, source)));
  const kept: string[] = [];
  for (let round = 0; round < 8; round++) {
    const ids = writers.map((_, w) => `r${round}-w${w}`);
    const outcomes = await Promise.allSettled(writers.map((writer, w) => writer.commit([click(ids[w] ?? '')])));
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [String(outcome.reason)] : []));
    expect(refused).toEqual([expect.stringContaining('another writer')]);
    kept.push(...ids.filter((_, w) => outcomes[w]?.status === 'fulfilled'));
  }
  expect([...(await rowsOf(place, stream, source)).keys()].sort()).toEqual(kept.sort());
  for (const each of places) await each.close();
});

it('merges files of another state database, and finds moved events after its own state was lost', async () => {
  const writer = await createWriter(place, stream);
  const { source } = writer.lease;
  await writer.commit([click('a'), click('b')]);
  for (const table of ['lake_tracks', 'lake_files', 'lake_index']) {
    await place.state.query({ text: `truncate tributary.${table}` });
  }
  const sink = place.createSink();
  const batch = await sink.open(stream);
  await batch.write([rowOf(stream, 'a', NOON + 86_400_000, { click_country: 'FR' }), click('b')]);
  expect(await batch.commit(writer.advance())).toEqual(receipt({ changed: 1, unchanged: 1 }));
  expect((await rowsOf(place, stream, source)).size).toBe(2);
});

it('gives files the mode that the umask or the config sets', async () => {
  const modeOf = async (path: string) => ((await stat(join(place.folder, path))).mode & 0o7777).toString(8);
  const mask = process.umask(0o027);
  try {
    const writer = await createWriter(place, stream);
    const file = (day: number) => `clicks/date=2027-01-0${day}/${writer.lease.source}.parquet`;
    const at = (day: number) => rowOf(stream, `d${day}`, Date.UTC(2027, 0, day));
    await writer.commit([at(1)]);
    expect([await modeOf(file(1)), await modeOf(join(file(1), '..'))]).toEqual(['640', '750']);
    process.umask(0o077);
    await writer.commit([at(2)]);
    expect([await modeOf(file(2)), await modeOf(join(file(2), '..'))]).toEqual(['600', '700']);
    const shared = createFolderStore(join(place.folder, 'shared'), { fileMode: 0o664 });
    await writeSmall(await shared.stage('clicks/date=2027-01-03/note.txt'), 'x');
    const modes = [
      'shared',
      'shared/clicks',
      'shared/clicks/date=2027-01-03',
      'shared/clicks/date=2027-01-03/note.txt',
    ];
    expect(await Promise.all(modes.map(modeOf))).toEqual(['775', '775', '775', '664']);
    process.umask(0o022);
    const target = await createFileTarget(join(place.folder, 'export.csv'), { replace: false });
    await target.write('x');
    await target.finish();
    expect(await modeOf('export.csv')).toBe('644');
  } finally {
    process.umask(mask);
  }
});

it('an export follows no link at its path, and reuses no file of another', async () => {
  const out = join(place.folder, 'planted.csv');
  const victim = join(place.folder, 'victim');
  await writeFile(victim, 'precious');
  for (const name of ['planted.csv.partial', 'planted.csv.spool']) await symlink(victim, join(place.folder, name));
  const target = await createFileTarget(out, { replace: false });
  const spool = await createSpool(out);
  await spool.add([rowOf(stream, 'spooled', NOON)]);
  await target.write('x');
  const names = (await readdir(place.folder)).filter((name) => name.includes('planted') && name.startsWith('.'));
  expect(names).toEqual([expect.stringMatching(/^\.planted\.csv\.[0-9a-f]{16}\.partial$/)]);
  const replayed: string[] = [];
  for await (const rows of spool.replay()) replayed.push(...rows.map(({ id }) => id));
  expect(replayed).toEqual(['spooled']);
  await spool.remove();
  await target.finish();
  expect([await readFile(victim, 'utf8'), await readFile(out, 'utf8')]).toEqual(['precious', 'x']);
});
