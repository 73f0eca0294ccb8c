import { cp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { queryDuckdb } from '../support/lake-readers.ts';
import { inLake, inTables, type LakeScene, ROWS, sinkScenes } from '../support/sink-scene.ts';
import { isDeep } from '../tiers.ts';

/**
 * Another program changes a sink. The next sync says so, exits 0 only once every row is back, and never claims more
 * than the sink holds. State and tables in one database, and in two.
 */

const scenes = sinkScenes();

/** The first tier tests one of each kind. */
const some = <T>(all: readonly T[]): readonly T[] => (isDeep ? all : all.slice(0, 1));

const WHOLE: ReadonlyArray<readonly [name: string, sql: string]> = [
  ['the table is dropped', 'drop table @.clicks cascade'],
  ['the table is truncated', 'truncate @.clicks'],
  ['the schema is dropped', 'drop schema @ cascade'],
  [
    'the newest six hours are not in the backup',
    `
    create table @.copy (like @.clicks including all);
    insert into @.copy select * from @.clicks where timestamp < (select max(timestamp) from @.clicks) - interval '6 hours';
    drop table @.clicks cascade; alter table @.copy rename to clicks`,
  ],
];

describe.each(some([{ isElsewhere: false }, { isElsewhere: true }]))(
  'tables, state elsewhere: $isElsewhere',
  (options) => {
    it.each(some(WHOLE))('%s: the next sync says so and restores every row', async (_name, sql) => {
      const scene = await inTables(scenes, { ...options, isBuilt: isDeep });
      expect(await scene.rows()).toBe(ROWS);
      await scene.query(sql);
      const { code, text } = await scene.tributary('sync');
      expect(text).toMatch(/where .* were written.* (is|are) read again: about [\d,]+ rows?, \d+ requests?, \d+ s/);
      expect([code, await scene.rows()]).toEqual([0, ROWS]);
      expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
      expect(await scene.tributary('verify', '--from', '40d', '--to', 'now')).toMatchObject({ code: 0 });
    });

    it.runIf(isDeep)('rewritten storage of the same rows reopens nothing', async () => {
      const scene = await inTables(scenes, options);
      const before = await scene.through();
      await scene.query('vacuum full @.clicks');
      expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
      expect(await scene.through()).toBeGreaterThanOrEqual(before);
      expect(await scene.requests()).toBeLessThan(4);
    });

    it('backfilled rows from before `since` are lost: they are read again, too', async () => {
      const scene = await inTables(scenes, { ...options, since: '10d' });
      expect(await scene.tributary('backfill', 'clicks', '--from', '25d', '--to', '10d')).toMatchObject({ code: 0 });
      const all = await scene.rows();
      await scene.query('truncate @.clicks');
      expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, all]);
      expect(await scene.tributary('verify', '--from', '25d', '--to', 'now')).toMatchObject({ code: 0 });
    });

    it('rows of a day are deleted: found by --recount', async () => {
      const scene = await inTables(scenes, options);
      await scene.query(
        `delete from @.clicks where timestamp < (select min(timestamp) from @.clicks) + interval '26 hours'`,
      );
      const left = await scene.rows();
      expect(left).toBeLessThan(ROWS);
      expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, left]);
      expect([(await scene.tributary('sync', '--recount')).code, await scene.rows()]).toEqual([0, ROWS]);
    });

    it.runIf(isDeep)('rows of a day are deleted: found by the daily count', async () => {
      const scene = await inTables(scenes, options);
      await scene.query(
        `delete from @.clicks where timestamp < (select min(timestamp) from @.clicks) + interval '26 hours'`,
      );
      await scenes.state.query({
        text: `update tributary.attestations set counted_at = now() - interval '25 hours' where source = '${scene.source}'`,
      });
      expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, ROWS]);
    });

    it.runIf(isDeep)(
      'rows of another writer are reported, not counted and not removed; --repair removes them',
      async () => {
        const scene = await inTables(scenes, options);
        await scene.query(`
      create table @.copy as select * from @.clicks order by timestamp limit 2;
      update @.copy set event_id = event_id || '-again', _run_id = 'by-hand'; insert into @.clicks select * from @.copy`);
        for (let i = 0; i < 2; i++) {
          const { code, text } = await scene.tributary('sync', '--recount');
          expect(text).toMatch(/2 rows of another writer \(_run_id "by-hand"/);
          expect([code, await scene.rows()]).toEqual([4, ROWS + 2]);
        }
        expect(await scene.tributary('verify', '--from', '40d', '--to', 'now')).toMatchObject({ code: 4 });
        expect(await scene.tributary('verify', '--from', '40d', '--to', 'now', '--repair')).toMatchObject({ code: 0 });
        expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, ROWS]);
      },
    );
  },
);

const TWICE: ReadonlyArray<readonly [name: string, sql: string]> = [
  [
    'a table with a child',
    'create table @.child () inherits (@.clicks); insert into @.child select * from @.clicks limit 3',
  ],
  [
    'a table without its key',
    'alter table @.clicks drop constraint clicks_pkey; insert into @.clicks select * from @.clicks limit 3',
  ],
];

