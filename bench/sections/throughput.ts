import { createClient } from '../../src/api/client.ts';
import { type Service, withService } from '../service/start.ts';
import { withSyncsApart } from '../support/apart.ts';
import { pagesOf, rowsOf, stream } from '../support/clicks.ts';
import type { Place } from '../support/engine.ts';
import { type Home, withHome } from '../support/home.ts';
import { inTurns, median, ratioOf, timed } from '../support/measure.ts';
import { count, type Report, ratio, type Section, type Size, type Table } from '../support/report.ts';
import { intoParquet } from './throughput/parquet.ts';
import { intoPostgres } from './throughput/postgres.ts';

/** (c) Rows a second without a limit, beside what the machine can do at all with the same rows. */
export const throughput: Section = {
  title: 'Rows a second without a limit',
  run(size) {
    const rows = size === 'quick' ? 5000 : 40_000;
    return withHome((home) =>
      withService(rows, (service) => withSyncsApart((sync) => measure({ home, service, sync }, rows, size))),
    );
  },
};

/** Several pages are asked for at a time: what is left is the work of this process, without its waiting. */
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

/** What the ways into a sink need. */
export interface Ground {
  home: Home;
  service: Service;
  /** In a process of its own; returns seconds. */
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
  // Once for warming up; the service packs its pages then, and has them ready from there on.
  await inTurns(1, works);
  const found = await inTurns(size === 'quick' ? 2 : 5, works);
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
        least: 0.6,
      },
    ],
  };
}
