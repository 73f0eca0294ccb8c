import type { Queryable } from '../../cursor/database/index.ts';
import type { Track } from '../../cursor/ledger.ts';
import type { Value } from '../../model/columns.ts';
import type { Row } from '../../model/flatten.ts';
import { type JsonObject, parseJson } from '../../model/json.ts';
import type { Stream } from '../../model/streams.ts';
import { DAY_MS, holds, startOfDay, type Window } from '../../model/window.ts';
import { createSanitizer, UTF8_TEXT } from '../merge-rule.ts';
import type { Comparison, Difference } from '../sink.ts';
import { filesWithin, findTrack, partitionsWithin } from './event-index.ts';
import type { StoredGroup } from './format/index.ts';
import { filePath, type Lake } from './lake.ts';
import { candidatesIn, readyRows } from './merge-batch.ts';
import { bookkeeping, createMergeRule } from './merge-row.ts';
import { columnsOf, createReshape, openPartition, type PartitionFile, timesOf } from './partition-file.ts';
import { type Findings, survey } from './survey.ts';

const HOUR_MS = 3_600_000;

/**
 * Rows without the sink's own columns, in order of time. An hour at a time, which bounds the memory; from every file that may
 * hold some of it, because an event stays in its first file. Rows that have vanished from the service are left out.
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

/** The number of rows in each of these windows. A file is only opened if its times reach beyond a window. */
export async function countLake(
  db: Queryable,
  lake: Lake,
  track: Track,
  windows: readonly Window[],
): Promise<number[]> {
  const counts = windows.map(() => 0);
  const id = await findTrack(db, track);
  if (id === undefined) return counts;
  for (const { partition, rows, oldest, newest } of await filesWithin(db, id, windows)) {
    const touched = windows.flatMap((window, i) =>
      window.start <= newest && window.end > oldest ? [{ window, i }] : [],
    );
    const isOneWhole = touched.every(({ window: { start, end } }) => start <= oldest && end > newest);
    const file = isOneWhole
      ? undefined
      : await openPartition(lake.store, filePath(lake.scheme, track.stream, track.source, partition), track);
    try {
      for (const { window, i } of touched) counts[i] = (counts[i] ?? 0) + (file ? await countIn(file, window) : rows);
    } finally {
      await file?.close();
    }
  }
  return counts;
}

/** The rows of a window in an open file: groups that reach beyond it are asked for their times. */
export async function countIn(partition: PartitionFile, window: Window): Promise<number> {
  let count = 0;
  for (const group of partition.file.groups) {
    const { oldest, newest } = timesOf(group);
    if (newest < window.start || oldest >= window.end) continue;
    if (oldest >= window.start && newest < window.end) count += group.rows;
    else for (const [at] of await partition.rows(group, ['timestamp'])) if (holds(window, Number(at))) count++;
  }
  return count;
}

/** The rows of a window from open files, an hour at a time. */
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

/** A group holds several hours, so the last decoded ones are kept. */
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

/** Compares rows with the files by the merge rule, and changes nothing. */
export async function compareLake(lake: Lake, question: Comparison): Promise<Difference[]> {
  const { stream, source, window, rows, isWhole } = question;
  // The sink's own columns do not take part in the comparison.
  const incoming = readyRows(createSanitizer(stream, UTF8_TEXT), source, rows, bookkeeping(0, ''));
  const track = await findTrack(lake.state, { sink: lake.name, stream: stream.name, source });
  const wholes = isWhole ? [window] : [];
  const rule = createMergeRule(stream, columnsOf(stream));
  const shown = new Set(incoming.map(({ id }) => id));
  const stored = new Set<string>();
  const differences: Difference[] = [];
  const candidates = track === undefined ? [] : await candidatesIn(lake.state, track, incoming, wholes);
  for (const [partition, sought] of candidates) {
    const path = filePath(lake.scheme, stream.name, source, partition);
    const file = await openPartition(lake.store, path, { source, stream: stream.name });
    if (!file) continue;
    try {
      const findings = await survey(file, { rule, candidates: sought, wholes, shown });
      for (const id of findings.found) stored.add(id);
      for (const group of [...findings.changed.values(), ...findings.moved.values()]) {
        for (const { id, at, columns } of group.values()) differences.push({ kind: 'different', id, at, columns });
      }
      differences.push(...(await tooMuch(file, findings)));
    } finally {
      await file.close();
    }
  }
  const missing = incoming.filter(({ id }) => !stored.has(id));
  return [...missing.map(({ id, at }): Difference => ({ kind: 'missing', id, at, columns: [] })), ...differences];
}

async function tooMuch(file: PartitionFile, { missing }: Findings): Promise<Difference[]> {
  const found: Difference[] = [];
  for (const [number, rows] of missing) {
    const group = file.file.groups[number];
    if (!group) throw new Error('a group that was looked into');
    const all = await file.rows(group, ['event_id', 'timestamp']);
    for (const row of rows) {
      const [id, at] = all[row] ?? [];
      found.push({ kind: 'extra', id: String(id), at: Number(at), columns: [] });
    }
  }
  return found;
}
