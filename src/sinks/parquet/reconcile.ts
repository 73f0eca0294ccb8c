import type { Queryable } from '../../cursor/database.ts';
import type { Track } from '../../cursor/ledger.ts';
import type { Lake } from './lake.ts';
import { fileName, type Partition, partitionAt } from './partition.ts';
import { META, openPartition, type PartitionFile, timesOf } from './partition-file.ts';
import { addKeys, dropFile, keyOf, knownFiles, recordFile } from './whereabouts.ts';

/**
 * Brings the index up to the files: after a commit that was cut short between the two, when the state was lost, or when somebody put
 * other files in their place. Only files that differ from what is known of them are read, and of those only the ids.
 */
export async function reconcile(tx: Queryable, lake: Lake, track: Track, id: number): Promise<void> {
  await lake.store.sweep(track.stream);
  const known = await knownFiles(tx, id);
  for await (const { path, identity } of lake.store.list(track.stream, fileName(track.source))) {
    const partition = partitionAt(lake.scheme, path);
    if (partition === undefined) continue;
    if (known.get(partition) !== identity) await index(tx, lake, track, id, path, partition);
    known.delete(partition);
  }
  for (const partition of known.keys()) await dropFile(tx, id, partition);
}

async function index(
  tx: Queryable,
  lake: Lake,
  track: Track,
  id: number,
  path: string,
  partition: Partition,
): Promise<void> {
  const file = await openPartition(lake.store, path, track);
  if (!file) return;
  try {
    for (const group of file.file.groups) {
      const ids = await file.rows(group, ['event_id']);
      await addKeys(
        tx,
        id,
        partition,
        ids.map(([eventId]) => keyOf(String(eventId))),
      );
    }
    await recordFile(tx, id, { partition, identity: file.identity, ...extentOf(file) });
  } finally {
    await file.close();
  }
}

function extentOf({ file }: PartitionFile) {
  const times = file.groups.map(timesOf);
  return {
    rows: file.rows,
    holdsBefore: file.metadata[META.before] === 'yes',
    oldest: times.length === 0 ? undefined : Math.min(...times.map(({ oldest }) => oldest)),
    newest: times.length === 0 ? undefined : Math.max(...times.map(({ newest }) => newest)),
  };
}
