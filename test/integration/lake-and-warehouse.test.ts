import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/index.ts';
import { readEvolved } from '../../src/cursor/columns.ts';
import { storableJson } from '../../src/cursor/database/sql.ts';
import { evolvedStream } from '../../src/model/evolution.ts';
import { STREAM_NAMES, STREAMS, type Stream } from '../../src/model/streams.ts';
import { freshPlace, type Place } from '../support/cli.ts';
import { type Engine, openEngine, syncAllDone } from '../support/engine.ts';
import { stable } from '../support/flat.ts';
import { filesIn, globOf, queryDuckdb, readLakeWithHyparquet, readWithDuckdb } from '../support/lake-readers.ts';
import { readTable } from '../support/postgres-place.ts';
import { sandboxWith } from '../support/sandbox.ts';
import type { StoredRow } from '../support/sink-harness.ts';

/** One config with both sinks: the same events in Postgres and in Parquet, value by value. */
let engine: Engine;
let place: Place;
let lake: string;
const source = 'both';
beforeAll(async () => {
  [engine, place] = await Promise.all([openEngine(), freshPlace()]);
  lake = join(place.dir, 'lake');
});
afterAll(() => engine.close());

/** Each sink writes at its own time, and only the lake can hold NUL; everything else is the same. */
function comparable(rows: readonly StoredRow[]): string[] {
  return rows.map(({ _first_synced_at: _1, _synced_at: _2, ...row }) => storableJson(stable(unflagged(row)))).sort();
}

function unflagged(row: StoredRow): StoredRow {
  const { _mended, ...rest } = (row._extra ?? {}) as { _mended?: string[] };
  return { ...row, _extra: Object.keys(rest).length === 0 ? null : rest };
}

const present = async (name: (typeof STREAM_NAMES)[number]): Promise<Stream> =>
  evolvedStream(STREAMS[name], await readEvolved(engine.db, name));

it('fills both from one reading, and two readers find the same values in both', async () => {
  const sandbox = await sandboxWith(['dirty', 'unknownFields'], {
    rows: { clicks: 400, leads: 120, sales: 80 },
    days: 4,
  });
  const { baseUrl, apiKey } = sandbox;
  const text = JSON.stringify({
    sources: { [source]: { baseUrl, apiKey, plan: 'enterprise', requestsPerSecond: 500, since: '30d' } },
    sinks: { warehouse: { type: 'postgres' }, lake: { type: 'parquet', path: lake } },
    state: { url: engine.url },
  });
  await place.config(text);
  await syncAllDone(parseConfig(text, 'test.yaml', {}).config);
  let compared = 0;
  for (const name of STREAM_NAMES) {
    const stream = await present(name);
    const warehouse = comparable(await readTable(engine.db, 'attribution', stream));
    expect(warehouse.length).toBeGreaterThan(70);
    expect(comparable(await readWithDuckdb(lake, stream))).toEqual(warehouse);
    expect(comparable(await readLakeWithHyparquet(lake, stream))).toEqual(warehouse);
    compared += warehouse.length;
  }
  const paths = (await filesIn(lake)).filter((file) => file.endsWith('.parquet'));
  expect(paths.every((path) => /^(?:clicks|leads|sales)\/date=\d{4}-\d\d-\d\d\/both\.parquet$/.test(path))).toBe(true);
  expect(compared).toBeGreaterThan(500);
});

it('describes its contents in its catalogue', async () => {
  const catalog = JSON.parse(await readFile(join(lake, '_catalog.json'), 'utf8'));
  expect(catalog).toMatchObject({ partition: 'day', layout: '<stream>/date=…-…-…/<source>.parquet' });
  for (const name of STREAM_NAMES) {
    const described = catalog.streams[name].columns as Array<{ name: string; doc: string }>;
    const found = await queryDuckdb(`describe select * from ${globOf(lake, name)}`);
    const columns = found
      .map((row) => String(row.column_name))
      .filter((column) => !/^(?:_exact_.*|date)$/.test(column));
    expect(described.map((column) => column.name).sort()).toEqual(columns.sort());
    expect(described.filter(({ doc }) => doc === '')).toEqual([]);
  }
  expect(await readFile(join(lake, 'README.md'), 'utf8')).toContain('clicks/date=2026-11-14/main.parquet');
});

it('adds the current columns to old files', async () => {
  await engine.db.query({
    text: `insert into tributary.columns (stream, path, name, kind, source, run_id) values ('sales', 'sale.tax', 'sale_tax', 'integer', $1, '')`,
    values: [source],
  });
  const before = await readWithDuckdb(lake, await present('sales'));
  const { code, stdout, stderr } = await place.run(['maintain', 'sales', '--config', 't.yaml', '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { files, rewritten, rows } = JSON.parse(stdout).lakes.lake.sales;
  expect(rewritten).toBe(files);
  expect(rows).toBe(before.length);
  // Without union_by_name: every file has it now.
  const [found] = await queryDuckdb(
    `select count(*) as n, count(sale_tax) as taxed from read_parquet('${lake}/sales/**/*.parquet')`,
  );
  expect(found).toEqual({ n: BigInt(before.length), taxed: 0n });
  expect(comparable(await readWithDuckdb(lake, await present('sales')))).toEqual(comparable(before));
  const again = await place.run(['maintain', '--config', 't.yaml']);
  expect(again.stdout).toMatch(/lake +sales +\d+ +0 +0/);
});

it('refuses what cannot work, with a remedy', async () => {
  const config = (sinks: object) => JSON.stringify({ state: { url: engine.url }, sinks });
  await place.config(config({ lake: { type: 'parquet', path: lake } }), 'lake.yaml');
  await place.config(config({ warehouse: { type: 'postgres' } }), 'none.yaml');
  const none = await place.run(['maintain', '--config', 'none.yaml']);
  expect(none).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^the config has no lake and no Iceberg sink\nnext: .*docs\/lake.md/),
  });
  const unknown = await place.run(['maintain', 'klicks', '--config', 'lake.yaml']);
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('unknown stream: klicks') });
  const help = await place.run(['maintain', '--help']);
  expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('Examples:') });
  const wrong = await place.run(['maintain', '--nope']);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('next: see tributary maintain --help') });
});
