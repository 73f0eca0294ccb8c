import { basename } from 'node:path/posix';
import { sql } from '../../cursor/database/sql.ts';
import type { Track } from '../../cursor/ledger.ts';
import { Fault } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import {
  dropFile,
  filesWithin,
  indexedFrom,
  insertKeys,
  keysIn,
  knownFiles,
  type Partition,
  recordFile,
  sourcesIn,
} from '../files/event-index.ts';
import { extentOf, idsIn, openPartition, type PartitionFile } from '../files/partition-file.ts';
import { fileName, type Listed, whileOpen } from '../files/store/store.ts';
import { readFooter } from './format/index.ts';
import { ALWAYS, filePath, type Lake, partitionAt, partitionWindow } from './lake.ts';
import { openOf } from './lake-files.ts';

/** A file that is not ours, or not where we wrote it. It is left alone, and its days are not complete. */
export interface Stray extends Window {
  path: string;
  partition: Partition;
  what: string;
}

/**
 * Compares the files with what was written: after a commit that was interrupted between the two, when the state was lost, or when somebody
 * changed them. Only files that differ are read, and of those only the ids.
 */
export async function reconcile(lake: Lake, track: Track, id: number): Promise<void> {
  const { state } = lake;
  await lake.store.removeLeftovers(track.stream, fileName(track.source));
  const known = await knownFiles(state, id);
  const neighbours = new Set((await sourcesIn(state, lake.name, track.stream)).map((source) => `${source}.parquet`));
  const strays: Stray[] = [];
  const changed: Partition[] = [];
  for await (const listed of lake.store.list(track.stream)) {
    const partition = partitionAt(lake.scheme, listed.path);
    const name = basename(listed.path);
    if (!name.endsWith('.parquet')) continue;
    if (partition === undefined || name.startsWith('.')) {
      strays.push(await misplaced(lake, listed));
      continue;
    }
    const strayed = (what: string): number =>
      strays.push({ path: listed.path, partition, what, ...partitionWindow(lake.scheme, partition) });
    if (name !== fileName(track.source)) {
      const why = neighbours.has(name) ? undefined : await strangeness(lake, track, listed);
      if (why !== undefined) strayed(why);
      continue;
    }
    if (known.get(partition) !== listed.identity) {
      changed.push(partition);
      const why = await index(lake, track, id, listed.path, partition);
      if (why !== undefined) strayed(`${why} (${at(listed)})`);
    }
    known.delete(partition);
  }
  for (const partition of known.keys()) await state.query(dropFile(id, partition));
  strays.push(...(await findCopies(lake, track, id, changed)));
  await state.query(sql`
    update tributary.lake_tracks set listed_at = now(), strays = ${JSON.stringify(strays)},
      changes = changes + ${changed.length + known.size > 0 ? 1 : 0} where id = ${id}`);
}

const at = ({ modifiedAt }: Listed): string => `written ${toIso(modifiedAt).slice(0, 16).replace('T', ' ')}`;

/** A file outside of the partitions: a glob finds it all the same. Of which days its rows are, only a file of ours tells. */
async function misplaced(lake: Lake, listed: Listed): Promise<Stray> {
  const what = `${listed.path} is not a file of the lake's layout (${at(listed)})`;
  const open = await lake.store.open(listed.path);
  try {
    const { oldest, newest } = open ? extentOf(await readFooter(open)) : {};
    const window = oldest === undefined || newest === undefined ? ALWAYS : { start: oldest, end: newest + 1 };
    return { path: listed.path, partition: NOWHERE, what, ...window };
  } catch (error) {
    // Recovery: a file that is not ours may hold rows of any day.
    if (!(error instanceof Fault)) throw error;
    return { path: listed.path, partition: NOWHERE, what, ...ALWAYS };
  } finally {
    await open?.close();
  }
}

const NOWHERE: Partition = -1;

/** Why a file of another name is not that of another source; undefined where it is. */
async function strangeness(lake: Lake, { stream }: Track, listed: Listed): Promise<string | undefined> {
  const source = basename(listed.path, '.parquet');
  try {
    const file = await openPartition(lake.store, listed.path, { source, stream });
    await file?.close();
    return undefined;
  } catch (error) {
    // Recovery: a file that cannot be read as ours is somebody else's; it is named and left alone.
    if (!(error instanceof Fault)) throw error;
    return `${listed.path} was not written by Tributary (${at(listed)})`;
  }
}

/** Returns why the file is not ours, if it is not. */
async function index(
  lake: Lake,
  track: Track,
  id: number,
  path: string,
  partition: Partition,
): Promise<string | undefined> {
  const { state, store } = lake;
  const isIndexed = partition >= (await indexedFrom(state, id));
  let found: { file: PartitionFile; keys: readonly bigint[] } | undefined;
  let why: string | undefined;
  try {
    const file = await openPartition(store, path, track);
    found = file && (await whileOpen(file, async () => ({ file, keys: isIndexed ? await keysIn(file) : [] })));
  } catch (error) {
    // Recovery: what cannot be read counts as not there; the file stays as it is, and is named.
    if (!(error instanceof Fault)) throw error;
    why = error.message;
  }
  await state.transaction(async (tx) => {
    await tx.query(dropFile(id, partition));
    if (!found) return;
    await tx.query(insertKeys(id, partition, found.keys));
    await tx.query(recordFile(id, { partition, identity: found.file.identity, ...extentOf(found.file.file) }));
  });
  return why;
}

/**
 * Files with events that another file has too: somebody copied a file, and a copy has the times of its original. After a crash that may be
 * ours, and the next commit heals it.
 */
async function findCopies(lake: Lake, track: Track, id: number, changed: readonly Partition[]): Promise<Stray[]> {
  const { state } = lake;
  const [before] = await state.query<{ unsettled: boolean; strays: Stray[] }>(
    sql`select unsettled, strays from tributary.lake_tracks where id = ${id}`,
  );
  if (!before || before.unsettled) return [];
  const suspects = new Set([...changed, ...before.strays.map(({ partition }) => partition)]);
  const files = suspects.size === 0 ? [] : await filesWithin(state, id, [ALWAYS]);
  const idsOf = async (partition: Partition): Promise<string[]> =>
    whileOpen(await openOf(lake, track, partition), async (file) => (file ? idsIn(file) : []));
  const copies: Stray[] = [];
  for (const { partition, oldest, newest } of files.filter((file) => suspects.has(file.partition))) {
    const alike = files.filter(
      (file) => file.oldest <= newest && file.newest >= oldest && file.partition !== partition,
    );
    const ids = new Set(alike.length === 0 ? [] : await idsOf(partition));
    const shared = new Set<string>();
    for (const file of alike) for (const id of await idsOf(file.partition)) if (ids.has(id)) shared.add(id);
    if (shared.size === 0) continue;
    const path = filePath(lake.scheme, track.stream, track.source, partition);
    const { start, end } = partitionWindow(lake.scheme, partition);
    const what = `${path} holds ${shared.size} events that another file holds too`;
    copies.push({ path, partition, what, start: Math.min(start, oldest), end: Math.max(end, newest + 1) });
  }
  return copies;
}
