import { basename } from 'node:path/posix';
import type { Queryable } from '../../cursor/database/index.ts';
import { sql } from '../../cursor/database/sql.ts';
import { type Feed, ofFeed } from '../../cursor/holdings/window-rows.ts';
import { Fault } from '../../model/errors.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import { inChange } from '../files/change.ts';
import {
  dropFile,
  feedLock,
  filesWithin,
  indexedFrom,
  insertKeys,
  keysIn,
  knownFiles,
  type Partition,
  recordFile,
  sourcesIn,
} from '../files/event-index.ts';
import { extentOf, idsIn, openPartition } from '../files/partition-file.ts';
import { fileName, type ListedFile, whileOpen } from '../files/store/store.ts';
import { type Held, UNSETTLED } from '../sink.ts';
import { readFooter } from './format/index.ts';
import { ALWAYS, filePath, type Lake, partitionAt, partitionWindow } from './lake.ts';
import { countLake, openOf } from './lake-files.ts';

/** What the lake holds, by its files: people delete folders, restore older objects and add files of their own. */

interface FeedRow {
  id: number;
  changes: number;
  foreignFiles: ForeignFile[];
  /** The files have not been listed for a day, or a writer was interrupted. */
  due: boolean;
}

async function readFeed(db: Queryable, feed: Feed): Promise<FeedRow | undefined> {
  const [row] = await db.query<FeedRow>(sql`
    select id, changes, strays as "foreignFiles", unsettled or strays <> '[]' or listed_at is null or listed_at < now() - interval '1 day' as due
    from tributary.lake_tracks where ${ofFeed(feed)}`);
  return row;
}

/** The feeds whose files this process has listed. A folder is listed once by each process, a bucket once a day. */
export type Listings = Set<number>;

const isDue = ({ store }: Lake, { id, due }: FeedRow, listings: Listings): boolean =>
  due || (!store.isRemote && !listings.has(id));

/** Changes when a listing finds other files than were written. Ends with a question mark if the files have to be listed first. */
export async function identifyLake(db: Queryable, lake: Lake, feed: Feed, listings: Listings): Promise<string> {
  const row = await readFeed(db, feed);
  if (!row) return `new${UNSETTLED}`;
  return `${row.changes}${isDue(lake, row, listings) ? UNSETTLED : ''}`;
}

export async function attestLake(lake: Lake, feed: Feed, windows: readonly Window[], listings: Listings) {
  const before = await readFeed(lake.state, feed);
  if (!before) return windows.map((): Held => ({ rows: 0 }));
  if (isDue(lake, before, listings)) {
    await inChange(lake.state, feedLock(feed), () => reconcile(lake, feed, before.id));
    listings.add(before.id);
  }
  const counts = await countLake(lake.state, lake, feed, windows);
  const foreignFiles = (await readFeed(lake.state, feed))?.foreignFiles ?? [];
  return windows.map(({ start, end }, i): Held => {
    const foreign = foreignFiles.find((one) => one.start < end && one.end > start);
    return { rows: counts[i] ?? 0, ...(foreign && { foreign: `${foreign.what}; remove it, or run verify --repair` }) };
  });
}

export async function removeForeignFiles(lake: Lake, feed: Feed, windows: readonly Window[]): Promise<void> {
  const row = await readFeed(lake.state, feed);
  if (!row) return;
  await inChange(lake.state, feedLock(feed), async () => {
    for (const { path, start, end } of row.foreignFiles)
      if (windows.some((window) => window.start < end && window.end > start)) await lake.store.remove(path);
    await reconcile(lake, feed, row.id);
  });
}

const FILES_AT_ONCE = 24;

export async function pruneLake(lake: Lake, feed: Feed, before: Instant): Promise<boolean> {
  const { state, scheme, store } = lake;
  return inChange(state, feedLock(feed), async (change) => {
    const id = (await readFeed(state, feed))?.id;
    if (id === undefined) return false;
    const old = [...(await knownFiles(state, id)).keys()].filter((each) => partitionWindow(scheme, each).end <= before);
    old.sort((a, b) => a - b);
    for (const partition of old.slice(0, FILES_AT_ONCE)) {
      // After a crash here, the next listing finds that the file is gone, and the ledger no longer expects its rows.
      await store.remove(filePath(scheme, feed.stream, feed.source, partition));
      change.later(dropFile(id, partition));
    }
    return old.length > FILES_AT_ONCE;
  });
}

/** A file that is not ours, or not where we wrote it. It stays as it is, and its days are not complete. */
interface ForeignFile extends Window {
  path: string;
  partition: Partition;
  what: string;
}

