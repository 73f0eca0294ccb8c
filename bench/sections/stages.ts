import { createClient } from '../../src/api/client.ts';
import { createFlatten } from '../../src/model/flatten.ts';
import { parseJson } from '../../src/model/json.ts';
import { createSanitizer, POSTGRES_TEXT } from '../../src/sinks/merge-rule.ts';
import { encodeGroup } from '../../src/sinks/parquet/format/index.ts';
import { encodeRows } from '../../src/sinks/postgres/copy-encoder.ts';
import { withService } from '../service/start.ts';
import { COLUMNS, pagesOf, rowsOf, storedRows, stream } from '../support/clicks.ts';
import { burnt, inTurns, median } from '../support/measure.ts';
import { percent, type Report, ratio, type Section } from '../support/report.ts';

/** Pages that are read in one turn: the processor's clock is too coarse for one. */
const PAGES = 10;
const PAGE_ROWS = 1000;

/** (d) What one page of 1,000 events costs this process, by stage, in time of the processor. */
export const stages: Section = {
  title: 'Where the time of a page goes',
  run: (size) =>
    withService(PAGES * PAGE_ROWS, async ({ baseUrl, since }) => {
      const client = createClient({ baseUrl, apiKey: 'sandbox-key' });
      const pages = pagesOf(PAGES * PAGE_ROWS);
      const records = pages.map((text) => JSON.parse(text) as unknown[]);
      const rows = rowsOf(pages);
      const flatten = createFlatten(stream);
      const stored = [...storedRows(rows)];
      const question = { start: since, end: Date.now(), sortOrder: 'asc', limit: PAGE_ROWS, filters: {} } as const;
      const each = async <T>(items: readonly T[], work: (item: T) => unknown): Promise<void> => {
        for (const item of items) await work(item);
      };
      const numbers = pages.map((_, i) => i + 1);
      const works = {
        whole: () => burnt(() => each(numbers, (page) => client.get({ ...question, stream: stream.name, page }))),
        exact: () => burnt(() => each(pages, parseJson)),
        parse: () => burnt(() => each(pages, (text) => JSON.parse(text))),
        flatten: () => burnt(() => each(records, (page) => page.map(flatten))),
        copy: () =>
          burnt(() => exhaust(encodeRows(stream, rows, ['main', 'run-1'], createSanitizer(stream, POSTGRES_TEXT)))),
        parquet: () => burnt(() => encodeGroup(COLUMNS, stored, 'zstd')),
      };
      await inTurns(2, works);
      return reportOf(await inTurns(size === 'quick' ? 3 : 9, works));
    }),
};

type Found = Record<'whole' | 'exact' | 'parse' | 'flatten' | 'copy' | 'parquet', number[]>;

function reportOf(found: Found): Report {
  const of = (name: keyof Found): number => median(found[name]);
  const parse = of('parse');
  const network = of('whole') - of('exact');
  const costs: Array<[string, number]> = [
    ['network: HTTP, gunzip, decode', network],
    ['JSON.parse', parse],
    ['looking for numbers that a double cannot hold', of('exact') - parse],
    [`flatten: ${stream.columns.length} columns, aliases, times, identity`, of('flatten')],
    ['encode for Postgres: what it can hold, binary COPY', of('copy')],
  ];
  const sum = costs.reduce((total, [, cost]) => total + cost, 0);
  return {
    tables: [
      {
        head: ['stage, into Postgres', 'share', 'JSON.parse = 1'],
        rows: costs.map(([name, cost]) => [name, percent(cost / sum), ratio(cost / parse)]),
      },
      {
        head: ['instead, into Parquet', 'JSON.parse = 1'],
        rows: [['encode and pack (zstd)', ratio(of('parquet') / parse)]],
      },
    ],
    bars: [
      {
        says: 'network, as a share of a page into Postgres',
        measured: network / sum,
        most: 0.15,
      },
      {
        says: 'flatten + encode, where JSON.parse = 1',
        measured: (of('flatten') + of('copy')) / parse,
        most: 1.3,
      },
    ],
  };
}

function exhaust(rows: Iterable<unknown>): void {
  for (const _ of rows);
}
