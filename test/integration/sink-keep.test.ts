import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lookAtTable, relationOf } from '../support/iceberg-place.ts';
import { queryDuckdb } from '../support/lake-readers.ts';
import { ROWS, type Scene, sinkScenes, synced, tablesOf } from '../support/sink-scene.ts';

/** `keep` deletes old events on purpose: the coverage starts later, nothing is reopened, and nothing is read only to be deleted. */

const scenes = sinkScenes();
const DAY_MS = 86_400_000;
const KEPT_DAYS = 10;
const cut = (): number => Math.floor((Date.now() - KEPT_DAYS * DAY_MS) / DAY_MS) * DAY_MS;
const iso = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** The times of all clicks, in order. */
type Times = (scene: Scene) => Promise<number[]>;

const inTables =
  (isElsewhere: boolean): Times =>
  async ({ source }) => {
    const { query } = tablesOf(isElsewhere ? scenes.other : scenes.state, source);
    return (await query<{ at: Date }>('select timestamp as at from @.clicks order by 1')).map(({ at }) => Number(at));
  };

const inLake: Times = async ({ place }) => {
  const found = await queryDuckdb(
    `select epoch_ms(timestamp) as at from '${join(place.dir, 'lake')}/clicks/**/*.parquet' order by 1`,
  );
  return found.map(({ at }) => Number(at));
};

const inIceberg: Times = async ({ source }) => {
  const table = relationOf(await lookAtTable(scenes.state, source, 'clicks'));
  return (await queryDuckdb(`select epoch_ms(timestamp) as at from ${table} order by 1`)).map(({ at }) => Number(at));
};

const KINDS: ReadonlyArray<readonly [name: string, sink: (url: string) => string, times: Times]> = [
  ['tables', () => 'type: postgres, schema: SOURCE', inTables(false)],
  ['tables elsewhere', (url) => `type: postgres, schema: SOURCE, url: "${url}"`, inTables(true)],
  ['tables in months', () => 'type: postgres, schema: SOURCE, partition: month', inTables(false)],
  ['Parquet files', () => 'type: parquet, path: ./lake', inLake],
  ['Iceberg tables', () => 'type: iceberg, warehouse: ./ice, namespace: SOURCE', inIceberg],
];

const keeping = async ({ place }: Scene, keep: string): Promise<void> => {
  const file = join(place.dir, 't.yaml');
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace(/sinks: \{ sink: \{ /, `sinks: { sink: { keep: ${keep}, `));
};

const since = async ({ source }: Scene): Promise<number> => {
  const [cursor] = await scenes.state.query<{ since: Date }>({
    text: 'select since from tributary.cursors where source = $1',
    values: [source],
  });
  return Number(cursor?.since);
};

describe.each(KINDS)('keep, %s', (_name, sink, times) => {
  it('deletes older events, moves since with it, and reopens and reads nothing', async () => {
    const scene = await synced(scenes, `sink: { ${sink(scenes.databases[1]?.url ?? '')} }`);
    const before = await times(scene);
    expect(before).toHaveLength(ROWS);
    const through = await scene.through();
    await keeping(scene, `${KEPT_DAYS}d`);
    const { code, text } = await scene.tributary('sync');
    expect([code, text]).toEqual([0, expect.not.stringContaining('read again')]);
    expect(await times(scene)).toEqual(before.filter((at) => at >= cut()));
    expect(await since(scene)).toBe(cut());
    expect(await scene.through()).toBeGreaterThanOrEqual(through);
    expect(await scene.requests()).toBeLessThan(4);
    for (const args of [['sync'], ['sync', '--recount'], ['verify', '--from', iso(cut()), '--to', 'now']])
      expect(await scene.tributary(...args)).toMatchObject({ code: 0 });
    for (const command of ['verify', 'backfill']) {
      const refused = await scene.tributary(command, '--from', iso(cut() - 5 * DAY_MS), '--to', 'now');
      expect(refused).toMatchObject({ code: 2, text: expect.stringContaining(`nothing before ${iso(cut())}`) });
    }
    expect(await times(scene)).toEqual(before.filter((at) => at >= cut()));
  });
});

it('a longer keep lets a backfill restore events; a shorter one deletes them again', async () => {
  const scene = await synced(scenes, 'sink: { type: postgres, schema: SOURCE, keep: 10d }', { syncs: 1 });
  const file = join(scene.place.dir, 't.yaml');
  const keep = async (from: string, to: string): Promise<void> =>
    writeFile(file, (await readFile(file, 'utf8')).replace(`keep: ${from}`, `keep: ${to}`));
  await keep('10d', '25d');
  expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
  expect(await scene.tributary('backfill', '--from', iso(cut() - 10 * DAY_MS), '--to', iso(cut()))).toMatchObject({
    code: 0,
  });
  const all = await inTables(false)(scene);
  expect(all[0]).toBeLessThan(cut() - 5 * DAY_MS);
  await keep('25d', '12d');
  for (let i = 0; i < 2; i++) expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
  expect(await inTables(false)(scene)).toEqual(all.filter((at) => at >= cut() - 2 * DAY_MS));
});

it('a price, a comparison of two sinks and a cursor from before keep are refused, and change nothing', async () => {
  const keep = `keep: ${KEPT_DAYS}d`;
  const scene = await synced(
    scenes,
    `old: { type: parquet, path: ./lake }, young: { type: postgres, schema: SOURCE, ${keep} }`,
  );
  const range = ['--from', iso(cut() - 5 * DAY_MS), '--to', iso(cut() + 5 * DAY_MS)];
  const through = await scene.through();
  for (const args of [
    ['backfill', ...range, '--dry-run'],
    ['verify', ...range, '--between', 'old', 'young'],
    ['cursor', 'set', 'clicks', '--to', iso(cut() - 5 * DAY_MS), '--source', scene.source],
  ]) {
    const { code, text } = await scene.tributary(...args);
    expect([code, text]).toEqual([2, expect.stringMatching(/nothing before|before the start of this stream/)]);
  }
  expect(await scene.through()).toBe(through);
});

it('a first sync reads only what is kept, separately for each sink', async () => {
  const keep = `keep: ${KEPT_DAYS}d`;
  const scene = await synced(
    scenes,
    `young: { type: postgres, schema: SOURCE, ${keep} }, old: { type: parquet, path: ./lake }`,
    { syncs: 1 },
  );
  const all = await inLake(scene);
  expect(all).toHaveLength(ROWS);
  expect(await inTables(false)(scene)).toEqual(all.filter((at) => at >= cut()));
  expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
  expect(await scene.requests()).toBeLessThan(4);
});

it('is refused if shorter than the time that is re-read', async () => {
  const scene = await synced(scenes, 'sink: { type: postgres, schema: SOURCE }', { syncs: 0 });
  await keeping(scene, '2d');
  expect(await scene.tributary('sync')).toMatchObject({ code: 2, text: expect.stringContaining('at least 4d') });
  const file = join(scene.place.dir, 't.yaml');
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('keep: 2d', 'keep: 20d').replace('every: 1h', 'every: 1h, resweep: 20d'));
  const { code, text: said } = await scene.tributary('sync');
  expect([code, said]).toEqual([2, expect.stringMatching(/keep.* must be a day longer than .*clicks\.resweep/)]);
});
