import type { Queryable } from '../../cursor/database/index.ts';
import type { Advance } from '../../cursor/ledger.ts';
import type { Value } from '../../model/columns.ts';
import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import { describeWindow, type Window } from '../../model/window.ts';
import { createSanitizer, newestById, type Sanitizer, UTF8_TEXT } from '../merge-rule.ts';
import type { Stored } from '../sink.ts';
import { addKeys, databaseNow, findHomes, keyOf, knownFiles, partitionsWithin, recordFile } from './event-index.ts';
import { filePath, type Lake, type Partition, partitionOf } from './lake.ts';
import { bookkeeping, createMergeRule } from './merge-row.ts';
import { columnsOf, META, openPartition, type PartitionFile, unitedColumns } from './partition-file.ts';
import { reconcile } from './reconcile.ts';
import { type Rewritten, rewrite } from './rewrite.ts';
import { ReplacedMeanwhile } from './store/store.ts';
import { editsOf, extractMoved, type Findings, type Incoming, rowChanges, survey } from './survey.ts';

/** Each attempt may find another file replaced. After this many, the error says that something keeps replacing them. */
const MOST_ATTEMPTS = 3;

interface MergeOptions {
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
 * Merges a batch into the files. First every file that may hold one of its events is read; then those in which something
 * is new or different are rewritten beside the current ones; when all are on disk, they are published one after the other.
 */
export async function mergeBatch(tx: Queryable, options: MergeOptions): Promise<Stored> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await mergeKnown(tx, options);
    } catch (error) {
      // Recovery: a file is not the one in the index. It was restored, or another state database writes here too. Nothing was
      // replaced yet: compare all files with the index and merge once more, up to the limit of attempts.
      if (!(error instanceof UnknownFile) || attempt === MOST_ATTEMPTS) throw error;
      await reconcile(tx, options.lake, options.advance, options.track);
    }
  }
}

async function mergeKnown(tx: Queryable, options: MergeOptions): Promise<Stored> {
  const { lake, track, stream, advance } = options;
  const now = await databaseNow(tx);
  const sanitizer = createSanitizer(stream, UTF8_TEXT);
  const incoming = readyRows(sanitizer, advance.source, options.rows, bookkeeping(now, advance.runId));
  const wholes = advance.spans.filter((span) => span.whole);
  const candidates = await candidatesIn(tx, track, incoming, wholes);
  const touched = new Set([...candidates.keys(), ...incoming.map(({ at }) => partitionOf(lake.scheme, at))]);
  const known = await knownFiles(tx, track, [...touched]);
  const { works, stored, changed } = await surveyAll(options, { incoming, candidates, wholes, known });
  const news = incoming.filter(({ id }) => !stored.has(id));
  for (const one of news) {
    const partition = partitionOf(lake.scheme, one.at);
    const work = works.get(partition) ?? workOn(options, partition, known.get(partition));
    work.added.push(one);
    works.set(partition, work);
  }
  await replaceFiles(tx, options, works, now);
  for (const [partition, { added }] of works) {
    await addKeys(tx, track, partition, added.map(keyOfIncoming));
  }
  return {
    receipt: { new: news.length, changed, unchanged: stored.size - changed, sanitized: sanitizer.sanitized() },
    ...rowChanges(
      news,
      [...works.values()].map(({ findings }) => findings),
    ),
  };
}

interface Sought {
  incoming: readonly Incoming[];
  candidates: ReadonlyMap<Partition, readonly Incoming[]>;
  wholes: readonly Window[];
  known: ReadonlyMap<Partition, string>;
}

/** Compares the batch with the rows of the files. */
async function surveyAll(
  options: MergeOptions,
  { incoming, candidates, wholes, known }: Sought,
): Promise<{ works: Map<Partition, Work>; stored: Set<string>; changed: number }> {
  const { lake, stream, advance, beat } = options;
  const rule = createMergeRule(stream, columnsOf(stream));
  const shown = new Set(incoming.map(({ id }) => id));
  const works = new Map<Partition, Work>();
  const stored = new Set<string>();
  let changed = 0;
  for (const [partition, sought] of candidates) {
    await beat();
    const work = workOn(options, partition, known.get(partition));
    const present = await openPartition(lake.store, work.path, advance);
    try {
      if (present?.identity !== work.known) throw new UnknownFile(work.path);
      if (!present) continue;
      const findings = await survey(present, { rule, candidates: sought, wholes, shown });
      for (const id of findings.found) stored.add(id);
      const changes = countOf(findings.changed) + countOf(findings.moved);
      changed += changes;
      if (changes + findings.missing.size > 0) works.set(partition, { ...work, findings });
    } finally {
      await present?.close();
    }
  }
  return { works, stored, changed };
}

const workOn = ({ lake, stream, advance }: MergeOptions, partition: Partition, known: string | undefined): Work => ({
  path: filePath(lake.scheme, stream.name, advance.source, partition),
  known,
  findings: undefined,
  added: [],
});

const keyOfIncoming = ({ key }: Incoming): bigint => key;

const countOf = (notes: Findings['changed']): number => [...notes.values()].reduce((sum, rows) => sum + rows.size, 0);

/** The files that may hold events of the batch; and those of windows that were read completely, to find vanished rows. */
export async function candidatesIn(
  db: Queryable,
  track: number,
  incoming: readonly Incoming[],
  wholes: readonly Window[],
): Promise<Map<Partition, Incoming[]>> {
  const homes = await findHomes(
    db,
    track,
    incoming.map(({ key }) => key),
  );
  const candidates = new Map<Partition, Incoming[]>(
    (await partitionsWithin(db, track, wholes)).map((partition) => [partition, []]),
  );
  for (const one of incoming) {
    for (const partition of homes.get(one.key) ?? []) {
      const known = candidates.get(partition);
      if (known) known.push(one);
      else candidates.set(partition, [one]);
    }
  }
  return candidates;
}

/** The distinct events of a batch as rows of a file, followed by the sink's own columns. */
export function readyRows(
  sanitizer: Sanitizer,
  source: string,
  rows: readonly Row[],
  behind: readonly Value[],
): Incoming[] {
  const distinct = newestById(rows);
  const ready: Incoming[] = [];
  const ids = distinct.entries();
  for (const values of sanitizer.all([...distinct.values()], [source])) {
    const [id, { at }] = ids.next().value as [string, Row];
    ready.push({ id, key: keyOf(id), at, row: [...values, ...behind] });
  }
  return ready;
}

/** The work for one partition. */
interface Work {
  path: string;
  /** The file in the index. Any other file may hold events that are not in the index. */
  known: string | undefined;
  /** What was found in it. */
  findings: Findings | undefined;
  added: Incoming[];
}

/** Thrown before anything is replaced: the file is not the one in the index. */
class UnknownFile extends ReplacedMeanwhile {}

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

/** All new files are on disk before the first is published. After an error, the rest are removed. */
async function replaceFiles(
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

/** The file's metadata. The window is the last one merged into it. */
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
