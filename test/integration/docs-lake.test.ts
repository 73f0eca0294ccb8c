import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/index.ts';
import { type Engine, openEngine, syncAllDone } from '../support/engine.ts';
import { queryDuckdb } from '../support/lake-readers.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** Users copy from docs/lake.md: all its DuckDB is run unmodified. */
const QUERIES = [...readFileSync('docs/lake.md', 'utf8').matchAll(/^```sql\n(.*?)^```$/gms)].map(([, sql = '']) => sql);

let engine: Engine;
let folder: string;
beforeAll(async () => {
  [engine, folder] = await Promise.all([openEngine(), mkdtemp(join(tmpdir(), 'tributary-lake-'))]);
  const { baseUrl, apiKey } = await smallSandbox({ rows: { clicks: 60, leads: 20, sales: 20 }, days: 5 });
  const text = JSON.stringify({
    sources: { main: { baseUrl, apiKey, plan: 'enterprise', requestsPerSecond: 500 } },
    sinks: { lake: { type: 'parquet', path: join(folder, 'data/lake') } },
    state: { url: engine.url },
  });
  await syncAllDone(parseConfig(text, 'test.yaml', {}).config);
});
afterAll(async () => {
  await engine.close();
  await rm(folder, { recursive: true, force: true });
});

describe('the queries for DuckDB', () => {
  it('are all found', () => {
    expect(QUERIES.length).toBeGreaterThanOrEqual(4);
  });

  it.each(QUERIES.map((sql) => [sql.split('\n')[0], sql]))('%s', async (_name, sql = '') => {
    expect((await queryDuckdb(sql.replaceAll('data/lake', `${folder}/data/lake`))).length).toBeGreaterThan(0);
  });
});
