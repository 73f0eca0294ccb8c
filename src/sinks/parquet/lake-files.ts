import type { Queryable } from '../../cursor/database/index.ts';
import type { Advance, Feed } from '../../cursor/ledger.ts';
import type { Row } from '../../model/flatten.ts';
import { EARLIEST, type Instant, LATEST } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import { describeWindow, type Window } from '../../model/window.ts';
import type { Change } from '../files/change.ts';
import { editsOf, extractMoved, type Findings, type Incoming } from '../files/compare-rows.ts';
import {
  addKeys,
  filesBeforeIndex,
  filesWithin,
  findFeed,
  insertKeys,
  keysIn,
  knownFiles,
  type Partition,
  recordFile,
} from '../files/event-index.ts';
import { groupBy } from '../files/group-by.ts';
import { createLayout, freshLayout, planSegments, type Segment } from '../files/layout.ts';
import { addSought, compareFiles, type Files, type Located, locateEvents, type WritableFiles } from '../files/merge.ts';
import { createMergeRule } from '../files/merge-row.ts';
import {
  columnsOf,
  extentOf,
  type LakeRow,
  META,
  openPartition,
  type PartitionFile,
  schemaVersion,
  timesOf,
  unitedColumns,
} from '../files/partition-file.ts';
import { type Counted, countRows, readFiles } from '../files/read.ts';
import { ReplacedMeanwhile, whileOpen } from '../files/store/store.ts';
import { type Edits, inOrder, piecesOf, writeFile } from '../files/write-file.ts';
import type { Comparison, Difference } from '../sink.ts';
import { type FileColumn, fitsSchema, type ParquetFile } from './format/index.ts';
import { filePath, type Lake, partitionOf, partitionWindow, type Scheme } from './lake.ts';

export const openOf = (lake: Lake, { stream, source }: Omit<Feed, 'sink'>, partition: Partition) =>
  openPartition(lake.store, filePath(lake.scheme, stream, source, partition), { source, stream });

type Open = (partition: Partition) => Promise<PartitionFile | undefined>;

/** The files that may hold events of the batch, and those of completely read windows, to find vanished rows. */
const filesOf = ({ scheme, state }: Lake, feed: number, stream: Stream, open: Open): Files<Partition> => ({
  columns: columnsOf(stream),
  async find(incoming, fullWindows) {
    const located = await locateEvents(state, feed, incoming);
    await addBeforeIndex(state, scheme, feed, located);
    for (const { partition } of await filesWithin(state, feed, fullWindows)) addSought(located.sought, partition, []);
    return [...located.sought].map(([file, sought]) => ({ file, sought, fullWindows, open: () => open(file) }));
  },
});

/** Finds events older than the index by time: in the file of their day, and in files that also hold moved events of other days. */
async function addBeforeIndex(db: Queryable, scheme: Scheme, feed: number, located: Located): Promise<void> {
  const { sought, others, from } = located;
  // A millisecond more on both sides: times have microseconds, and a file's bounds are rounded by the database.
  const window = { start: Number.POSITIVE_INFINITY, end: Number.NEGATIVE_INFINITY };
  for (const { at } of others) {
    window.start = Math.min(window.start, Math.max(EARLIEST, at - 1));
    window.end = Math.max(window.end, Math.min(LATEST, at + 1));
  }
  if (others.length === 0) return;
  const byPartition = groupBy(others, ({ at }) => partitionOf(scheme, at));
  for (const { partition, oldest, newest } of await filesBeforeIndex(db, feed, from, window)) {
    const { start, end } = partitionWindow(scheme, partition);
    const isOfOneDay = oldest >= start && newest < end;
    const moved = isOfOneDay ? [] : others.filter(({ at }) => at >= oldest - 1 && at <= newest + 1);
    const events = [...(byPartition.get(partition) ?? []), ...moved];
    if (events.length > 0) addSought(sought, partition, events);
  }
}

export async function filesIn(db: Queryable, lake: Lake, feed: Feed, windows: readonly Window[]) {
  const id = await findFeed(db, feed);
  const files = id === undefined ? [] : await filesWithin(db, id, windows);
  return files.map((file) => ({ ...file, open: () => openOf(lake, feed, file.partition) }) satisfies Counted);
}

export function readLake(lake: Lake, stream: Stream, source: string, window: Window): AsyncGenerator<Row[]> {
  const feed = { sink: lake.name, stream: stream.name, source };
  return readFiles(stream, window, (day) => filesIn(lake.state, lake, feed, [day]));
}

export const countLake = async (db: Queryable, lake: Lake, feed: Feed, windows: readonly Window[]) =>
  countRows(await filesIn(db, lake, feed, windows), windows);

export async function compareLake(lake: Lake, comparison: Comparison): Promise<Difference[]> {
  const { stream, source } = comparison;
  const feed = { sink: lake.name, stream: stream.name, source };
  const id = await findFeed(lake.state, feed);
  const open: Open = (partition) => openOf(lake, feed, partition);
  return compareFiles(comparison, id === undefined ? undefined : filesOf(lake, id, stream, open));
}

/** Thrown before anything is replaced: the file is not the one that the index knows, and may hold events that are not in the index. */
export class UnknownFile extends ReplacedMeanwhile {}

interface Writing {
  lake: Lake;
  feed: number;
  stream: Stream;
  advance: Advance;
}

async function openKnown({ lake, feed, advance }: Writing, partition: Partition): Promise<PartitionFile | undefined> {
  const present = await openOf(lake, advance, partition);
  if (present?.identity === (await knownFiles(lake.state, feed, partition)).get(partition)) return present;
  await present?.close();
  throw new UnknownFile(filePath(lake.scheme, advance.stream, advance.source, partition));
}

