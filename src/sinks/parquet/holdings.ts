import type { Queryable } from '../../cursor/database/index.ts';
import { sql } from '../../cursor/database/sql.ts';
import { ofTrack, type Track } from '../../cursor/holdings/window-rows.ts';
import type { Instant } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import { inChange } from '../files/change.ts';
import { dropFile, knownFiles, trackLock } from '../files/event-index.ts';
import { type Held, UNSETTLED } from '../sink.ts';
import { filePath, type Lake, partitionWindow } from './lake.ts';
import { countLake } from './lake-files.ts';
import { reconcile, type Stray } from './reconcile.ts';

/** What the lake holds, by its files: people delete folders, restore older objects and put files of their own beside ours. */

interface TrackRow {
  id: number;
  changes: number;
  strays: Stray[];
  /** The files have not been listed for a day, or a writer was stopped in the middle. */
  due: boolean;
}

async function readTrack(db: Queryable, track: Track): Promise<TrackRow | undefined> {
  const [row] = await db.query<TrackRow>(sql`
    select id, changes, strays, unsettled or strays <> '[]' or listed_at is null or listed_at < now() - interval '1 day' as due
    from tributary.lake_tracks where ${ofTrack(track)}`);
  return row;
}

/** Which tracks this process has compared with their files. In a folder that is done once by each process, in a bucket once a day. */
export type Listings = Set<number>;

const isDue = ({ store }: Lake, { id, due }: TrackRow, listings: Listings): boolean =>
  due || (!store.isRemote && !listings.has(id));

/** Changes when a listing found other files than were written; with a question mark, the files have to be listed first. */
export async function identifyLake(db: Queryable, lake: Lake, track: Track, listings: Listings): Promise<string> {
  const row = await readTrack(db, track);
  if (!row) return `new${UNSETTLED}`;
  return `${row.changes}${isDue(lake, row, listings) ? UNSETTLED : ''}`;
}

export async function attestLake(
  lake: Lake,
  track: Track,
  windows: readonly Window[],
  listings: Listings,
): Promise<Held[]> {
  const before = await readTrack(lake.state, track);
  if (!before) return windows.map(() => ({ rows: 0 }));
  if (isDue(lake, before, listings)) {
    await inChange(lake.state, trackLock(track), () => reconcile(lake, track, before.id));
    listings.add(before.id);
  }
  const counts = await countLake(lake.state, lake, track, windows);
  const strays = (await readTrack(lake.state, track))?.strays ?? [];
  return windows.map(({ start, end }, i) => {
    const stray = strays.find((one) => one.start < end && one.end > start);
    return { rows: counts[i] ?? 0, ...(stray && { foreign: `${stray.what}; remove it, or run verify --repair` }) };
  });
}

export async function removeStrays(lake: Lake, track: Track, windows: readonly Window[]): Promise<void> {
  const row = await readTrack(lake.state, track);
  if (!row) return;
  await inChange(lake.state, trackLock(track), async () => {
    for (const { path, start, end } of row.strays)
      if (windows.some((window) => window.start < end && window.end > start)) await lake.store.remove(path);
    await reconcile(lake, track, row.id);
  });
}

const FILES_AT_ONCE = 24;

export async function pruneLake(lake: Lake, track: Track, before: Instant): Promise<boolean> {
  const { state, scheme, store } = lake;
  return inChange(state, trackLock(track), async (change) => {
    const id = (await readTrack(state, track))?.id;
    if (id === undefined) return false;
    const old = [...(await knownFiles(state, id)).keys()].filter((each) => partitionWindow(scheme, each).end <= before);
    old.sort((a, b) => a - b);
    for (const partition of old.slice(0, FILES_AT_ONCE)) {
      // If it stops here, the next listing finds that the file is gone, and the ledger no longer asks for its rows.
      await store.remove(filePath(scheme, track.stream, track.source, partition));
      change.later(dropFile(id, partition));
    }
    return old.length > FILES_AT_ONCE;
  });
}
