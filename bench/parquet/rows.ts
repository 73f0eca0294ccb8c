import type { Value } from '../../src/model/columns.ts';
import { createFlatten } from '../../src/model/flatten.ts';
import { stringifyJson } from '../../src/model/json.ts';
import { BOOKKEEPING, SOURCE, STREAMS } from '../../src/model/streams.ts';
import type { FileColumn } from '../../src/sinks/parquet/format/index.ts';
import { createSandboxService } from '../../test/support/odd-service/service.ts';

export interface Table {
  columns: FileColumn[];
  rows: Value[][];
}

/**
 * Clicks as the lake gets them, in order of time. Columns beyond the stream's resemble evolved ones: they repeat
 * others under their own name, with other texts.
 */
export function makeTable(count: number, width: number): Table {
  const stream = STREAMS.clicks;
  const service = createSandboxService({ rows: { clicks: count, leads: 0, sales: 0 } });
  const flatten = createFlatten(stream);
  const now = Date.now();
  const books = BOOKKEEPING.filter((column) => column !== SOURCE);
  const columns = [SOURCE, ...stream.columns, ...books].map(({ name, kind, nullable }) => ({ name, kind, nullable }));
  const rows = service.events('clicks').map((record) => {
    const { values, extra } = flatten(JSON.parse(JSON.stringify(record)));
    const row = ['main', ...values, extra, now, now, 'run-1', null] as Value[];
    return row.map((value, i) => (columns[i]?.kind === 'json' && value !== null ? stringifyJson(value) : value));
  });
  const own = columns.length;
  for (let at = own; at < width; at++) {
    const model = columns[at % own] as FileColumn;
    columns.push({ ...model, name: `more_${at}` });
    for (const row of rows) {
      const value = row[at % own] ?? null;
      row.push(typeof value === 'string' ? `${value}${at}` : value);
    }
  }
  return { columns, rows };
}
