import { decode } from '../../src/api/answer.ts';
import { createClient } from '../../src/api/client.ts';
import { createRepeatedLinks } from '../../src/api/repeated-links.ts';
import { createFlatten, type Row } from '../../src/model/flatten.ts';
import { parseJson } from '../../src/model/json.ts';
import { createSanitizer, POSTGRES_TEXT } from '../../src/sinks/merge-rule.ts';
import { encodeGroup } from '../../src/sinks/parquet/format/index.ts';
import { encodeRows } from '../../src/sinks/postgres/copy-encoder.ts';
import { withService } from '../service/start.ts';
import { COLUMNS, pagesOf, rowsOf, storedRows, stream } from '../support/clicks.ts';
import { burnt, inTurns, median } from '../support/measure.ts';
import { percent, type Report, ratio, type Section } from '../support/report.ts';

/** Pages read in one measurement: the CPU clock is too coarse for one. */
const PAGES = 10;
const PAGE_ROWS = 1000;

/** (d) The CPU time of one page of 1,000 events in this process, by stage. */
export const stages: Section = {
  title: 'Where the time of a page goes',
  run: (size) =>
    withService(PAGES * PAGE_ROWS, async ({ baseUrl, since }) => {
      const client = createClient({ baseUrl, apiKey: 'sandbox-key' });
      const pages = pagesOf(PAGES * PAGE_ROWS);
      const bodies = pages.map((text) => Buffer.from(text));
      const parseRepeated = createRepeatedLinks();
      const read = (body: Buffer) => parseRepeated(body) ?? (parseJson(decode(body)) as unknown[]);
      const flatten = createFlatten(stream);
      const flattened = (records: readonly unknown[][]) => burnt(() => each(records, (page) => page.map(flatten)));
      const encoded = (rows: readonly Row[]) =>
        burnt(() => exhaust(encodeRows(stream, rows, ['main', 'run-1'], createSanitizer(stream, POSTGRES_TEXT))));
      /** From the client, and with a link of its own for every event. */
      const [records, others] = [bodies.map(read), pages.map((text) => JSON.parse(text) as unknown[])];
      const [rows, otherRows] = [records.flatMap((page) => page.map(flatten)), rowsOf(pages)];
      const stored = [...storedRows(rows)];
      const question = { start: since, end: Date.now(), sortOrder: 'asc', limit: PAGE_ROWS, filters: {} } as const;
      const each = async <T>(items: readonly T[], work: (item: T) => unknown): Promise<void> => {
        for (const item of items) await work(item);
      };
      const numbers = pages.map((_, i) => i + 1);
      const works = {
        whole: () => burnt(() => each(numbers, (page) => client.get({ ...question, stream: stream.name, page }))),
        read: () => burnt(() => each(bodies, read)),
        parse: () => burnt(() => each(pages, (text) => JSON.parse(text))),
        flatten: () => flattened(records),
        copy: () => encoded(rows),
        otherFlatten: () => flattened(others),
        otherCopy: () => encoded(otherRows),
        parquet: () => burnt(() => encodeGroup(COLUMNS, stored, 'zstd')),
      };
      await inTurns(2, works);
      return reportOf(await inTurns(size === 'quick' ? 3 : 9, works));
    }),
};

type Stage = 'whole' | 'read' | 'parse' | 'flatten' | 'copy' | 'otherFlatten' | 'otherCopy' | 'parquet';
type Found = Record<Stage, number[]>;

/** 0.6 of the cost of JSON.parse and the network when this bar was set: 2.33 of JSON.parse. */
const MOST_FLATTEN_AND_ENCODE = 1.4;

function reportOf(found: Found): Report {
  const of = (name: keyof Found): number => median(found[name]);
  const parse = of('parse');
  // For repeated links, reading includes decoding.
  const network = median(found.whole.map((whole, round) => whole - (found.read[round] ?? Number.NaN)));
  const costs: Array<[string, number]> = [
    ['network: HTTP, gunzip', network],
    ['read: decode, parse repeated links once, large numbers exact', of('read')],
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
        head: ['instead', 'JSON.parse = 1'],
        rows: [
          ['flatten where no link repeats', ratio(of('otherFlatten') / parse)],
          ['encode for Postgres where no link repeats', ratio(of('otherCopy') / parse)],
          ['encode and pack for Parquet (zstd)', ratio(of('parquet') / parse)],
        ],
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
        most: MOST_FLATTEN_AND_ENCODE,
      },
    ],
  };
}

function exhaust(rows: Iterable<unknown>): void {
  for (const _ of rows);
}
