import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { lookAtPostmaster } from '../../src/cursor/embedded/server.ts';
import { type Finished, freshPlace, longLines, type Place } from '../support/cli.ts';
import { silentLog } from '../support/silent-log.ts';

/** The first contact: one command, real rows in real tables, and a status that still shows them. */
describe('tributary demo', () => {
  let place: Place;
  let first: Finished;
  let took: number;

  beforeAll(async () => {
    place = await freshPlace();
    const started = performance.now();
    first = await place.run(['demo']);
    took = performance.now() - started;
  });

  const serverState = async (): Promise<string> =>
    (await lookAtPostmaster(join(place.dir, '.tributary/postgres'))).state;

  /** A digest of the rows of each table. */
  async function digests(): Promise<object[]> {
    const server = await openEmbedded({ dir: join(place.dir, '.tributary'), log: silentLog, attach: true });
    const db = connect({ url: server.url, max: 1 });
    try {
      const text = ['clicks', 'leads', 'sales']
        .map((name) => `select count(*) as rows, md5(string_agg(t::text, ',' order by event_id)) from demo.${name} t`)
        .join(' union all ');
      return await db.query({ text });
    } finally {
      await db.close();
      await server.close();
    }
  }

  it('succeeds within a minute', () => {
    expect(first.code, first.text).toBe(0);
    // On a busy machine, an occasional plain progress line.
    expect(first.stderr).not.toMatch(/^(?!rows: |\{"level":40).+/m);
    expect(took).toBeLessThan(60_000);
  });

  it('prints where the data is, a summary, the use of the budget, and a first query', () => {
    expect(first.stdout).toContain('the tables are in an embedded Postgres in .tributary/\n');
    expect(first.stdout).toMatch(/^demo\/clicks +[\d,]+ +12,000 +0 +[\d,]+ +\d+( +\d+)? +\d{4}-\d\d-\d\d \d\d:\d\d$/m);
    expect(first.stdout).toMatch(/^demo\/leads +[\d,]+ +1,500 +0 /m);
    expect(first.stdout).toMatch(/^demo\/sales +[\d,]+ +500 +0 /m);
    expect(first.stdout).toMatch(/^budget {3}demo: \d+ requests, \d+% of 4\/s while there was work(, .*)?$/m);
    expect(first.stdout).toMatch(/^data in {2}Postgres schema demo \(clicks, leads, sales, links, customers\)$/m);
    expect(first.stdout).toMatch(/^link +clicks +leads +sales$/m);
    expect(first.stdout.match(/^\S+\.\S+\/\S+ +[\d,]+ +[\d,]+ +[\d,]+$/gm)).toHaveLength(5);
    expect(first.stdout).toMatch(/next: tributary status; tributary demo --remove .*\n$/);
    expect(longLines(first.stdout)).toEqual([]);
    expect(first.stdout).not.toContain('\n\n\n');
  });

  it('leaves no process, and no file outside its folder', async () => {
    expect(await serverState()).toBe('absent');
    expect(await place.files()).toEqual({ dir: ['.tributary'], home: [], tmp: [] });
  });

  it('leaves data that status shows, as text and as JSON', async () => {
    const text = await place.run(['status']);
    expect(text).toMatchObject({ code: 0, stderr: '' });
    for (const stream of ['clicks', 'leads', 'sales']) {
      expect(text.stdout).toMatch(new RegExp(`^demo/${stream} +\\d{4}-\\d\\d-\\d\\d .* 1\\d min +done`, 'm'));
    }
    expect(text.stdout).toContain('state: embedded Postgres in .tributary/ · times in UTC');
    expect(longLines(text.stdout)).toEqual([]);

    const json = await place.run(['status', '--json', '--source', 'demo']);
    const { streams } = JSON.parse(json.stdout) as { streams: Array<Record<string, unknown>> };
    expect(streams.map(({ source, stream, sink }) => [source, stream, sink])).toEqual(
      ['clicks', 'leads', 'sales'].map((stream) => ['demo', stream, 'warehouse']),
    );
    expect(streams[0]).toMatchObject({ uncertifiedWindows: 0, quarantined: 0, lastRun: { state: 'done' } });
    expect(await serverState()).toBe('absent');
  });

  it('adds and changes no row when run again', async () => {
    const before = await digests();
    const again = await place.run(['demo', '--json']);
    expect(again.code, again.text).toBe(0);
    const { streams } = JSON.parse(again.stdout) as { streams: Array<Record<string, unknown>> };
    expect(streams).toHaveLength(3);
    for (const stream of streams) expect(stream).toMatchObject({ state: 'done', new: 0, changed: 0, error: null });
    expect(await digests()).toEqual(before);
    expect(before).toMatchObject([{ rows: 12_000 }, { rows: 1500 }, { rows: 500 }]);
  });

  it('rejects a mistyped source', async () => {
    const { code, stdout, stderr } = await place.run(['status', '--source', 'dmeo']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('there is no source "dmeo"');
    expect(stderr).toContain('use one of: demo');
  });

  it('is removed completely by one command', async () => {
    expect(await place.run(['demo', '--remove'])).toMatchObject({ code: 0, stderr: '' });
    expect((await place.run(['status'])).stdout).toMatch(/^nothing has been synced yet/);
    const server = await openEmbedded({ dir: join(place.dir, '.tributary'), log: silentLog, attach: true });
    const db = connect({ url: server.url, max: 1 });
    const schemas = await db.query({
      text: `select nspname from pg_namespace where nspname in ('demo', 'attribution')`,
    });
    await db.close();
    await server.close();
    expect(schemas).toEqual([]);
  });
});

it('status in a folder without state says so, and creates nothing', async () => {
  const place = await freshPlace();
  const { code, stdout } = await place.run(['status']);
  expect([code, stdout]).toEqual([
    0,
    'nothing has been synced yet (state: embedded Postgres in .tributary/)\nnext: tributary init writes a config; tributary demo works without one\n',
  ]);
  expect(JSON.parse((await place.run(['status', '--json'])).stdout)).toMatchObject({ streams: [], sources: [] });
  expect(await place.files()).toEqual({ dir: [], home: [], tmp: [] });
});
