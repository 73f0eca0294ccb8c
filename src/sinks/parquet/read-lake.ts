import type { Value } from '../../model/coerce.ts';
import type { JsonObject } from '../../model/extra.ts';
import type { Row } from '../../model/flatten.ts';
import { parseJson } from '../../model/json.ts';
import type { Stream } from '../../model/streams.ts';
import { DAY_MS, holds, startOfDay, type Window } from '../../model/window.ts';
import type { StoredGroup } from './format/index.ts';
import type { Lake } from './lake.ts';
import { filePath } from './partition.ts';
import { openPartition, type PartitionFile, timesOf } from './partition-file.ts';
import { columnsOf, createReshape } from './shape.ts';
import { findTrack, partitionsWithin } from './whereabouts.ts';

const HOUR_MS = 3_600_000;

/**
 * Rows as they were before they were stored, in order of time. An hour at a time, which bounds the memory; from every file that may
 * have some of it, since an event stays where it was first written. Those that have vanished from the service are left out.
 */
export async function* readLake(lake: Lake, stream: Stream, source: string, window: Window): AsyncGenerator<Row[]> {
  const track = await findTrack(lake.state, { sink: lake.name, stream: stream.name, source });
  if (track === undefined) return;
  for (let day = startOfDay(window.start); day < window.end; day += DAY_MS) {
    const part = { start: Math.max(window.start, day), end: Math.min(window.end, day + DAY_MS) };
    const partitions = await partitionsWithin(lake.state, track, [part]);
    const files: PartitionFile[] = [];
    try {
      for (const partition of partitions) {
        const path = filePath(lake.scheme, stream.name, source, partition);
        const file = await openPartition(lake.store, path, { source, stream: stream.name });
        if (file) files.push(file);
      }
      yield* rowsInOrder(files, stream, part);
    } finally {
      for (const file of files) await file.close();
    }
  }
}

/** The rows of a window out of files that are open, an hour at a time. */
export async function* rowsInOrder(
  files: readonly PartitionFile[],
  stream: Stream,
  window: Window,
): AsyncGenerator<Row[]> {
  const all = files.map((file) => openRows(file, stream));
  for (let hour = window.start; hour < window.end; hour = nextHour(hour)) {
    const piece = { start: hour, end: Math.min(window.end, nextHour(hour)) };
    const rows = (await Promise.all(all.map((file) => file.rowsIn(piece)))).flat();
    if (rows.length > 0) yield rows.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  }
}

const nextHour = (at: number): number => (Math.floor(at / HOUR_MS) + 1) * HOUR_MS;

interface OpenFile {
  rowsIn(window: Window): Promise<Row[]>;
}

/** A group holds several hours: the last ones that were decoded are kept. */
const GROUPS_KEPT = 2;

function openRows(partition: PartitionFile, stream: Stream): OpenFile {
  const columns = columnsOf(stream);
  const reshape = createReshape(partition.file.columns, columns);
  const place = (name: string): number => columns.findIndex((column) => column.name === name);
  const [first, extra, missing] = [1, place('_extra'), place('_missing_since')];
  const decoded = new Map<StoredGroup, Row[]>();

  const toRow = (values: readonly Value[]): Row => {
    const own = stream.columns.map(({ kind }, i) => {
      const value = values[first + i] ?? null;
      return kind === 'json' && typeof value === 'string' ? (parseJson(value) as Value) : value;
    });
    const rest = values[extra] ?? null;
    return {
      id: String(values[place('event_id')]),
      at: Number(values[place('timestamp')]),
      values: own,
      extra: rest === null ? null : (parseJson(String(rest)) as JsonObject),
      contradictions: [],
      misfits: [],
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

  return {
    async rowsIn(window) {
      const found: Row[] = [];
      for (const group of partition.file.groups) {
        const { oldest, newest } = timesOf(group);
        if (oldest >= window.end || newest < window.start) continue;
        for (const row of await decode(group)) if (holds(window, row.at)) found.push(row);
      }
      return found;
    },
  };
}
