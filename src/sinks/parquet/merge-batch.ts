import type { Queryable } from '../../cursor/database.ts';
import type { Advance } from '../../cursor/ledger.ts';
import type { Row } from '../../model/flatten.ts';
import type { Stream } from '../../model/streams.ts';
import { createSanitizer, UTF8_TEXT } from '../sanitize-rows.ts';
import type { Receipt } from '../sink.ts';
import { candidatesIn } from './candidates.ts';
import { readyRows } from './incoming.ts';
import type { Lake } from './lake.ts';
import { bookkeeping, createMergeRule } from './merge-row.ts';
import { filePath, type Partition, partitionOf } from './partition.ts';
import { openPartition } from './partition-file.ts';
import { replaceFiles, type Work } from './replace-files.ts';
import { columnsOf } from './shape.ts';
import { type Findings, type Incoming, survey } from './survey.ts';
import { addKeys, databaseNow } from './whereabouts.ts';

export interface MergeOptions {
  lake: Lake;
  track: number;
  stream: Stream;
  /** In the order they were read. The same event may come twice. */
  rows: readonly Row[];
  advance: Advance;
  /** Called between files and groups: this may take longer than a lease lasts. */
  beat(): Promise<void>;
}

/**
 * Merges a batch into the files. First every file that may hold one of its events is looked into; then those in which something
 * is new or different are made anew, beside the present ones; when all of them are on disk, one after the other takes its place.
 */
export async function mergeBatch(tx: Queryable, options: MergeOptions): Promise<Receipt> {
  const { lake, track, stream, advance } = options;
  const now = await databaseNow(tx);
  const sanitizer = createSanitizer(stream, UTF8_TEXT);
  const incoming = readyRows(sanitizer, advance.source, options.rows, bookkeeping(now, advance.runId));
  const { works, stored, changed } = await surveyAll(tx, options, incoming);
  const news = incoming.filter(({ id }) => !stored.has(id));
  for (const one of news) {
    const partition = partitionOf(lake.scheme, one.at);
    const work = works.get(partition) ?? { path: pathOf(options, partition), surveyed: undefined, added: [] };
    work.added.push(one);
    works.set(partition, work);
  }
  await replaceFiles(tx, options, works, now);
  for (const [partition, { added }] of works) {
    await addKeys(tx, track, partition, added.map(keyOfIncoming));
  }
  return { new: news.length, changed, unchanged: stored.size - changed, sanitized: sanitizer.sanitized() };
}

/** What the files say about events that are in them already. */
async function surveyAll(
  tx: Queryable,
  options: MergeOptions,
  incoming: readonly Incoming[],
): Promise<{ works: Map<Partition, Work>; stored: Set<string>; changed: number }> {
  const { lake, stream, advance, beat } = options;
  const wholes = advance.spans.filter((span) => span.whole);
  const rule = createMergeRule(stream, columnsOf(stream));
  const shown = new Set(incoming.map(({ id }) => id));
  const works = new Map<Partition, Work>();
  const stored = new Set<string>();
  let changed = 0;
  for (const [partition, candidates] of await candidatesIn(tx, options.track, incoming, wholes)) {
    await beat();
    const path = pathOf(options, partition);
    const present = await openPartition(lake.store, path, advance);
    if (!present) continue;
    try {
      const findings = await survey(present, { rule, candidates, wholes, shown });
      for (const id of findings.found) stored.add(id);
      const changes = countOf(findings.changed) + countOf(findings.moved);
      changed += changes;
      const surveyed = { findings, identity: present.identity };
      if (changes + findings.missing.size > 0) works.set(partition, { path, surveyed, added: [] });
    } finally {
      await present.close();
    }
  }
  return { works, stored, changed };
}

const pathOf = ({ lake, stream, advance }: MergeOptions, partition: Partition): string =>
  filePath(lake.scheme, stream.name, advance.source, partition);

const keyOfIncoming = ({ key }: Incoming): bigint => key;

const countOf = (notes: Findings['changed']): number => [...notes.values()].reduce((sum, rows) => sum + rows.size, 0);
