import { cp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { copyDatabase, freshDatabase } from '../support/postgres.ts';
import { inLake, inTables, ROWS, rowsIn, sinkScenes, synced, tablesOf } from '../support/sink-scene.ts';

/** Other faults of sinks: dropped partitions, one of two emptied, restored backups of state or sink, or one unreachable. */

const scenes = sinkScenes();
const VERIFY = ['verify', '--from', '40d', '--to', 'now'] as const;

it('a dropped partition is restored, with the rows that its keys name', async () => {
  const scene = await inTables(scenes, { more: ', partition: month' });
  const [oldest] = await scene.query<{ part: string }>(
    'select tableoid::regclass::text as part from @.clicks order by timestamp limit 1',
  );
  await scene.query(`drop table ${oldest?.part}`);
  expect(await scene.rows()).toBeLessThan(ROWS);
  expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, ROWS]);
  await scene.query('truncate @.clicks');
  expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, ROWS]);
  expect(await scene.tributary(...VERIFY)).toMatchObject({ code: 0 });
});

const TWO = (url: string): string =>
  `tables: { type: postgres, schema: SOURCE, url: "${url}" }, lake: { type: parquet, path: ./lake }`;

it('of two sinks one is emptied: only that one is filled again, and the other keeps its watermark', async () => {
  const scene = await synced(scenes, TWO(scenes.databases[1]?.url ?? ''));
  const through = async (sink: string): Promise<string> => {
    const [row] = await scenes.state.query<{ at: Date }>({
      text: 'select complete_through as at from tributary.cursors where source = $1 and sink = $2',
      values: [scene.source, sink],
    });
    return row?.at?.toISOString() ?? '';
  };
  const before = await through('tables');
  await rm(join(scene.place.dir, 'lake'), { recursive: true });
  const dry = await scene.tributary('backfill', '--from', '20d', '--to', '10d', '--dry-run');
  expect(dry.text).not.toMatch(/ 0 requests/);
  const { code, text } = await scene.tributary('sync');
  expect([code, text]).toEqual([0, expect.stringMatching(/lake.clicks holds 0 rows of .* where/)]);
  expect((await through('tables')) >= before).toBe(true);
  expect(await rowsIn(join(scene.place.dir, 'lake/clicks'))).toBe(ROWS);
});

it('a backfill reads what the sink lost, and succeeds', async () => {
  const scene = await inTables(scenes);
  await scene.query(
    `delete from @.clicks where timestamp between now() - interval '20 days' and now() - interval '15 days'`,
  );
  expect(await scene.rows()).toBeLessThan(ROWS);
  const { code, stdout } = await scene.tributary('backfill', '--from', '20d', '--to', '10d', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ streams: [{ certified: 1 }] });
  expect(await scene.rows()).toBe(ROWS);
});

it('a table that is dropped right after the first sync, or again after it was filled, is noticed at once', async () => {
  const scene = await inTables(scenes, { syncs: 1 });
  for (let i = 0; i < 2; i++) {
    await scene.query('drop table @.clicks cascade');
    const { code, text } = await scene.tributary('sync');
    expect([code, text, await scene.rows()]).toEqual([0, expect.stringMatching(/read again/), ROWS]);
  }
  expect(await scene.tributary(...VERIFY)).toMatchObject({ code: 0 });
});

const A_DAY = `delete from @.clicks where timestamp >= date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' - interval '7 days'
  and timestamp < date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' - interval '6 days'`;

it.each([
  ['verify --repair', ['verify', '--from', '6d', '--to', 'now', '--repair']],
  ['a cursor that is set', ['cursor', 'set', 'clicks', '--to', '6d']],
])('%s in the middle of a damaged day does not hide the rest of it', async (_name, args) => {
  const scene = await inTables(scenes);
  await scene.query(A_DAY);
  expect(await scene.rows()).toBeLessThan(ROWS);
  await scene.tributary(...args);
  await scene.tributary('sync');
  expect([(await scene.tributary('sync', '--recount')).code, await scene.rows()]).toEqual([0, ROWS]);
});

it('a row that was moved to another month is one row again', async () => {
  const scene = await inTables(scenes, { more: ', partition: month' });
  await scene.query(`update @.clicks set timestamp = timestamp - interval '25 days' where event_id in (
    select event_id from @.clicks where timestamp < now() - interval '2 days' order by timestamp desc limit 3)`);
  await scene.tributary('sync', '--recount');
  expect([(await scene.tributary('sync', '--recount')).code, await scene.rows()]).toEqual([0, ROWS]);
  const [doubles] = await scene.query<{ n: number }>('select count(*) - count(distinct event_id) as n from @.clicks');
  expect(Number(doubles?.n)).toBe(0);
  expect(await scene.tributary(...VERIFY)).toMatchObject({ code: 0 });
});

