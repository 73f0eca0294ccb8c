import { storableText } from '../cursor/database/sql.ts';
import { type Column, isNone } from '../model/columns.ts';
import type { Row } from '../model/flatten.ts';
import { LONGEST_ID } from '../model/identity.ts';
import type { Instant } from '../model/instant.ts';
import type { Entity, Stream } from '../model/streams.ts';

/**
 * What makes an event "changed", for every sink alike: a field of the event itself. Links and customers are joined by the service
 * at the time of reading, and a deprecated column only repeats another.
 */
export const ownColumns = (stream: Stream): Column[] =>
  stream.columns.filter((column) => !column.volatile && !column.deprecated);

/** The keys of a record that hold what is joined: `link`, `customer`, and aliases such as `domain`. */
export const joinedKeys = (stream: Stream): string[] => [
  ...new Set(
    stream.columns.filter((c) => c.volatile).flatMap((c) => c.from.map(({ path }) => path.split('.')[0] ?? '')),
  ),
];

/**
 * Which of two readings of an event counts, for every sink alike. Of two runs the later one: an event's time may move back. Within a run
 * the one with the newer time, and of equal times the last: the service shows both, in whichever order they are read.
 */
export interface Reading {
  at: Instant;
  runId: string | null;
}

/** Whether what is stored counts, and not what was read now. A row that has gone missing since is no longer shown, and never does. */
export const outdates = (stored: Reading & { isMissing: boolean }, read: Reading): boolean =>
  !stored.isMissing && stored.runId === read.runId && stored.at > read.at;

/** The same in SQL: `t` is stored, `s` was read by the run that the parameter names. */
export const outdatesSql = (runId: string): string =>
  `(t._missing_since is null and t._run_id = ${runId} and t."timestamp" > s."timestamp")`;

/** The reading of each event of a batch that counts: a batch is of one run. By the id as it will be stored. */
export function newestById(rows: readonly Row[]): Map<string, Row> {
  const newest = new Map<string, Row>();
  for (const row of rows) {
    const id = storableText(row.id);
    const before = newest.get(id);
    if (!before || row.at >= before.at) newest.set(id, row);
  }
  return newest;
}

/**
 * The last row of each link or customer in a batch: pages come in the order they were read, whatever the time of their events.
 * A row that knows something is better than a later one that does not. An id that no index can hold stays with its events.
 */
export function newestEntities(entity: Entity, stream: Stream, rows: readonly Row[]): Row[] {
  const place = (name: string): number => stream.columns.findIndex((column) => column.name === name);
  const key = place(entity.key);
  const knowledge = entity.knowledge.map(place);
  const knows = (row: Row): boolean => knowledge.some((i) => !isNone(row.values[i] ?? null));
  const newest = new Map<unknown, Row>();
  for (const row of rows) {
    const id = row.values[key];
    if (typeof id !== 'string' || id === '' || id.length > LONGEST_ID) continue;
    const before = newest.get(id);
    if (!before || knows(row) || !knows(before)) newest.set(id, row);
  }
  return [...newest.values()];
}
