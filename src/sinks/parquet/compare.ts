import { createSanitizer, UTF8_TEXT } from '../sanitize-rows.ts';
import type { Comparison, Difference } from '../sink.ts';
import { candidatesIn } from './candidates.ts';
import { readyRows } from './incoming.ts';
import type { Lake } from './lake.ts';
import { bookkeeping, createMergeRule } from './merge-row.ts';
import { filePath } from './partition.ts';
import { openPartition, type PartitionFile } from './partition-file.ts';
import { columnsOf } from './shape.ts';
import { type Findings, survey } from './survey.ts';
import { findTrack } from './whereabouts.ts';

/** Looks for rows in the files, by the same rule as a merge would, and changes nothing. */
export async function compareLake(lake: Lake, question: Comparison): Promise<Difference[]> {
  const { stream, source, window, rows, isWhole } = question;
  // What the sink would add to the rows decides nothing.
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
        for (const { id, at } of group.values()) differences.push({ kind: 'different', id, at, columns: [] });
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
