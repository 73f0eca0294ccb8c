import { basename } from 'node:path/posix';
import { readEvolved } from '../../cursor/columns.ts';
import type { Feed } from '../../cursor/ledger.ts';
import { evolvedStream } from '../../model/evolution.ts';
import { STREAM_NAMES, STREAMS, type Stream, type StreamName } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { type Change, inChange } from '../files/change.ts';
import {
  databaseNow,
  dropFeed,
  dropFile,
  feedLock,
  findFeed,
  type Partition,
  quietPartitions,
  recordFile,
  sourcesIn,
} from '../files/event-index.ts';
import { extentOf, META, type PartitionFile, widestColumns } from '../files/partition-file.ts';
import { eraseIn, type Rework, recordRework, removeMoved, type Visit, victimOf } from '../files/rework.ts';
import { fileName, whileOpen, whileStaged } from '../files/store/store.ts';
import type { Erasure, Rewrites } from '../sink.ts';
import { hideCoverage, shownColumns } from './catalog.ts';
import { type FileColumn, fitsSchema } from './format/index.ts';
import { ALWAYS, type Lake, partitionAt } from './lake.ts';
import { filesIn, openOf, writeNext } from './lake-files.ts';
import { eraseLinks } from './links.ts';

/** Visits every file of a feed, taking the lock for each, so that a sync waits for one file, not for all. */
async function visitFiles(lake: Lake, feed: Feed, visit: Visit<Rework | 'remove'>): Promise<void> {
  // A temporary file of a killed writer may hold data to be erased, and a later sync might not remove it.
  await inChange(lake.state, feedLock(feed), () => lake.store.removeLeftovers(feed.stream, fileName(feed.source)));
  for await (const { path } of lake.store.list(feed.stream)) {
    const partition = partitionAt(lake.scheme, path);
    if (partition !== undefined && basename(path) === fileName(feed.source))
      await visitFile(lake, feed, partition, visit);
  }
}

async function visitFile(lake: Lake, feed: Feed, partition: Partition, visit: Visit<Rework | 'remove'>) {
  const { state, store } = lake;
  const work = async (change: Change, present: PartitionFile): Promise<void> => {
    const decision = await visit(present);
    if (decision === 'leave') return;
    const id = await findFeed(state, feed);
    const { path, identity } = present;
    const { columns, metadata } = present.file;
    const next = decision !== 'remove' && { columns, ...decision, path, present, isFresh: true, metadata };
    const made = next ? await writeNext(lake, next) : undefined;
    if (made) {
      const published = await whileStaged(made.staged, () => made.staged.publish(identity));
      if (id !== undefined) change.later(recordFile(id, { partition, identity: published, ...extentOf(made.file) }));
    } else {
      await store.remove(path, identity);
      if (id !== undefined) change.later(dropFile(id, partition));
    }
    if (decision !== 'remove') recordRework(change, feed, { id, partition }, decision);
  };
  await inChange(state, feedLock(feed), async (change) =>
    whileOpen(await openOf(lake, feed, partition), async (file) => file && work(change, file)),
  );
}

/** After this long no reader uses the previous version any more, and most late events have come. */
const QUIET_SECONDS = 3600;
const MOST = 8;

/** Rewrites files of quiet partitions without their previous version, which halves their size. */
export async function tidy(
  lake: Lake,
  { source, stream }: Pick<Feed, 'source' | 'stream'>,
  quietSeconds = QUIET_SECONDS,
): Promise<void> {
  const feed = { sink: lake.name, stream, source };
  const id = await findFeed(lake.state, feed);
  if (id === undefined) return;
  for (const { partition } of await lake.state.query<{ partition: Partition }>(
    quietPartitions(id, quietSeconds, MOST),
  )) {
    await visitFile(lake, feed, partition, async ({ file }) => (file.metadata[META.before] === 'yes' ? {} : 'leave'));
  }
}

/** Rewrites files that were written with other columns: adds the current columns as nulls and widens the kinds. */
export async function rewriteLake(lake: Lake, streams: readonly StreamName[]): Promise<Rewrites> {
  const done: Rewrites = {};
  for (const name of streams)
    done[name] = await rewriteStream(lake, evolvedStream(STREAMS[name], await readEvolved(lake.state, name)));
  return done;
}

async function rewriteStream(
  lake: Lake,
  stream: Stream,
  isWanted: (columns: readonly FileColumn[]) => boolean = () => true,
): Promise<NonNullable<Rewrites[StreamName]>> {
  const count = { files: 0, rewritten: 0, rows: 0 };
  for (const source of await sourcesIn(lake.state, lake.name, stream.name)) {
    await visitFiles(lake, { sink: lake.name, stream: stream.name, source }, async ({ file }) => {
      const columns = widestColumns(stream, file.columns);
      count.files += 1;
      if (fitsSchema(file, columns) || !isWanted(file.columns)) return 'leave';
      count.rewritten += 1;
      count.rows += file.rows;
      return { columns };
    });
  }
  return count;
}

/** Rewrites files before a text column becomes JSON: readers that union files by name would parse the old text as JSON, and fail. */
export async function makeJson(lake: Lake, stream: Stream): Promise<void> {
  // A declared column never had another kind.
  const declared = new Set(STREAMS[stream.name].columns.map(({ name }) => name));
  const isJson = new Set(
    stream.columns.flatMap(({ name, kind }) => (kind === 'json' && !declared.has(name) ? [name] : [])),
  );
  if (isJson.size === 0) return;
  const hasText = (columns: readonly FileColumn[]): boolean =>
    columns.some(({ name, kind }) => kind === 'text' && isJson.has(name));
  // If the catalogue already says JSON, no file has text.
  if (hasText(await shownColumns(lake, stream.name))) await rewriteStream(lake, stream, hasText);
}

export async function removeMovedRows(lake: Lake, feed: Feed, window: Window): Promise<void> {
  const files = await filesIn(lake.state, lake, feed, [ALWAYS]);
  await removeMoved(files, window, ({ partition }, visit) => visitFile(lake, feed, partition, visit));
}

/** Rewrites only the files that hold the data. Returns the number of affected rows by file. */
export async function erase(lake: Lake, erasure: Erasure): Promise<Record<string, number>> {
  const touched = erasure.kind === 'source' ? await eraseLinks(lake, erasure.source) : {};
  for (const stream of STREAM_NAMES) {
    const feed = { sink: lake.name, stream, source: erasure.source };
    const victim = victimOf(erasure, stream);
    if (victim === undefined) continue;
    // Before the first file is removed: after a crash, the published coverage must not claim that the remaining files are complete.
    if (victim === 'all') await hideCoverage(lake, feed);
    const now = await databaseNow(lake.state);
    await visitFiles(lake, feed, async (file) => {
      const all = { rework: 'remove' as const, rows: file.file.rows };
      const { rework, rows } = victim === 'all' ? all : await eraseIn(file, victim, now);
      if (rows > 0) touched[file.path] = rows;
      return rework;
    });
    const id = victim === 'all' ? await findFeed(lake.state, feed) : undefined;
    if (id !== undefined) await inChange(lake.state, feedLock(feed), async (change) => change.later(dropFeed(id)));
  }
  return touched;
}
