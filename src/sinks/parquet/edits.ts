import type { Instant } from '../../model/instant.ts';
import type { FileColumn } from './format/index.ts';
import type { MergeRule } from './merge-row.ts';
import type { PartitionFile } from './partition-file.ts';
import type { Edit } from './rewrite.ts';
import { createReshape, type LakeRow } from './shape.ts';
import type { Findings } from './survey.ts';

/** What the findings of a survey do to the groups they were made in. */
export function editsOf(
  findings: Findings,
  rule: MergeRule,
  columns: readonly FileColumn[],
  now: Instant,
): Map<number, Edit> {
  const missingAt = columns.findIndex(({ name }) => name === '_missing_since');
  const groups = [findings.changed, findings.moved, findings.missing].flatMap((notes) => [...notes.keys()]);
  return new Map(
    groups.map((group) => {
      const changed = findings.changed.get(group);
      const moved = findings.moved.get(group);
      const missing = findings.missing.get(group);
      const edit: Edit = (rows) =>
        rows.flatMap((row, n) => {
          if (moved?.has(n)) return [];
          const read = changed?.get(n);
          if (read) return [rule.merge(row, read.row)];
          return [missing?.has(n) ? row.with(missingAt, now) : row];
        });
      return [group, edit];
    }),
  );
}

/** Events whose time has changed, merged: they leave their group and are put where their new time belongs. */
export async function extractMoved(
  present: PartitionFile,
  findings: Findings,
  rule: MergeRule,
  columns: readonly FileColumn[],
): Promise<LakeRow[]> {
  const reshape = createReshape(present.file.columns, columns);
  const extracted: LakeRow[] = [];
  for (const [i, moved] of findings.moved) {
    const group = present.file.groups[i];
    if (!group) continue;
    const rows = await present.rows(group);
    for (const [n, { row }] of moved) extracted.push(rule.merge(reshape(rows[n] ?? []), row));
  }
  return extracted;
}