it('rows with a changed run id are recovered, and verify --repair leaves nothing open', async () => {
  const scene = await inTables(scenes);
  await scene.query(
    `update @.clicks set _run_id = 'etl' where event_id in (select event_id from @.clicks order by timestamp limit 3)`,
  );
  expect(await scene.tributary('sync', '--recount')).toMatchObject({ code: 4 });
  expect(await scene.tributary(...VERIFY, '--repair')).toMatchObject({ code: 0 });
  expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, ROWS]);
});

it('rows that a trigger drops are not reported as stored', async () => {
  const scene = await inTables(scenes);
  await scene.query(`create function @.f() returns trigger language plpgsql as $$begin return null; end$$;
    create trigger t before insert on @.clicks for each row execute function @.f(); truncate @.clicks`);
  const { code, text } = await scene.tributary('sync');
  expect([code, text]).toEqual([4, expect.stringMatching(/did not arrive: a trigger/)]);
  await scene.query('drop trigger t on @.clicks');
  expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, ROWS]);
});

it.each(['backup/copy.parquet', 'x.parquet', 'date=foo/copy.parquet', '.hidden.parquet'])(
  'a copy of a file at %s is reported, and --repair removes it',
  async (path) => {
    const scene = await inLake(scenes);
    const [from = ''] = (await scene.days()).slice(5);
    await cp(join(from, scene.file), join(scene.clicks, path));
    const { code, text } = await scene.tributary('sync');
    expect([code, text]).toEqual([4, expect.stringMatching(/is not a file of the lake's layout/)]);
    expect(await scene.tributary(...VERIFY, '--repair')).toMatchObject({ code: 0 });
    expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, ROWS]);
  },
);

it('doctor reports a replaced sink', async () => {
  const scene = await inTables(scenes);
  await scene.query('truncate @.clicks');
  expect((await scene.tributary('doctor')).text).toMatch(/clicks is not the one that was last counted/);
});

/** Backups of the state and of both sinks, then three new events, and each of the backups restored. */
describe('a backup', () => {
  const CASES = [
    { of: 'the state', isState: true, isSink: false },
    { of: 'the sinks', isState: false, isSink: true },
    { of: 'both', isState: true, isSink: true },
  ];

  it.each(CASES)('of $of is restored: sync alone ends exact, without duplicates', async ({ isState, isSink }) => {
    const live = await freshDatabase();
    const scene = await synced({ ...scenes, databases: [live] }, TWO(scenes.databases[1]?.url ?? ''));
    const { query, rows } = tablesOf(scenes.other, scene.source);
    const lake = join(scene.place.dir, 'lake');
    const [events, before] = [scenes.sandbox.service.events('clicks').length, await copyDatabase(live)];
    await query(
      'create table @.backup as select * from @.clicks; create table @.receipts as select * from @._receipts',
    );
    await cp(lake, `${lake}-backup`, { recursive: true });

    const [pattern = {}] = scenes.sandbox.service.events('clicks').slice(-1);
    for (let i = 0; i < 3; i++) {
      const [id, timestamp] = [`after-${scene.source}-${i}`, new Date(Date.now() - 720_000 + i * 1000).toISOString()];
      const click = { ...(pattern.click as object), id, timestamp };
      scenes.sandbox.service.add('clicks', { ...pattern, timestamp, click_id: id, click } as typeof pattern);
    }
    expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
    expect([await rows(), await rowsIn(`${lake}/clicks`)]).toEqual([events + 3, events + 3]);

    if (isSink) {
      // Like a copy of the complete server: the same tables and files, with their earlier contents.
      await query(`delete from @.clicks where event_id not in (select event_id from @.backup);
        delete from @._receipts; insert into @._receipts select * from @.receipts`);
      await rm(lake, { recursive: true });
      await rename(`${lake}-backup`, lake);
    }
    if (isState) await scene.useState(before.url);
    for (let i = 0; i < 2; i++) expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
    expect([await rows(), await rowsIn(`${lake}/clicks`)]).toEqual([events + 3, events + 3]);
    expect(await scene.tributary(...VERIFY)).toMatchObject({ code: 0 });
    for (const database of [live, before]) await database.drop();
  });
});

it('an unreachable sink is a fault of that sink: nothing in it is certified or reopened', async () => {
  const away = await freshDatabase();
  const scene = await synced(scenes, TWO(away.url));
  const windows = (sink: string): Promise<Array<{ certified: string; at: Date; read: Date }>> =>
    scenes.state.query({
      text: `select count(*) filter (where state = 'certified') as certified, max(end_at) as at, max(read_at) as read from tributary.windows
        where source = $1 and sink = $2`,
      values: [scene.source, sink],
    });
  const before = await windows('tables');
  // A server that refuses connections, as while it starts or stops.
  await scenes.other.query({ text: `alter database ${new URL(away.url).pathname.slice(1)} allow_connections false` });
  const { code, text } = await scene.tributary('sync', '--recount');
  expect([code, text]).toEqual([4, expect.stringContaining('tables')]);
  expect(await windows('tables')).toEqual(before);
  await away.drop();
  // The other continues.
  expect((await windows('lake'))[0]?.read.valueOf()).toBeGreaterThan(before[0]?.read.valueOf() ?? 0);
});