describe.runIf(isDeep)('tables that others changed', () => {
  it.each(TWICE)('%s holds events twice: reported, not certified; --repair leaves one of each', async (_name, sql) => {
    const scene = await inTables(scenes);
    await scene.query(sql);
    for (let i = 0; i < 2; i++) {
      const { code, text } = await scene.tributary('sync', '--recount');
      expect([code, text]).toEqual([4, expect.stringContaining('holds 3 events more than once')]);
    }
    expect(await scene.tributary('verify', '--from', '40d', '--to', 'now', '--repair')).toMatchObject({ code: 0 });
    expect([(await scene.tributary('sync', '--recount')).code, await scene.rows()]).toEqual([0, ROWS]);
  });

  it('rows without a run id count as another writer’s', async () => {
    const scene = await inTables(scenes);
    await scene.query(`
      alter table @.clicks alter column _run_id drop not null; create table @.copy as select * from @.clicks limit 2;
      update @.copy set event_id = event_id || '-again', _run_id = null; insert into @.clicks select * from @.copy`);
    const { code, text } = await scene.tributary('sync', '--recount');
    expect([code, text]).toEqual([4, expect.stringContaining('2 rows of another writer (_run_id null')]);
  });

  it('a view in place of the table is refused with a reason', async () => {
    const scene = await inTables(scenes);
    await scene.query('alter table @.clicks rename to elsewhere; create view @.clicks as select * from @.elsewhere');
    expect(await scene.tributary('sync')).toMatchObject({ code: 2, text: expect.stringContaining('is not a table') });
  });
});

it.runIf(isDeep)('a file in place of the lake is refused, and reopens nothing', async () => {
  const scene = await inLake(scenes);
  const before = await scene.through();
  await rename(join(scene.place.dir, 'lake'), join(scene.place.dir, 'elsewhere'));
  await writeFile(join(scene.place.dir, 'lake'), '');
  const { code, text } = await scene.tributary('sync');
  expect([code, text]).toEqual([2, expect.stringContaining('a file is where a folder should be')]);
  await rm(join(scene.place.dir, 'lake'));
  await rename(join(scene.place.dir, 'elsewhere'), join(scene.place.dir, 'lake'));
  expect(await scene.through()).toBe(before);
  expect(await scene.tributary('sync')).toMatchObject({ code: 0, text: expect.not.stringContaining('read again') });
});

const LOST: ReadonlyArray<readonly [name: string, change: (scene: LakeScene) => Promise<unknown>]> = [
  ['the folder of a day is deleted', async ({ days }) => rm((await days())[9] ?? '', { recursive: true })],
  ['the whole lake is deleted', async ({ place }) => rm(join(place.dir, 'lake'), { recursive: true })],
  ['a file is deleted', async ({ days, file }) => rm(join((await days())[4] ?? '', file))],
  [
    'the file of one day replaces another',
    async ({ days, file }) => {
      const [one = '', two = ''] = (await days()).slice(6, 8);
      await rename(join(one, file), join(two, file));
    },
  ],
];

describe('a lake', () => {
  it.each(some(LOST))('%s: the next sync says so and restores every row', async (_name, change) => {
    const scene = await inLake(scenes, isDeep);
    expect(await scene.rows()).toBe(ROWS);
    await change(scene);
    const { code, text } = await scene.tributary('sync');
    expect(text).toMatch(/where .* were written.* (is|are) read again: about [\d,]+ rows?/);
    expect([code, await scene.rows()]).toEqual([0, ROWS]);
    expect(await scene.tributary('verify', '--from', '40d', '--to', 'now')).toMatchObject({ code: 0 });
  });

  it.runIf(isDeep)('a copy of all files reopens nothing', async () => {
    const scene = await inLake(scenes);
    const before = await scene.through();
    await cp(scene.clicks, `${scene.clicks}-copy`, { recursive: true });
    await rm(scene.clicks, { recursive: true });
    await rename(`${scene.clicks}-copy`, scene.clicks);
    expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
    expect(await scene.through()).toBeGreaterThanOrEqual(before);
    expect(await scene.requests()).toBeLessThan(4);
  });

  const FOREIGN: ReadonlyArray<readonly [name: string, path: (scene: LakeScene) => Promise<string>]> = [
    ['next to ours', async ({ days }) => join((await days())[3] ?? '', 'theirs.parquet')],
    ['in place of ours', async ({ days, file }) => join((await days())[3] ?? '', file)],
  ];

  it.runIf(isDeep).each(FOREIGN)(
    'a file of another writer %s is reported and stays; --repair removes it',
    async (_name, at) => {
      const scene = await inLake(scenes);
      const path = await at(scene);
      await queryDuckdb(`copy (select 1 as x) to '${path}' (format parquet)`);
      for (let i = 0; i < 2; i++) {
        const { code, text } = await scene.tributary('sync');
        expect(text).toMatch(/was not written by Tributary/);
        expect([code, (await readdir(dirname(path))).includes(basename(path))]).toEqual([4, true]);
      }
      expect(await scene.tributary('verify', '--from', '40d', '--to', 'now')).toMatchObject({ code: 4 });
      expect(await scene.tributary('verify', '--from', '40d', '--to', 'now', '--repair')).toMatchObject({ code: 0 });
      expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, ROWS]);
    },
  );

  it.runIf(isDeep)(
    'a file of ours that is copied into another day is reported; --repair removes the copy',
    async () => {
      const scene = await inLake(scenes);
      const [one = '', two = ''] = (await scene.days()).slice(6, 8);
      await cp(join(one, scene.file), join(two, scene.file));
      const { code, text } = await scene.tributary('sync');
      expect([code, text]).toEqual([4, expect.stringMatching(/holds \d+ events that another file holds too/)]);
      const fixed = await scene.tributary('verify', '--from', '40d', '--to', 'now', '--repair');
      expect([fixed.code, fixed.text]).toEqual([0, expect.anything()]);
      expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, ROWS]);
    },
  );
});
