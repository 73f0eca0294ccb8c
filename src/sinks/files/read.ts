import type { Value } from '../../model/columns.ts';
import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';
import { type JsonObject, parseJson } from '../../model/json.ts';
import type { Stream } from '../../model/streams.ts';
import { DAY_MS, HOUR_MS, holds, startOfDay, type Window } from '../../model/window.ts';
import type { StoredGroup } from '../parquet/format/index.ts';
import { columnsOf, createReshape, type PartitionFile, timesOf } from './partition-file.ts';
import { whileOpen } from './store/store.ts';

/** Yields a window's rows in time order, an hour at a time, from every file that may hold some. Vanished rows are left out. */
export async function* readFiles(
  stream: Stream,
  window: Window,
  find: (part: Window) => Promise<readonly Pick<Counted, 'open'>[]>,
): AsyncGenerator<Row[]> {
  for (let day = startOfDay(window.start); day < window.end; day += DAY_MS) {
    const part = { start: Math.max(window.start, day), end: Math.min(window.end, day + DAY_MS) };
    const files: PartitionFile[] = [];
    try {
      for (const { open } of await find(part)) {
        const file = await open();
        if (file) files.push(file);
      }
      yield* rowsInOrder(files, stream, part);
    } finally {
      for (const file of files) await file.close();
    }
  }
}

export interface Counted {
  rows: number;
  oldest: Instant;
  newest: Instant;
  /** Undefined if the file is gone. */
  open(): Promise<PartitionFile | undefined>;
}

/** Counts the rows in each window. A file is opened only if its time range exceeds a window; if it is gone, it counts as empty. */
export async function countRows(files: readonly Counted[], windows: readonly Window[]): Promise<number[]> {
  const counts = windows.map(() => 0);
  for (const { rows, oldest, newest, open } of files) {
    const touched = windows.flatMap((window, i) =>
      window.start <= newest && window.end > oldest ? [{ window, i }] : [],
    );
    const isWhole = touched.every(({ window: { start, end } }) => start <= oldest && end > newest);
    await whileOpen(isWhole ? undefined : await open(), async (file) => {
      if (!isWhole && !file) return;
      for (const { window, i } of touched) counts[i] = (counts[i] ?? 0) + (file ? await countIn(file, window) : rows);
    });
  }
  return counts;
}

/** Counts the rows of a window in an open file, reading the times of row groups that exceed it. */
async function countIn(partition: PartitionFile, window: Window): Promise<number> {
  let count = 0;
  for (const group of partition.file.groups) {
    const { oldest, newest } = timesOf(group);
    if (newest < window.start || oldest >= window.end) continue;
    if (oldest >= window.start && newest < window.end) count += group.rows;
    else for (const [at] of await partition.rows(group, ['timestamp'])) if (holds(window, Number(at))) count++;
  }
  return count;
}

async function* rowsInOrder(files: readonly PartitionFile[], stream: Stream, window: Window): AsyncGenerator<Row[]> {
  const all = files.map((file) => openRows(file, stream));
  for (let hour = window.start; hour < window.end; hour = nextHour(hour)) {
    const piece = { start: hour, end: Math.min(window.end, nextHour(hour)) };
    const rows = (await Promise.all(all.map((rowsIn) => rowsIn(piece)))).flat();
    if (rows.length > 0) yield rows.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  }
}

const nextHour = (at: number): number => (Math.floor(at / HOUR_MS) + 1) * HOUR_MS;

/** A row group spans several hours, so the last decoded ones are kept. */
const GROUPS_KEPT = 2;

function openRows(partition: PartitionFile, stream: Stream): (window: Window) => Promise<Row[]> {
  const columns = columnsOf(stream);
  const reshape = createReshape(partition.file.columns, columns);
  const indexOf = (name: string): number => columns.findIndex((column) => column.name === name);
  const [extra, missing] = [indexOf('_extra'), indexOf('_missing_since')];
  const decoded = new Map<StoredGroup, Row[]>();

  const toRow = (values: readonly Value[]): Row => {
    const own = stream.columns.map(({ kind }, i) => {
      // Column 0 is `_source`.
      const value = values[1 + i] ?? null;
      return kind === 'json' && typeof value === 'string' ? (parseJson(value) as Value) : value;
    });
    const rest = values[extra] ?? null;
    return {
      id: String(values[indexOf('event_id')]),
      at: Number(values[indexOf('timestamp')]),
      values: own,
      extra: rest === null ? null : (parseJson(String(rest)) as JsonObject),
      contradictions: [],
      typeMismatches: [],
    };
  };

  const decode = async (group: StoredGroup): Promise<Row[]> => {
    const known = decoded.get(group);
    if (known) return known;
    const rows = (await partition.rows(group)).map(reshape).filter((values) => (values[missing] ?? null) === null);
    const all = rows.map(toRow);
    decoded.set(group, all);
    for (const old of [...decoded.keys()].slice(0, -GROUPS_KEPT)) decoded.delete(old);
    return all;
  };

  return async (window) => {
    const found: Row[] = [];
    for (const group of partition.file.groups) {
      const { oldest, newest } = timesOf(group);
      if (oldest >= window.end || newest < window.start) continue;
      for (const row of await decode(group)) if (holds(window, row.at)) found.push(row);
    }
    return found;
  };
}
