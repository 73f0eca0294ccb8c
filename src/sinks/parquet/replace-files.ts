import type { Queryable } from '../../cursor/database/index.ts';
import type { Advance } from '../../cursor/ledger.ts';
import type { Instant } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import { describeWindow } from '../../model/window.ts';
import { recordFile } from './event-index.ts';
import { columnsOf, unitedColumns } from './file/columns.ts';
import { META, openPartition, type PartitionFile } from './file/partition-file.ts';
import { type Rewritten, rewrite } from './file/rewrite.ts';
import type { Lake, Partition } from './lake.ts';
import { createMergeRule } from './merge-row.ts';
import { ReplacedMeanwhile } from './store/store.ts';
import { editsOf, extractMoved, type Findings, type Incoming } from './survey.ts';

/** What is to be done to one partition. */
export interface Work {
  path: string;
  /** The file that the index knows there. Any other has events that the index does not know of. */
  known: string | undefined;
  /** What was found in it. */
  findings: Findings | undefined;
  added: Incoming[];
}

/** Found before anything is replaced: the file is not the one that the index knows. */
export class UnknownFile extends ReplacedMeanwhile {}

interface Options {
  lake: Lake;
  track: number;
  stream: Stream;
  advance: Advance;
  beat(): Promise<void>;
}

interface Ready extends Rewritten {
  partition: Partition;
  /** The file that it was made from. */
  over: string | undefined;
}

/** All new files are on disk before the first takes its place. What is left of them after an error is taken away again. */
export async function replaceFiles(
  tx: Queryable,
  options: Options,
  works: ReadonlyMap<Partition, Work>,
  now: Instant,
): Promise<void> {
  const ready: Ready[] = [];
  try {
    for (const [partition, work] of works) ready.push({ partition, ...(await prepareFile(options, work, now)) });
    for (const { staged, over, ...made } of ready) {
      const identity = await staged.publish(over);
      await recordFile(tx, options.track, { ...made, identity });
    }
  } finally {
    for (const { staged } of ready) await staged.discard();
  }
}

async function prepareFile(options: Options, work: Work, now: Instant): Promise<Omit<Ready, 'partition'>> {
  const { lake, stream, advance, beat } = options;
  const { path, known, findings, added } = work;
  const present = await openPartition(lake.store, path, advance);
  try {
    if (present?.identity !== known) throw new UnknownFile(path);
    const columns = present ? unitedColumns(stream, present.file.columns) : columnsOf(stream);
    const rule = createMergeRule(stream, columns);
    const moved = present && findings ? await extractMoved(present, findings, rule, columns) : [];
    const rewritten = await rewrite({
      store: lake.store,
      path,
      present,
      columns,
      edits: findings ? editsOf(findings, rule, columns, now) : new Map(),
      added: [...moved, ...added.map(({ row }) => row)],
      compression: lake.compression,
      metadata: metadataOf(advance, present),
      beat,
    });
    return { ...rewritten, over: present?.identity };
  } finally {
    await present?.close();
  }
}

/** What the file says of itself. The window is the last that was merged into it. */
function metadataOf({ source, stream, runId, spans }: Advance, present: PartitionFile | undefined) {
  const first = spans[0];
  const last = spans.at(-1);
  const window =
    first && last ? describeWindow({ start: first.start, end: last.end }) : present?.file.metadata[META.window];
  return {
    [META.source]: source,
    [META.stream]: stream,
    [META.run]: runId,
    ...(window !== undefined && { [META.window]: window }),
  };
}
