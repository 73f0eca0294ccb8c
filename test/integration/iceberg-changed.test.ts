import { cp, readFile, rm, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { groupBy } from '../../src/sinks/files/group-by.ts';
import { withoutSnapshots } from '../../src/sinks/iceberg/format/metadata.ts';
import { type Finished, freshPlace } from '../support/cli.ts';
import { everyAvro, lookAtTable } from '../support/iceberg-place.ts';
import { filesIn, queryDuckdb } from '../support/lake-readers.ts';
import { copyDatabase, freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { createForeignWriter } from './iceberg-foreign.ts';

/**
 * Another program changes an Iceberg table, or a table or its catalog is lost or restored. The next sync says so, and ends with 0 only once
 * the table has every event, each once.
 */

const ROWS = 900;
const ALL = ['--from', '40d', '--to', 'now'];

const opened: Array<() => Promise<unknown>> = [];
afterAll(async () => {
  for (const close of opened.reverse()) await close();
});

/** A service, state, catalog and folder of one test, synced. */
async function synced(stream: 'clicks' | 'leads' = 'clicks') {
  const sandbox = await smallSandbox({ rows: { clicks: ROWS, leads: 40, sales: 10 }, days: 12 });
  let total = ROWS;
  const place = await freshPlace();
  const warehouse = join(place.dir, 'warehouse');
  let db: Database | undefined;
  const close = async (): Promise<void> => {
    await db?.close();
    db = undefined;
  };
  const use = async (database: TestDatabase): Promise<void> => {
    await close();
    db = connect({ url: database.url, max: 2 });
    await place.config(
      `sources: { shop: { baseUrl: "${sandbox.baseUrl}", apiKey: ${sandbox.apiKey}, plan: enterprise, requestsPerSecond: 200, since: 40d,
  streams: { ${stream}: { every: 1h } } } }
sinks: { tables: { type: iceberg, warehouse: ./warehouse } }
state: { url: "${database.url}" }\n`,
    );
  };
  const database = await freshDatabase();
  opened.push(() => database.drop(), close);
  const tributary = async (...args: string[]): Promise<Finished> => {
    const done = await place.call([...args, '--config', 't.yaml']);
    return { ...done, text: done.text.replace(/\s+/g, ' ') };
  };
  await use(database);
  // The second sync sees the table for the first time, and records its version.
  for (let i = 0; i < 2; i++) expect(await tributary('sync')).toMatchObject({ code: 0 });
  const state = { query: (sql) => (db as Database).query(sql) } as Database;
  const foreign = createForeignWriter({ state, namespace: 'attribution', table: stream });
  /** Rows and distinct events, as a reader of the table finds them. */
  const rows = async (): Promise<[number, number]> => {
    const files = await foreign.files();
    if (files.length === 0) return [0, 0];
    const list = files.map(({ path }) => `'${path}'`).join();
    const [found] = await queryDuckdb(
      `select count(*) as n, count(distinct event_id) as ids from read_parquet([${list}], union_by_name = true)`,
    );
    return [Number(found?.n), Number(found?.ids)];
  };
  /** Adds clicks and syncs them; returns the number before. */
  const more = async (): Promise<number> => {
    const before = total;
    const now = sandbox.service.now();
    total += sandbox.service.arrive('clicks', 50, { from: now - 25 * 60_000, to: now - 15 * 60_000 }).length;
    expect(await tributary('sync')).toMatchObject({ code: 0 });
    expect(await rows()).toEqual([total, total]);
    return before;
  };
  const all = (): [number, number] => [total, total];
  const requests = async (): Promise<number> => {
    const [run] = await state.query<{ requests: number }>({
      text: 'select requests from tributary.runs order by started_at desc limit 1',
    });
    return Number(run?.requests);
  };
  /** The oldest whole day: the very first may have one row, late in the evening. */
  const oldestFile = async () => (await foreign.files()).sort((a, b) => (a.day ?? 0) - (b.day ?? 0))[1];
  /** A few of its rows, as DuckDB selects them. */
  const oldest = async (change = '*', limit = 2): Promise<string> =>
    `select ${change} from read_parquet('${(await oldestFile())?.path}') order by timestamp limit ${limit}`;
  const service = { tributary, rows, more, all, requests };
  return { place, close, warehouse, state, database, use, ...service, foreign, oldest, oldestFile };
}

type Scene = Awaited<ReturnType<typeof synced>>;

/** Reported at every run, never counted, never removed, until it is repaired. */
async function expectForeign(scene: Scene, text: RegExp, held: number): Promise<void> {
  for (let i = 0; i < 2; i++) {
    const done = await scene.tributary('sync');
    expect(done.text).toMatch(text);
    expect([done.code, (await scene.rows())[0]]).toEqual([4, held]);
  }
  expect(await scene.tributary('verify', ...ALL)).toMatchObject({ code: 4 });
  const repaired = await scene.tributary('verify', ...ALL, '--repair');
  expect([repaired.code, await scene.rows()], repaired.text).toEqual([0, scene.all()]);
  expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
  expect(await scene.tributary('sync', '--recount')).toMatchObject({ code: 0 });
}

async function expectHealed(scene: Scene, text = /(is|are) read again: about [\d,]+ rows?/): Promise<void> {
  const done = await scene.tributary('sync');
  expect(done.text).toMatch(text);
  expect([done.code, await scene.rows()], done.text).toEqual([0, scene.all()]);
  const again = await scene.tributary('sync', '--recount');
  expect([again.code, await scene.rows()], again.text).toEqual([0, scene.all()]);
  expect(await scene.tributary('verify', ...ALL)).toMatchObject({ code: 0 });
}

it('recognizes files with the names of earlier versions as its own', async () => {
  const scene = await synced();
  await scene.foreign.commit({
    operation: 'append',
    renamed: (path) => path.replace('.tributary.parquet', '.parquet'),
  });
  const done = await scene.tributary('sync', '--recount');
  expect([done.code, done.text], done.text).toEqual([0, expect.not.stringMatching(/another writer|read again/)]);
  expect(await scene.tributary('verify', ...ALL)).toMatchObject({ code: 0 });
});

describe('another writer', () => {
  it('appends existing rows', async () => {
    const scene = await synced();
    await scene.foreign.commit({ operation: 'append', select: await scene.oldest() });
    expect(await scene.rows()).toEqual([ROWS + 2, ROWS]);
    await expectForeign(
      scene,
      /2 rows of another writer \(00000-0-\S+, written by Spark local-1 at .* \(append\)\)/,
      ROWS + 2,
    );
  });

  it('appends its own rows', async () => {
    const scene = await synced();
    const change = "* replace (event_id || '-again' as event_id, 'by-hand' as _run_id)";
    await scene.foreign.commit({ operation: 'append', select: await scene.oldest(change) });
    await expectForeign(scene, /2 rows of another writer/, ROWS + 2);
  });

  it('appends rows to a day whose file was deleted', async () => {
    const scene = await synced();
    const file = await scene.oldestFile();
    const change = "* replace (event_id || '-again' as event_id, 'by-hand' as _run_id)";
    await scene.foreign.commit({ operation: 'append', select: await scene.oldest(change) });
    await rm(file?.path.replace(/^file:/, '') ?? '');
    const done = await scene.tributary('sync', '--recount');
    expect(done.code, done.text).toBe(4);
    expect(done.text).toMatch(/2 rows of another writer/);
    const repaired = await scene.tributary('verify', ...ALL, '--repair');
    expect([repaired.code, await scene.rows()], repaired.text).toEqual([0, scene.all()]);
    expect(await scene.tributary('sync', '--recount')).toMatchObject({ code: 0 });
  });

  it('deletes rows by rewriting their file', async () => {
    const scene = await synced();
    const file = await scene.oldestFile();
    const select = `select * from read_parquet('${file?.path}') order by timestamp offset 2`;
    await scene.foreign.commit({ operation: 'overwrite', select, removed: [file?.path ?? ''] });
    expect(await scene.rows()).toEqual([ROWS - 2, ROWS - 2]);
    // Its missing rows return at once; the rows that another writer wrote stay reported.
    await expectForeign(scene, /rows that another writer wrote anew/, ROWS);
  });

  it('deletes rows by a delete file', async () => {
    const scene = await synced();
    await scene.foreign.commit({ operation: 'delete', deleteFiles: true });
    await expectForeign(scene, /1 delete file of another writer/, ROWS);
  });

  it('removes a file: its day is read again', async () => {
    const scene = await synced();
    const [file] = await scene.foreign.files();
    await scene.foreign.commit({ operation: 'delete', removed: [file?.path ?? ''] });
    await expectHealed(scene);
  });

  it('rolls back to an earlier snapshot: the missing rows are read again', async () => {
    const scene = await synced();
    const early = (await scene.foreign.metadata())['current-snapshot-id'];
    const before = await scene.more();
    await scene.foreign.edit((metadata) => ({
      ...metadata,
      'current-snapshot-id': early as number,
      refs: { main: { 'snapshot-id': early as number, type: 'branch' } },
    }));
    expect(await scene.rows()).toEqual([before, before]);
    await expectHealed(scene);
  });

  it('joins files: everything stays complete, and later changes are not duplicated', async () => {
    const scene = await synced();
    const files = await scene.foreign.files();
    const select = `select * from read_parquet([${files.map(({ path }) => `'${path}'`)}], union_by_name = true) order by random()`;
    await scene.foreign.commit({ operation: 'replace', select, removed: files.map(({ path }) => path) });
    const done = await scene.tributary('sync');
    expect([done.code, await scene.rows()], done.text).toEqual([0, scene.all()]);
    expect(await scene.requests()).toBeLessThan(4);
    expect(await scene.tributary('sync', '--recount')).toMatchObject({ code: 0 });
    expect(await scene.tributary('verify', ...ALL)).toMatchObject({ code: 0 });
    // All rows are read again: none is new.
    expect(await scene.tributary('backfill', ...ALL, '--force')).toMatchObject({ code: 0 });
    expect(await scene.rows()).toEqual(scene.all());
  });

  it('expires snapshots: everything stays complete', async () => {
    const scene = await synced();
    await scene.foreign.edit((metadata) => withoutSnapshots(metadata, () => true));
    expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
    expect(await scene.requests()).toBeLessThan(4);
  });
});

describe('a table', () => {
  it('that was dropped from the catalog is created and filled again', async () => {
    const scene = await synced();
    await scene.state.query({ text: 'delete from public.iceberg_tables' });
    await expectHealed(scene);
  });

  it('that was dropped is not called complete by a backfill, which fills it', async () => {
    const scene = await synced();
    await scene.state.query({ text: "delete from public.iceberg_tables where table_name = 'clicks'" });
    const done = await scene.tributary('backfill', ...ALL);
    expect([done.code, await scene.rows()], done.text).toEqual([0, scene.all()]);
  });

  it('that lost a data file gets its rows back', async () => {
    const scene = await synced();
    const [file] = await scene.foreign.files();
    await rm(file?.path ?? '');
    expect((await scene.tributary('verify', ...ALL)).code).toBe(4);
    const status = await scene.tributary('status');
    expect(status.text).toMatch(/\(the\s+next\s+sync\s+reads\s+it\)/);
    expect(status.text).not.toMatch(/tried 0|1970/);
    const done = await scene.tributary('sync', '--recount');
    expect([done.code, await scene.rows()], done.text).toEqual([0, scene.all()]);
    expect(await scene.tributary('sync')).toMatchObject({ code: 0 });
  });

  it('that lost one of several files of a day: maintain names the command that restores it', async () => {
    const scene = await synced();
    await scene.more();
    expect((await scene.tributary('sync')).code).toBe(0);
    const byDay = groupBy(await scene.foreign.files(), ({ path }) => dirname(path));
    const [file] = [...byDay.values()].find((files) => files.length > 1) ?? [];
    await rm(file?.path ?? 'no day has two files');
    const maintained = await scene.tributary('maintain');
    expect([maintained.code, maintained.text]).toEqual([4, expect.stringContaining('tributary sync --recount')]);
    const done = await scene.tributary('sync', '--recount');
    expect([done.code, await scene.rows()], done.text).toEqual([0, scene.all()]);
  });
});

describe('restored', () => {
  it('an older state with its catalog: the table continues with its newest version', async () => {
    const scene = await synced();
    await scene.close();
    const before = await copyDatabase(scene.database);
    opened.push(() => before.drop());
    await scene.use(scene.database);
    await scene.more();
    const { location } = await lookAtTable(scene.state, 'attribution', 'clicks');
    for (const file of await filesIn(scene.warehouse))
      if (file.endsWith('.metadata.json') && file.includes('/clicks/') && !location.endsWith(file))
        await rm(join(scene.warehouse, file));
    await scene.use(before);
    const doctor = await scene.tributary('doctor');
    expect(doctor.text).toMatch(/which is not there.*run tributary sync/);
    expect(doctor.code).not.toBe(0);
    for (let i = 0; i < 2; i++) {
      const done = await scene.tributary('sync');
      expect([done.code, await scene.rows()], done.text).toEqual([0, scene.all()]);
    }
    expect(await scene.tributary('sync', '--recount')).toMatchObject({ code: 0 });
    expect(await scene.tributary('verify', ...ALL)).toMatchObject({ code: 0 });
    expect((await scene.tributary('doctor')).text).not.toContain('not there');
  });

  it('an older state whose version still exists: the table continues with its newest one, and doctor says so', async () => {
    const scene = await synced();
    await scene.close();
    const before = await copyDatabase(scene.database);
    opened.push(() => before.drop());
    await scene.use(scene.database);
    await scene.more();
    const newest = await lookAtTable(scene.state, 'attribution', 'clicks');
    // A day ago: a recent version may be a commit in progress.
    const hourAgo = Date.now() / 1000 - 3600;
    for (const file of await filesIn(scene.warehouse)) await utimes(join(scene.warehouse, file), hourAgo, hourAgo);
    await scene.use(before);
    expect((await lookAtTable(scene.state, 'attribution', 'clicks')).location).not.toBe(newest.location);
    const doctor = await scene.tributary('doctor');
    expect(doctor.text).toMatch(/names an earlier version of attribution.clicks than the newest.*run tributary sync/);
    expect(doctor.code).not.toBe(0);
    for (let i = 0; i < 2; i++) {
      const done = await scene.tributary('sync');
      expect([done.code, await scene.rows()], done.text).toEqual([0, scene.all()]);
    }
    const after = await lookAtTable(scene.state, 'attribution', 'clicks');
    const ids = ({ metadata }: typeof newest) => metadata.snapshots.map((one) => one['snapshot-id']);
    expect(ids(after)).toEqual(expect.arrayContaining(ids(newest)));
    expect(await scene.tributary('sync', '--recount')).toMatchObject({ code: 0 });
    expect(await scene.tributary('verify', ...ALL)).toMatchObject({ code: 0 });
    expect((await scene.tributary('doctor')).text).not.toContain('earlier version');
  });

  it('an older folder: the missing rows are read again', async () => {
    const scene = await synced();
    const copy = join(scene.place.dir, 'copy');
    await cp(scene.warehouse, copy, { recursive: true });
    await scene.more();
    await rm(scene.warehouse, { recursive: true });
    await cp(copy, scene.warehouse, { recursive: true });
    await expectHealed(scene);
  });
});

describe('forget', () => {
  it('refuses while a file, branch or tag of another writer may contain the person, then erases every trace', async () => {
    const scene = await synced('leads');
    const [file] = await scene.foreign.files();
    const [row] = await queryDuckdb(
      `select customer_id as id from read_parquet('${file?.path}') where customer_id is not null limit 1`,
    );
    const id = String(row?.id);
    const forget = () => scene.tributary('forget', '--source', 'shop', '--customer', id, '--yes');
    const select = `select * from read_parquet('${file?.path}') where customer_id = '${id}'`;
    await scene.foreign.commit({ operation: 'append', select });
    const refused = await forget();
    expect(refused.text).toMatch(/nothing is forgotten yet .*leads\/00000-0-\S+, written by Spark local-1/);
    expect(refused.code).not.toBe(0);
    expect(await scene.tributary('verify', ...ALL, '--repair')).toMatchObject({ code: 0 });
    const { 'current-snapshot-id': current = 0 } = await scene.foreign.metadata();
    const tag = {
      kept: { 'snapshot-id': current, type: 'tag' },
      audit: { 'snapshot-id': current, type: 'branch' },
    };
    await scene.foreign.edit((metadata) => ({ ...metadata, refs: { ...metadata.refs, ...tag } }));
    const again = await forget();
    expect(again.text).toMatch(/the tag kept of attribution.leads; the branch audit of attribution.leads/);
    expect(again.code).not.toBe(0);
    // Nor is a source removed from the state while its rows cannot be erased.
    const everything = await scene.tributary('forget', '--source', 'shop', '--everything', '--yes');
    expect(everything.text).toMatch(/the tag kept of attribution.leads/);
    expect(await scene.state.query({ text: "select from tributary.cursors where source = 'shop'" })).not.toEqual([]);
    await scene.foreign.edit(({ refs: { kept: _, audit: __, ...refs }, ...metadata }) => ({ ...metadata, refs }));
    expect(await forget()).toMatchObject({ code: 0 });
    // No file of the tables contains the person: data, bounds in manifests, metadata.
    for (const path of await filesIn(scene.warehouse)) {
      const file = join(scene.warehouse, path);
      const found = path.endsWith('.parquet')
        ? await queryDuckdb(`select * from read_parquet('${file}') t where t::varchar like '%${id}%'`)
        : path.endsWith('.avro')
          ? (await everyAvro(file)).split(id).slice(1)
          : (await readFile(file, 'utf8')).split(id).slice(1);
      expect(found, path).toEqual([]);
    }
  });

  it('erases in files that another program joined', async () => {
    const scene = await synced('leads');
    const files = await scene.foreign.files();
    const paths = files.map(({ path }) => path);
    const select = `select * from read_parquet([${paths.map((path) => `'${path}'`)}], union_by_name = true)`;
    const [row] = await queryDuckdb(`select customer_id as id from (${select}) where customer_id is not null limit 1`);
    await scene.foreign.commit({ operation: 'replace', select, removed: paths });
    expect(await scene.tributary('forget', '--source', 'shop', '--customer', String(row?.id), '--yes')).toMatchObject({
      code: 0,
    });
    const left = (await scene.foreign.files()).map(({ path }) => `'${path}'`);
    const all = `from read_parquet([${left}], union_by_name = true)`;
    expect(await queryDuckdb(`select * ${all} where customer_id = '${row?.id}'`)).toEqual([]);
    expect(await queryDuckdb(`select count(*)::int as n ${all}`)).toEqual([{ n: 40 }]);
  });
});
