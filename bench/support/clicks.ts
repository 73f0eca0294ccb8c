import type { Value } from '../../src/model/columns.ts';
import { createFlatten, type Row } from '../../src/model/flatten.ts';
import { BOOKKEEPING, SOURCE, STREAMS } from '../../src/model/streams.ts';
import { createSanitizer, UTF8_TEXT } from '../../src/sinks/merge-rule.ts';
import { encodeCopy } from '../../src/sinks/postgres/copy-encoder.ts';
import { createHistory } from '../service/stamped.ts';

/** The clicks of the bench's service in all forms: as pages of text, as rows, as bytes for Postgres. */

export const stream = STREAMS.clicks;
const BOOKS = BOOKKEEPING.filter((column) => column !== SOURCE);
export const COLUMNS = [SOURCE, ...stream.columns, ...BOOKS];
const PAGE_ROWS = 1000;

export function pagesOf(rows: number): string[] {
  const { since, page } = createHistory(rows, Date.now());
  const all = { start: since, end: Date.now(), isAscending: true, limit: PAGE_ROWS };
  return Array.from({ length: Math.ceil(rows / PAGE_ROWS) }, (_, i) => page({ ...all, page: i + 1 }).text());
}

export function rowsOf(pages: readonly string[]): Row[] {
  const flatten = createFlatten(stream);
  return pages.flatMap((text) => (JSON.parse(text) as unknown[]).map(flatten));
}

/** Rows with all columns of the tables. */
export function* storedRows(rows: readonly Row[]): Generator<Value[]> {
  const now = Date.now();
  for (const row of createSanitizer(stream, UTF8_TEXT).all(rows, ['main'])) yield [...row, now, now, 'bench', null];
}

/** Prepared bytes for one COPY into a table like `clicks`. */
export const preparedCopy = (rows: readonly Row[]): Buffer[] => [
  ...encodeCopy(
    COLUMNS.map(({ kind }) => kind),
    storedRows(rows),
  ),
];

export const rawCopy = (table: string): string =>
  `copy ${table} (${COLUMNS.map(({ name }) => `"${name}"`).join(', ')}) from stdin (format binary)`;
