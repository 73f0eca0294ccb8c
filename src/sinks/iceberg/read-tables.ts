import type { Row } from '../../model/flatten.ts';
import type { Stream } from '../../model/streams.ts';
import { DAY_MS, startOfDay, type Window } from '../../model/window.ts';
import { createSanitizer, UTF8_TEXT } from '../merge-rule.ts';
import { findTrack } from '../parquet/event-index.ts';
import { readyRows } from '../parquet/merge-batch.ts';
import { bookkeeping, createMergeRule } from '../parquet/merge-row.ts';
import { columnsOf, createReshape, type PartitionFile } from '../parquet/partition-file.ts';
import { rowsInOrder } from '../parquet/read-lake.ts';
import type { Comparison, Difference } from '../sink.ts';
import { openDataFile } from './data-file.ts';
import { streamDesign } from './format/schema.ts';
import { surveyTable } from './merge-events.ts';
import { filesOf, loadTable, type Warehouse } from './warehouse.ts';

/** Looks for rows in the table, by the same rule as a merge would, and changes nothing. */
export async function compareTable(warehouse: Warehouse, comparison: Comparison): Promise<Difference[]> {
  const { stream, source, window, rows, isWhole } = comparison;
  const missing = (from: ReadonlyArray<{ id: string; at: number }>): Difference[] =>
    from.map(({ id, at }) => ({ kind: 'missing', id, at, columns: [] }));
  // What the sink would add to the rows decides nothing.
  const incoming = readyRows(createSanitizer(stream, UTF8_TEXT), source, rows, bookkeeping(0, ''));
  const track = await findTrack(warehouse.state, { sink: warehouse.name, stream: stream.name, source });
  const table = await loadTable(warehouse.state, warehouse, streamDesign(stream));
  if (track === undefined || !table) return missing(incoming);
  const reshape = createReshape(columnsOf(stream), table.columns);
  const { works, stored } = await surveyTable(warehouse.state, warehouse, table, {
    source,
    track,
    incoming: incoming.map((one) => ({ ...one, row: reshape(one.row) })),
    wholes: isWhole ? [window] : [],
    rule: createMergeRule(stream, table.columns),
    beat: async () => {},
  });
  const differences: Difference[] = [];
  for (const { entry, findings } of works) {
    for (const group of [...findings.changed.values(), ...findings.moved.values()]) {
      for (const { id, at, columns } of group.values()) differences.push({ kind: 'different', id, at, columns });
    }
    if (findings.missing.size === 0) continue;
    const file = await openDataFile(warehouse, entry.file);
    try {
      differences.push(...(await extra(file, findings.missing)));
    } finally {
      await file.close();
    }
  }
  return [...missing(incoming.filter(({ id }) => !stored.has(id))), ...differences];
}

async function extra(file: PartitionFile, rows: ReadonlyMap<number, ReadonlySet<number>>): Promise<Difference[]> {
  const found: Difference[] = [];
  for (const [number, places] of rows) {
    const group = file.file.groups[number];
    if (!group) throw new Error('a group that was looked into');
    const all = await file.rows(group, ['event_id', 'timestamp']);
    for (const place of places) {
      const [id, at] = all[place] ?? [];
      found.push({ kind: 'extra', id: String(id), at: Number(at), columns: [] });
    }
  }
  return found;
}

/** Rows as they were before they were stored, in order of time, a day's files at a time. */
export async function* readTable(
  warehouse: Warehouse,
  stream: Stream,
  source: string,
  window: Window,
): AsyncGenerator<Row[]> {
  const table = await loadTable(warehouse.state, warehouse, streamDesign(stream));
  if (!table) return;
  for (let start = startOfDay(window.start); start < window.end; start += DAY_MS) {
    const part = { start: Math.max(window.start, start), end: Math.min(window.end, start + DAY_MS) };
    const day = start / DAY_MS;
    const files: PartitionFile[] = [];
    try {
      for (const { file } of await filesOf(warehouse, table, { source, days: [{ first: day, last: day }] })) {
        files.push(await openDataFile(warehouse, file));
      }
      yield* rowsInOrder(files, stream, part);
    } finally {
      for (const file of files) await file.close();
    }
  }
}