/** Updates the index and the list of foreign files after an interrupted commit, a lost state or changes by others. Reads changed files. */
export async function reconcile(lake: Lake, feed: Feed, id: number): Promise<void> {
  const { state } = lake;
  await lake.store.removeLeftovers(feed.stream, fileName(feed.source));
  const known = await knownFiles(state, id);
  const ownNames = new Set((await sourcesIn(state, lake.name, feed.stream)).map((source) => `${source}.parquet`));
  const foreignFiles: ForeignFile[] = [];
  const changed: Partition[] = [];
  for await (const listed of lake.store.list(feed.stream)) {
    const partition = partitionAt(lake.scheme, listed.path);
    const name = basename(listed.path);
    if (!name.endsWith('.parquet')) continue;
    if (partition === undefined || name.startsWith('.')) {
      foreignFiles.push(await misplacedFile(lake, listed));
      continue;
    }
    const addForeign = (what: string): number =>
      foreignFiles.push({ path: listed.path, partition, what, ...partitionWindow(lake.scheme, partition) });
    if (name !== fileName(feed.source)) {
      const why = ownNames.has(name) ? undefined : await foreignReason(lake, feed, listed);
      if (why !== undefined) addForeign(why);
      continue;
    }
    if (known.get(partition) !== listed.identity) {
      changed.push(partition);
      const why = await reindexFile(lake, feed, id, listed.path, partition);
      if (why !== undefined) addForeign(`${why} (${at(listed)})`);
    }
    known.delete(partition);
  }
  for (const partition of known.keys()) await state.query(dropFile(id, partition));
  foreignFiles.push(...(await findCopies(lake, feed, id, changed)));
  await state.query(sql`
    update tributary.lake_tracks set listed_at = now(), strays = ${JSON.stringify(foreignFiles)},
      changes = changes + ${changed.length + known.size > 0 ? 1 : 0} where id = ${id}`);
}

const at = ({ modifiedAt }: ListedFile): string => `written ${toIso(modifiedAt).slice(0, 16).replace('T', ' ')}`;

/** A file that cannot be read as ours is foreign: it counts as absent, is reported, and stays as it is. */
async function orFault<T>(work: () => Promise<T>): Promise<{ found?: T; fault?: Fault }> {
  try {
    return { found: await work() };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { fault: error };
  }
}

/** A file outside of the partitions, which a reader's glob matches too. Only a file of ours tells the days of its rows. */
async function misplacedFile({ store }: Lake, listed: ListedFile): Promise<ForeignFile> {
  const what = `${listed.path} is not a file of the lake's layout (${at(listed)})`;
  const { found } = await orFault(async () =>
    whileOpen(await store.open(listed.path), async (open) => (open ? extentOf(await readFooter(open)) : undefined)),
  );
  const { oldest, newest } = found ?? {};
  const window = oldest === undefined || newest === undefined ? ALWAYS : { start: oldest, end: newest + 1 };
  return { path: listed.path, partition: NO_PARTITION, what, ...window };
}

const NO_PARTITION: Partition = -1;

/** Why a file of another name is foreign; undefined if it belongs to another source of ours. */
async function foreignReason({ store }: Lake, { stream }: Feed, listed: ListedFile): Promise<string | undefined> {
  const of = { source: basename(listed.path, '.parquet'), stream };
  const { fault } = await orFault(async () => (await openPartition(store, listed.path, of))?.close());
  return fault && `${listed.path} was not written by Tributary (${at(listed)})`;
}

async function reindexFile({ state, store }: Lake, feed: Feed, id: number, path: string, partition: Partition) {
  const isIndexed = partition >= (await indexedFrom(state, id));
  const { found, fault } = await orFault(async () =>
    whileOpen(await openPartition(store, path, feed), async (file) => ({
      file,
      keys: file && isIndexed ? await keysIn(file) : [],
    })),
  );
  await state.transaction(async (tx) => {
    await tx.query(dropFile(id, partition));
    if (!found?.file) return;
    await tx.query(insertKeys(id, partition, found.keys));
    await tx.query(recordFile(id, { partition, identity: found.file.identity, ...extentOf(found.file.file) }));
  });
  return fault?.message;
}

/** Finds copies of files by time range, then by ids. After a crash both files may be ours, which the next commit repairs. */
async function findCopies(lake: Lake, feed: Feed, id: number, changed: readonly Partition[]): Promise<ForeignFile[]> {
  const { state } = lake;
  const [before] = await state.query<{ unsettled: boolean; foreignFiles: ForeignFile[] }>(
    sql`select unsettled, strays as "foreignFiles" from tributary.lake_tracks where id = ${id}`,
  );
  if (!before || before.unsettled) return [];
  const suspects = new Set([...changed, ...before.foreignFiles.map(({ partition }) => partition)]);
  const files = suspects.size === 0 ? [] : await filesWithin(state, id, [ALWAYS]);
  const idsOf = async (partition: Partition): Promise<string[]> =>
    whileOpen(await openOf(lake, feed, partition), async (file) => (file ? idsIn(file) : []));
  const copies: ForeignFile[] = [];
  for (const { partition, oldest, newest } of files.filter((file) => suspects.has(file.partition))) {
    const alike = files.filter(
      (file) => file.oldest <= newest && file.newest >= oldest && file.partition !== partition,
    );
    const ids = new Set(alike.length === 0 ? [] : await idsOf(partition));
    const shared = new Set<string>();
    for (const file of alike) for (const id of await idsOf(file.partition)) if (ids.has(id)) shared.add(id);
    if (shared.size === 0) continue;
    const path = filePath(lake.scheme, feed.stream, feed.source, partition);
    const { start, end } = partitionWindow(lake.scheme, partition);
    const what = `${path} holds ${shared.size} events that another file holds too`;
    copies.push({ path, partition, what, start: Math.min(start, oldest), end: Math.max(end, newest + 1) });
  }
  return copies;
}
