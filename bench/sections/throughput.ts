import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '../../src/api/client.ts';
import type { Row } from '../../src/model/flatten.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { createParquetSink } from '../../src/sinks/parquet/parquet-sink.ts';
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import type { Partition } from '../../src/sinks/postgres/table.ts';
import type { Sink } from '../../src/sinks/sink.ts';
import { WRITERS } from '../parquet/writers.ts';
import { type Service, withService } from '../service/start.ts';
import { withSyncsApart } from '../support/apart.ts';
import { COLUMNS, pagesOf, preparedCopy, rawCopy, rowsOf, storedRows, stream } from '../support/clicks.ts';
import type { Place } from '../support/engine.ts';
import { ALWAYS, type Home, withHome } from '../support/home.ts';
import { loadAll } from '../support/loader.ts';
import { inTurns, median, ratioOf, timed } from '../support/measure.ts';
import { count, type Report, ratio, type Section, type Size, type Table } from '../support/report.ts';

/** (c) Rows a second without a limit, relative to the machine's maximum with the same rows. */
export const throughput: Section = {
  title: 'Rows a second without a limit',
  run(size) {
    const rows = size === 'quick' ? 5000 : 40_000;
    return withHome((home) =>
      withService(rows, (service) => withSyncsApart((sync) => measure({ home, service, sync }, rows, size))),
    );
  },
};

/** Concurrent pages, so that the work of this process counts, not its waits. */
const AT_A_TIME = 4;

async function readAll({ baseUrl, since }: Service, pages: number): Promise<void> {
  const client = createClient({ baseUrl, apiKey: 'sandbox-key' });
  const all = {
    stream: stream.name,
    start: since,
    end: Date.now(),
    sortOrder: 'asc',
    limit: 1000,
    filters: {},
  } as const;
  let page = 0;
  const readOn = async (): Promise<void> => {
    while (page < pages) await client.get({ ...all, page: ++page });
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, readOn));
}

/** The inputs of the ways into a sink. */
interface Ground {
  home: Home;
  service: Service;
  /** Syncs in a separate process; returns seconds. */
  sync(place: Place): Promise<number>;
}

async function measure(ground: Ground, number: number, size: Size): Promise<Report> {
  const pages = pagesOf(number);
  const rows = rowsOf(pages);
  const works = {
    'JSON.parse alone': () => timed(() => pages.map((text) => JSON.parse(text))),
    'reading alone: HTTP, gunzip, parse': () => timed(() => readAll(ground.service, pages.length)),
    ...intoPostgres(ground, rows),
    ...intoParquet(ground, rows),
  };
  // A warm-up; the service compresses its pages then and caches them.
  await inTurns(1, works);
  const found = await inTurns(size === 'quick' ? 2 : 3, works);
  type Name = keyof typeof works;

  const table = (title: string, base: Name, names: readonly Name[]): Table => ({
    head: [title, 'rows/s here', `${base} = 1`],
    rows: names.map((name) => [name, count(number / median(found[name])), ratio(ratioOf(found[base], found[name]))]),
  });
  const against = (base: Name, name: Name): number => ratioOf(found[base], found[name]);
  return {
    tables: [
      table('into Postgres', 'raw COPY', [
        'raw COPY',
        'JSON.parse alone',
        'reading alone: HTTP, gunzip, parse',
        'the sink, new rows',
        'the sink, the same rows again',
        'the sink, new rows, batches of 1,000',
        'the sink, new rows, batches of 20,000',
        'the sink in months, new rows',
        'the sink in months, the same rows again',
        'the whole way into Postgres',
      ]),
      table('into Parquet', 'DuckDB, data chunks', [
        'DuckDB, data chunks',
        'DuckDB, appender',
        'our encoder',
        'the lake, new rows',
        'the whole way into Parquet',
      ]),
    ],
    bars: [
      {
        says: 'the Postgres sink, where raw COPY = 1',
        measured: against('raw COPY', 'the sink, new rows'),
        least: 0.6,
      },
      {
        says: 'the whole way from HTTP into Postgres, where raw COPY = 1',
        measured: against('raw COPY', 'the whole way into Postgres'),
        least: 0.35,
      },
    ],
  };
}

/**
 * Ways into Postgres. The fastest possible is one binary COPY of prepared bytes into an identical
 * table with the same indexes. Every work starts with empty tables, except those that repeat the same rows.
 */
function intoPostgres({ home: { db, url }, service, sync }: Ground, rows: readonly Row[]) {
  const prepared = preparedCopy(rows);
  let sink: Sink;
  let syncs = 0;

  const empty = async (partition: Partition = 'none'): Promise<void> => {
    await db.query({ text: 'drop schema if exists attribution cascade' });
    sink = createPostgresSink({ name: 'warehouse', db, schema: 'attribution', state: db, partition });
    await sink.prepare(stream);
  };
  const load = (batch?: number): Promise<number> => timed(() => loadAll(db, sink, rows, batch));
  const loadNew = async (partition: Partition, batch?: number): Promise<number> => {
    await empty(partition);
    return load(batch);
  };

  return {
    'raw COPY': async () => {
      await empty();
      await db.query({ text: 'create table attribution.raw (like attribution.clicks including all)' });
      return timed(() => db.transaction((tx) => tx.copyIn(rawCopy('attribution.raw'), prepared)));
    },
    'the sink, new rows': () => loadNew('none'),
    'the sink, the same rows again': () => load(),
    'the sink, new rows, batches of 1,000': () => loadNew('none', 1000),
    'the sink, new rows, batches of 20,000': () => loadNew('none', 20_000),
    'the sink in months, new rows': () => loadNew('month'),
    'the sink in months, the same rows again': () => load(),
    'the whole way into Postgres': async () => {
      await empty();
      // A new source each time, without a state.
      const source = `warehouse-${++syncs}`;
      return sync({ ...service, url, source, sinks: { warehouse: { type: 'postgres' } } });
    },
  };
}

/** Ways into Parquet files. DuckDB writes the same rows from a program into one file. */
function intoParquet({ home: { dir, db, url }, service, sync }: Ground, rows: readonly Row[]) {
  const table = { columns: [...COLUMNS], rows: [...storedRows(rows)] };
  let lakes = 0;

  /** An empty lake. */
  const fresh = async (): Promise<{ name: string; path: string }> => {
    await rm(join(dir, `lake-${lakes}`), { recursive: true, force: true });
    const name = `lake-${++lakes}`;
    return { name, path: join(dir, name) };
  };
  const write = (name: string) => () => timed(() => WRITERS[name]?.(table, join(dir, 'bench.parquet')));

  return {
    'DuckDB, data chunks': write('DuckDB data chunks → COPY, zstd'),
    'DuckDB, appender': write('DuckDB appender → COPY, zstd'),
    'our encoder': write('ours, zstd'),
    'the lake, new rows': async () => {
      const { name, path } = await fresh();
      const store = createFolderStore(path);
      const sink = createParquetSink({
        name,
        state: db,
        readAgainMs: ALWAYS,
        scheme: 'day',
        compression: 'zstd',
        store,
      });
      await sink.prepare(stream);
      return timed(() => loadAll(db, sink, rows));
    },
    'the whole way into Parquet': async () => {
      const { name: source, path } = await fresh();
      return sync({ ...service, url, source, sinks: { lake: { type: 'parquet', path } } });
    },
  };
}