/** Adds the events of a range of partitions to the index. */
export async function indexLake(of: Writing, from: Partition, end: Partition): Promise<void> {
  const { state } = of.lake;
  for (const partition of (await knownFiles(state, of.feed)).keys()) {
    if (partition < from || partition >= end) continue;
    const present = await openKnown(of, partition);
    if (present) await state.query(insertKeys(of.feed, partition, await whileOpen(present, keysIn)));
  }
}

/** `filesOf` for a merge: writes new files beside the current ones and, when all are on disk, publishes one after the other. */
export const writableLake = (change: Change, of: Writing): WritableFiles<Partition> => ({
  ...filesOf(of.lake, of.feed, of.stream, (partition) => openKnown(of, partition)),
  async write({ works, newEvents, now }) {
    const nexts = new Map<Partition, Next>(works.map(({ target, findings }) => [target.file, { findings, added: [] }]));
    for (const one of newEvents) {
      const partition = partitionOf(of.lake.scheme, one.at);
      const next = nexts.get(partition) ?? { findings: undefined, added: [] };
      next.added.push(one);
      nexts.set(partition, next);
    }
    await replaceFiles(change, of, nexts, now);
    for (const [partition, { added }] of nexts) {
      const keys = added.map(({ key }) => key);
      if (keys.length > 0) change.later(addKeys(of.feed, partition, keys));
    }
  },
});

interface Next {
  findings: Findings | undefined;
  added: Incoming[];
}

/** All new files are on disk before the first is published. After an error, the unpublished ones are removed. */
async function replaceFiles(change: Change, of: Writing, nexts: Map<Partition, Next>, now: Instant): Promise<void> {
  const ready: Array<Awaited<ReturnType<typeof prepareFile>>> = [];
  try {
    for (const [partition, next] of nexts) ready.push(await prepareFile(of, partition, next, now));
    for (const { staged, over, partition, file } of ready) {
      // A suspended process may have lost its locks. Changes by others from here on show in the file's identity.
      await change.check();
      const identity = await staged.publish(over);
      change.later(recordFile(of.feed, { partition, identity, ...extentOf(file) }));
    }
  } finally {
    for (const { staged } of ready) await staged.discard();
  }
}

async function prepareFile(of: Writing, partition: Partition, { findings, added }: Next, now: Instant) {
  const { lake, stream, advance } = of;
  return whileOpen(await openKnown(of, partition), async (present) => {
    const columns = present ? unitedColumns(stream, present.file.columns) : columnsOf(stream);
    const rule = createMergeRule(stream, columns);
    const moved = present && findings ? await extractMoved(present, findings, rule, columns) : [];
    const made = await writeNext(lake, {
      path: filePath(lake.scheme, stream.name, advance.source, partition),
      present,
      columns,
      edits: findings && editsOf(findings, rule, columns, now),
      added: [...moved, ...added].map(({ row }) => row),
      metadata: metadataOf(advance, present),
    });
    if (!made) throw new Error('a merge must not remove the last row');
    return { ...made, partition, over: present?.identity };
  });
}

/** The file's metadata, with the last window merged into it. */
function metadataOf({ source, stream, runId, spans }: Advance, present: PartitionFile | undefined) {
  const [first, last] = [spans[0], spans.at(-1)];
  const window =
    first && last ? describeWindow({ start: first.start, end: last.end }) : present?.file.metadata[META.window];
  return {
    [META.source]: source,
    [META.stream]: stream,
    [META.run]: runId,
    ...(window !== undefined && { [META.window]: window }),
  };
}

interface NextFile {
  path: string;
  present: PartitionFile | undefined;
  columns: readonly FileColumn[];
  edits?: Edits | undefined;
  added?: readonly LakeRow[];
  /** All rows of the new file, instead of merging `added` and `edits`: for rows without a time. */
  all?: readonly LakeRow[];
  /** Whether the new file must not contain its previous version. */
  isFresh?: boolean;
  metadata: Readonly<Record<string, string>>;
}

/** Writes the next version of a file and reads it back, without publishing it. Undefined if no row is left. */
export async function writeNext(lake: Lake, options: NextFile) {
  const { present, columns } = options;
  const segments = options.all ? [] : segmentsOf(options);
  const copied = new Set(segments.flatMap((segment) => ('copy' in segment ? [segment.copy] : [])));
  const layout = present && !options.isFresh ? createLayout(present, (i) => copied.has(i)) : freshLayout();
  // The schema, and whether the file contains its previous version, which may hold data to be erased.
  const marks = { [META.schema]: schemaVersion(columns), [META.before]: layout.kept.length > 0 ? 'yes' : 'no' };
  const staged = await lake.store.stage(options.path);
  let file: ParquetFile | undefined;
  try {
    const next = {
      columns,
      compression: lake.compression,
      metadata: { ...options.metadata, ...marks },
      ...(present && { around: { layout, present } }),
    };
    file = await writeFile(staged, next, options.all ? [{ rows: options.all }] : piecesOf(options, segments));
    return file && { staged, file };
  } finally {
    if (!file) await staged.discard();
  }
}

function segmentsOf({ present, columns, edits, added = [] }: NextFile): Segment<LakeRow>[] {
  const isSameShape = present !== undefined && fitsSchema(present.file, columns);
  const time = columns.findIndex(({ name }) => name === 'timestamp');
  return planSegments(
    (present?.file.groups ?? []).map((group, i) => ({
      rows: group.rows,
      ...timesOf(group),
      isTouched: edits?.has(i) || !isSameShape,
    })),
    [...added].sort(inOrder(columns)).map((row) => ({ at: Number(row[time]), row })),
  );
}
