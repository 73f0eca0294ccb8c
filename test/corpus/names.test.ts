import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/index.ts';
import { readEvolved } from '../../src/cursor/columns.ts';
import { evolvedStream } from '../../src/model/evolution.ts';
import { stringifyJson } from '../../src/model/json.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { freshPlace } from '../support/cli.ts';
import { type Engine, openEngine, statesOf, sync } from '../support/engine.ts';
import { HOSTILE_NAMES, PLACES } from '../support/hostile-names.ts';
import { queryDuckdb, readRelation, readWithDuckdb } from '../support/lake-readers.ts';
import { readTable } from '../support/postgres-place.ts';
import type { StoredRow } from '../support/sink-harness.ts';
import { type CorpusService, serveCorpus } from './corpus.ts';

/** Every hostile name over real HTTP, through the whole engine, into Postgres, Parquet and Iceberg. */

let engine: Engine;
let service: CorpusService;
let folder: string;
beforeAll(async () => {
  [engine, service] = await Promise.all([openEngine(), serveCorpus()]);
  folder = await mkdtemp(join(tmpdir(), 'tributary-names-'));
});
afterAll(async () => {
  await service.close();
  await engine.close();
  await rm(folder, { recursive: true, force: true });
});

const configOf = (trap: string) => {
  const source = {
    baseUrl: service.baseUrlOf('names', trap),
    apiKey: 'key',
    plan: 'enterprise',
    requestsPerSecond: 1000,
  };
  const text = JSON.stringify({
    sources: { [trap]: { ...source, since: '2026-11-01', streams: { leads: {} } } },
    sinks: {
      warehouse: { type: 'postgres' },
      lake: { type: 'parquet', path: join(folder, 'lake') },
      tables: { type: 'iceberg', warehouse: join(folder, 'iceberg') },
    },
    state: { url: engine.url },
  });
  return parseConfig(text, 'names.yaml', {}).config;
};

const columns = () => engine.db.query<{ path: string }>({ text: 'select path from tributary.columns order by id' });
const leads = async () => evolvedStream(STREAMS.leads, await readEvolved(engine.db, 'leads'));

/** Values missing from all columns of a row, its notes and its JSON. */
const missingIn = (row: StoredRow | undefined, names: readonly string[]): string[] => {
  const text = row ? stringifyJson(row) : '';
  return valuesOf(names).filter((value) => !text.includes(value));
};
const valuesOf = (names: readonly string[]): string[] =>
  PLACES.flatMap((place) => names.map((_, i) => `"${place} ${i}"`));

describe.each(Object.entries(HOSTILE_NAMES))('fields named by %s', (trap, names) => {
  it('cause no error and no loss, and add no columns when repeated', async () => {
    // One record of the three has no time: its quarantine leaves the beginning unproven.
    expect(['done', 'incomplete']).toContain(statesOf(await sync(configOf(trap)))[0]);
    const before = await columns();
    const [again] = await sync(configOf(trap));
    expect(statesOf(again ? [again] : [])).not.toContain('nothing');
    expect(again?.report?.tally).toMatchObject({ new: 0, changed: 0, schemaChanges: [] });
    expect(await columns()).toEqual(before);

    const stream = await leads();
    const data = `read_parquet('${folder}/iceberg/**/*.parquet', union_by_name = true)`;
    const sinks = {
      warehouse: await readTable(engine.db, 'attribution', stream),
      lake: await readWithDuckdb(join(folder, 'lake'), stream),
      tables: await readRelation(data, stream),
    };
    for (const [sink, rows] of Object.entries(sinks)) {
      const own = rows.filter(({ _source, event_id }) => _source === trap && event_id === 'ev_1');
      expect({ sink, rows: own.length, missing: missingIn(own[0], names) }).toEqual({ sink, rows: 1, missing: [] });
    }
    const aside = await engine.db.query<{ record: string }>({
      text: 'select record from tributary.quarantine where source = $1',
      values: [trap],
    });
    expect(aside.map(({ record }) => names.filter((_, i) => !record.includes(`"top ${i}"`)))).toEqual([[]]);
  });
});

it('an export keeps all of them, in each format', async () => {
  const place = await freshPlace();
  const source = `{ baseUrl: "${service.baseUrlOf('names', 'all')}", apiKey: key, plan: enterprise, requestsPerSecond: 1000 }`;
  await place.config(`sources: { main: ${source} }\nstate: { url: "${engine.url}" }`);
  const names = Object.values(HOSTILE_NAMES).flat();
  const readers = { parquet: 'read_parquet', ndjson: 'read_ndjson_objects', csv: 'read_csv' };
  for (const [format, reader] of Object.entries(readers)) {
    const range = ['--from', '2026-11-01', '--to', '2026-11-15'];
    const done = await place.call(['export', 'leads', '--config', 't.yaml', ...range, '--out', `l.${format}`]);
    // The record without a time is not exported.
    expect([0, 4]).toContain(done.code);
    const rows = await queryDuckdb(`select to_json(t)::text as t from ${reader}('${place.dir}/l.${format}') t`);
    expect(rows).toHaveLength(2);
    const text = rows
      .map(({ t }) => String(t))
      .join()
      .replaceAll('\\"', '"');
    expect({ format, missing: valuesOf(names).filter((value) => !text.includes(value)) }).toEqual({
      format,
      missing: [],
    });
  }
});
