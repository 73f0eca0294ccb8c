import type { Instant } from '../../model/instant.ts';
import { holds, type Window } from '../../model/window.ts';
import type { FileColumn, StoredGroup } from '../parquet/format/index.ts';
import { groupBy } from './group-by.ts';
import type { MergeRule } from './merge-row.ts';
import { createReshape, type LakeRow, type PartitionFile, timesOf } from './partition-file.ts';
import type { Edit } from './write-file.ts';

/** An incoming event, link or customer, as a row of its file. Links and customers have no time and are not indexed. */
export interface Incoming {
  id: string;
  key: bigint;
  at: Instant;
  row: LakeRow;
}

/** A stored row that changes: the event came with other values, or with another time, which may belong to another row group. */
export interface Changed extends Incoming, Position {
  kind: 'changed' | 'moved';
  /** The time stored in the file. */
  was: Instant;
  columns: readonly string[];
}

/** A stored row whose event the service no longer shows, or a duplicate of an earlier row of the file. */
interface Surplus extends Pick<Incoming, 'id' | 'at'>, Position {
  kind: 'missing' | 'doubled';
}

/** `n` is the row's number within its row group. */
interface Position {
  group: number;
  n: number;
}

export interface Findings {
  found: Set<string>;
  notes: Array<Changed | Surplus>;
}

export const movedIn = ({ notes }: Findings): Changed[] =>
  notes.filter((note): note is Changed => note.kind === 'moved');

/**
 * Compares a batch with a file, without changing it. It decodes only the compared columns of row groups whose time range can match,
 * and looks up events that are not found there (their time has changed) by id in the other row groups.
 *
 * @param candidates Events that may be in this file.
 * @param fullWindows Windows that were read completely: an event in one that is not a candidate has vanished or moved to another day.
 */
export async function compareRows(
  partition: PartitionFile,
  rule: MergeRule,
  candidates: readonly Incoming[],
  fullWindows: readonly Window[],
): Promise<Findings> {
  const { groups } = partition.file;
  const sought = new Map(candidates.map((incoming) => [incoming.id, incoming]));
  const { found, notes }: Findings = { found: new Set(), notes: [] };
  const [idAt, timeAt, missingAt] = [rule.key, 'timestamp', '_missing_since'].map((name) =>
    rule.deciding.indexOf(name),
  ) as [number, number, number];
  // An old file may lack a column.
  const here = new Set(partition.file.columns.map(({ name }) => name));
  const names = rule.deciding.filter((name) => here.has(name));
  const spread = createSpread(rule.deciding, names);

  const examine = async (group: number, from: StoredGroup): Promise<void> => {
    const rows = await partition.rows(from, names);
    rows.forEach((narrow, n) => {
      const stored = spread(narrow);
      const id = String(stored[idAt]);
      const at = Number(stored[timeAt] ?? 0);
      const incoming = sought.get(id);
      if (incoming) {
        found.add(id);
        sought.delete(id);
        const columns = rule.differing(stored, incoming.row);
        const kind = incoming.at === at ? 'changed' : 'moved';
        if (columns.length > 0) notes.push({ ...incoming, kind, group, n, was: at, columns });
      } else if (found.has(id)) notes.push({ kind: 'doubled', group, n, id, at });
      else if ((stored[missingAt] ?? null) === null && fullWindows.some((window) => holds(window, at)))
        notes.push({ kind: 'missing', group, n, id, at });
    });
  };

  const rest: Array<[number, StoredGroup]> = [];
  for (const [i, group] of groups.entries()) {
    if (group.ranges.has('timestamp') && mayHold(timesOf(group), candidates, fullWindows)) await examine(i, group);
    else rest.push([i, group]);
  }
  for (const [i, group] of rest) {
    if (sought.size === 0) break;
    const ids = await partition.rows(group, [rule.key]);
    if (ids.some(([id]) => sought.has(String(id)))) await examine(i, group);
  }
  return { found, notes };
}

/** Expands rows of some columns to rows of all columns, with nulls in the others. */
function createSpread(all: readonly string[], some: readonly string[]): (row: LakeRow) => LakeRow {
  if (all.length === some.length) return (row) => row;
  const indexes = all.map((name) => some.indexOf(name));
  return (row) => indexes.map((at) => (at < 0 ? null : (row[at] ?? null)));
}

const mayHold = (
  { oldest, newest }: { oldest: Instant; newest: Instant },
  candidates: readonly Incoming[],
  fullWindows: readonly Window[],
): boolean =>
  candidates.some(({ at }) => at >= oldest && at <= newest) ||
  fullWindows.some(({ start, end }) => start <= newest && end > oldest);

export function editsOf({ notes }: Findings, rule: MergeRule, columns: readonly FileColumn[], now: Instant) {
  const missingAt = columns.findIndex(({ name }) => name === '_missing_since');
  const editOf = (inGroup: Findings['notes']): Edit => {
    const byRow = new Map(inGroup.map((note) => [note.n, note]));
    return (rows) =>
      rows.flatMap((row, n) => {
        const note = byRow.get(n);
        if (note?.kind === 'changed') return [rule.merge(row, note.row)];
        if (note?.kind === 'missing') return [row.with(missingAt, now)];
        return note ? [] : [row];
      });
  };
  return new Map([...groupBy(notes, ({ group }) => group)].map(([group, inGroup]) => [group, editOf(inGroup)]));
}

/** Merges the events whose time has changed. They leave their row group and are inserted by their new time. */
export async function extractMoved(
  present: PartitionFile,
  findings: Findings,
  rule: MergeRule,
  columns: readonly FileColumn[],
): Promise<Incoming[]> {
  const reshape = createReshape(present.file.columns, columns);
  const extracted: Incoming[] = [];
  for (const [i, moved] of groupBy(movedIn(findings), ({ group }) => group)) {
    const rows = await present.rows(present.file.groups[i] as StoredGroup);
    for (const one of moved) extracted.push({ ...one, row: rule.merge(reshape(rows[one.n] ?? []), one.row) });
  }
  return extracted;
}
