import type { Instant } from '../../model/instant.ts';
import { holds, type Window } from '../../model/window.ts';
import type { FileColumn, StoredGroup } from '../parquet/format/index.ts';
import type { MergeRule } from './merge-row.ts';
import { createReshape, type LakeRow, type PartitionFile, timesOf } from './partition-file.ts';
import type { Edit } from './write-file.ts';

/** An incoming event, link or customer, as a row of its file. The last two have no time and are in no index. */
export interface Incoming {
  id: string;
  key: bigint;
  at: Instant;
  row: LakeRow;
}

/** An event that is stored with other values. */
export interface Changed extends Incoming {
  /** Its time in the file. */
  was: Instant;
  columns: readonly string[];
}

/** What a batch changes in the rows of one file. Row numbers are within the group. */
export interface Findings {
  found: Set<string>;
  changed: Map<GroupNumber, Map<RowNumber, Changed>>;
  /** Events whose time changed: they may belong to another group. */
  moved: Map<GroupNumber, Map<RowNumber, Changed>>;
  missing: Map<GroupNumber, Map<RowNumber, { id: string; at: Instant }>>;
  /** Events that stand in the file already, and once is enough. */
  doubled: Map<GroupNumber, Map<RowNumber, { id: string; at: Instant }>>;
}

type GroupNumber = number;
type RowNumber = number;

/**
 * Compares a batch with a file, without changing it. Only groups whose times can match are decoded, and of those only the columns that decide;
 * events that are not found there (their time has changed) are searched for by id in the other groups.
 *
 * @param candidates Events that may be in this file.
 * @param wholes Windows that were read completely: an event of theirs that is not among the candidates has vanished, or moved to another day.
 */
export async function survey(
  partition: PartitionFile,
  rule: MergeRule,
  candidates: readonly Incoming[],
  wholes: readonly Window[],
): Promise<Findings> {
  const { groups } = partition.file;
  const sought = new Map(candidates.map((incoming) => [incoming.id, incoming]));
  const findings: Findings = {
    found: new Set(),
    changed: new Map(),
    moved: new Map(),
    missing: new Map(),
    doubled: new Map(),
  };
  const [idAt, timeAt, missingAt] = [rule.key, 'timestamp', '_missing_since'].map((name) =>
    rule.deciding.indexOf(name),
  ) as [number, number, number];
  // A file may be older than a column.
  const here = new Set(partition.file.columns.map(({ name }) => name));
  const names = rule.deciding.filter((name) => here.has(name));
  const spread = createSpread(rule.deciding, names);

  const examine = async (i: GroupNumber, group: StoredGroup): Promise<void> => {
    const rows = await partition.rows(group, names);
    rows.forEach((narrow, n) => {
      const stored = spread(narrow);
      const id = String(stored[idAt]);
      const at = Number(stored[timeAt] ?? 0);
      const incoming = sought.get(id);
      if (incoming) {
        findings.found.add(id);
        sought.delete(id);
        const columns = rule.differing(stored, incoming.row);
        if (columns.length > 0)
          note(incoming.at === at ? findings.changed : findings.moved, i, n, { ...incoming, was: at, columns });
      } else if (findings.found.has(id)) note(findings.doubled, i, n, { id, at });
      else if ((stored[missingAt] ?? null) === null && wholes.some((window) => holds(window, at)))
        note(findings.missing, i, n, { id, at });
    });
  };

  const rest: Array<[GroupNumber, StoredGroup]> = [];
  for (const [i, group] of groups.entries()) {
    if (group.ranges.has('timestamp') && mayHold(timesOf(group), candidates, wholes)) await examine(i, group);
    else rest.push([i, group]);
  }
  for (const [i, group] of rest) {
    if (sought.size === 0) break;
    const ids = await partition.rows(group, [rule.key]);
    if (ids.some(([id]) => sought.has(String(id)))) await examine(i, group);
  }
  return findings;
}

function note<T>(notes: Map<GroupNumber, Map<RowNumber, T>>, group: GroupNumber, row: RowNumber, value: T): void {
  const known = notes.get(group) ?? new Map<RowNumber, T>();
  notes.set(group, known.set(row, value));
}

/** Expands values of some columns to rows of all columns; the others are null. */
function createSpread(all: readonly string[], some: readonly string[]): (row: LakeRow) => LakeRow {
  if (all.length === some.length) return (row) => row;
  const places = all.map((name) => some.indexOf(name));
  return (row) => places.map((at) => (at < 0 ? null : (row[at] ?? null)));
}

const mayHold = (
  { oldest, newest }: { oldest: Instant; newest: Instant },
  candidates: readonly Incoming[],
  wholes: readonly Window[],
): boolean =>
  candidates.some(({ at }) => at >= oldest && at <= newest) ||
  wholes.some(({ start, end }) => start <= newest && end > oldest);

export function editsOf(
  findings: Findings,
  rule: MergeRule,
  columns: readonly FileColumn[],
  now: Instant,
): Map<number, Edit> {
  const missingAt = columns.findIndex(({ name }) => name === '_missing_since');
  const { doubled } = findings;
  const groups = [findings.changed, findings.moved, findings.missing, doubled].flatMap((notes) => [...notes.keys()]);
  return new Map(
    groups.map((group) => {
      const changed = findings.changed.get(group);
      const moved = findings.moved.get(group);
      const missing = findings.missing.get(group);
      const edit: Edit = (rows) =>
        rows.flatMap((row, n) => {
          if (moved?.has(n) || doubled.get(group)?.has(n)) return [];
          const read = changed?.get(n);
          if (read) return [rule.merge(row, read.row)];
          return [missing?.has(n) ? row.with(missingAt, now) : row];
        });
      return [group, edit];
    }),
  );
}

/** Merged events whose time has changed: they leave their group and are inserted by their new time. */
export async function extractMoved(
  present: PartitionFile,
  findings: Findings,
  rule: MergeRule,
  columns: readonly FileColumn[],
): Promise<Incoming[]> {
  const reshape = createReshape(present.file.columns, columns);
  const extracted: Incoming[] = [];
  for (const [i, moved] of findings.moved) {
    const group = present.file.groups[i];
    if (!group) continue;
    const rows = await present.rows(group);
    for (const [n, one] of moved) extracted.push({ ...one, row: rule.merge(reshape(rows[n] ?? []), one.row) });
  }
  return extracted;
}
