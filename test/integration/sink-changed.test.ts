import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import type { Sandbox } from '../../src/sandbox/server.ts';
import { type Finished, freshPlace } from '../support/cli.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';

/**
 * Somebody changes a sink behind the program's back. The next sync says so, exits 0 only once every row is back, and never claims more
 * than the sink holds. State and tables in one database, and in two.
 */

let sandbox: Sandbox;
let databases: [TestDatabase, TestDatabase];
let [state, other]: Database[] = [];

const ROWS = 3000;

beforeAll(async () => {
  [sandbox, ...databases] = await Promise.all([
    smallSandbox({ rows: { clicks: ROWS, leads: 60, sales: 30 }, days: 30 }),
    freshDatabase(),
    freshDatabase(),
  ]);
  [state, other] = databases.map(({ url }) => connect({ url, max: 3 }));
});
afterAll(async () => {
  await Promise.all([state?.close(), other?.close()]);
  await Promise.all(databases.map((database) => database.drop()));
});

let places = 0;

/** A source, a schema and a folder that no other test has, synced once. */
async function synced({ isElsewhere = false, sink = '' } = {}) {
  const schema = `scene_${++places}`;
  const place = await freshPlace();
  const db = (isElsewhere ? other : state) as Database;
  const url = isElsewhere ? `, url: "${databases[1].url}"` : '';
  await place.config(
    `sources: { ${schema}: { baseUrl: "${sandbox.baseUrl}", apiKey: ${sandbox.apiKey}, plan: enterprise, requestsPerSecond: 200, since: 40d,
  streams: { clicks: { every: 1h } } } }
sinks: { warehouse: { type: postgres, schema: ${schema}${url}${sink} } }
state: { url: "${databases[0].url}" }\n`,
  );
  const tributary = async (...args: string[]): Promise<Finished> => {
    const done = await place.call([...args, '--config', 't.yaml']);
    return { ...done, text: done.text.replace(/\s+/g, ' ') };
  };
  expect(await tributary('sync')).toMatchObject({ code: 0 });
  // The first look: from here on the table is known.
  expect(await tributary('sync')).toMatchObject({ code: 0 });
  const query = async <T extends Record<string, unknown>>(text: string): Promise<T[]> =>
    db.query<T>({ text: text.replaceAll('@', schema) });
  const rows = async (): Promise<number> => Number((await query('select count(*) as n from @.clicks'))[0]?.n);
  const through = async (): Promise<number> =>
    Number((await query('select extract(epoch from complete_through) as at from @.coverage'))[0]?.at ?? 0);
  return { place, schema, tributary, query, rows, through };
}

type Scene = Awaited<ReturnType<typeof synced>>;

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

describe.each([{ isElsewhere: false }, { isElsewhere: true }])('tables, state elsewhere: $isElsewhere', (options) => {
  it.each(WHOLE)('%s: the next sync says so and brings every row back', async (_name, sql) => {
    const scene = await synced(options);
    expect(await scene.rows()).toBe(ROWS);
    await scene.query(sql);
    const { code, text } = await scene.tributary('sync');
    expect(text).toMatch(/rows where .* (is|are) read again: about [\d,]+ rows?, \d+ requests?, \d+ s/);
    expect([code, await scene.rows()]).toEqual([0, ROWS]);
    expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
    expect(await scene.tributary('verify', '--from', '40d', '--to', 'now')).toMatchObject({ code: 0 });
  });

  it('a file of its own for the same rows reopens nothing', async () => {
    const scene = await synced(options);
    const before = await scene.through();
    await scene.query('vacuum full @.clicks');
    expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
    expect(await scene.through()).toBeGreaterThanOrEqual(before);
    expect(await requestsOf(scene)).toBeLessThan(4);
  });

  it('rows of a day are deleted: found by --recount', async () => {
    const scene = await synced(options);
    await scene.query(
      `delete from @.clicks where timestamp < (select min(timestamp) from @.clicks) + interval '26 hours'`,
    );
    const left = await scene.rows();
    expect(left).toBeLessThan(ROWS);
    expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, left]);
    expect([(await scene.tributary('sync', '--recount')).code, await scene.rows()]).toEqual([0, ROWS]);
  });

  it('rows of a day are deleted: found by the daily count', async () => {
    const scene = await synced(options);
    await scene.query(
      `delete from @.clicks where timestamp < (select min(timestamp) from @.clicks) + interval '26 hours'`,
    );
    await state?.query({
      text: `update tributary.attestations set counted_at = now() - interval '25 hours' where source = '${scene.schema}'`,
    });
    expect([(await scene.tributary('sync')).code, await scene.rows()]).toEqual([0, ROWS]);
  });

  it('rows of another writer are named, not counted and not removed; --repair removes them', async () => {
    const scene = await synced(options);
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
  });
});

const requestsOf = async ({ schema }: Scene): Promise<number> => {
  const sql = `select requests from tributary.runs where source = '${schema}' order by started_at desc limit 1`;
  return Number((await state?.query<{ requests: number }>({ text: sql }))?.[0]?.requests);
};
