import type { Track } from '../../cursor/ledger.ts';
import type { Instant } from '../../model/instant.ts';
import { dropFile, findTrack, knownFiles, lockTrack } from './event-index.ts';
import { filePath, type Lake, partitionWindow } from './lake.ts';

const FILES_AT_ONCE = 24;

/** Deletes files of partitions that end before a moment. */
export async function pruneLake(lake: Lake, track: Track, before: Instant): Promise<boolean> {
  const { state, scheme, store } = lake;
  return state.transaction(async (tx) => {
    await lockTrack(tx, track);
    const id = await findTrack(tx, track);
    if (id === undefined) return false;
    const old = [...(await knownFiles(tx, id)).keys()].filter((each) => partitionWindow(scheme, each).end <= before);
    old.sort((a, b) => a - b);
    for (const partition of old.slice(0, FILES_AT_ONCE)) {
      // If it stops here, the next listing finds that the file is gone, and the ledger no longer asks for its rows.
      await store.delete(filePath(scheme, track.stream, track.source, partition));
      await dropFile(tx, id, partition);
    }
    return old.length > FILES_AT_ONCE;
  });
}
