import type { Queryable } from '../../cursor/database.ts';
import type { Track } from '../../cursor/ledger.ts';
import type { FileColumn } from './format/index.ts';
import type { Lake } from './lake.ts';
import { fileName, filePath, type Partition, partitionAt } from './partition.ts';
import { openPartition, type PartitionFile } from './partition-file.ts';
import { type Edit, rewrite } from './rewrite.ts';
import { dropFile, dropKeys, findTrack, lockTrack, recordFile } from './whereabouts.ts';

/** What is to become of a file that stays where it is and gets no new rows. */
export interface Rework {
  columns: readonly FileColumn[];
  edits: ReadonlyMap<number, Edit>;
  /** Keys of events that leave the file. */
  dropped: readonly bigint[];
}

type Visit = (file: PartitionFile, tx: Queryable) => Promise<Rework | 'leave' | 'remove'>;

/** Visits every file of a track, each in a transaction of its own: a sync that wants to write waits for one file, not for all. */
export async function visitFiles(lake: Lake, track: Track, visit: Visit): Promise<void> {
  // A file that a killed writer left unfinished may hold what is to be erased, and perhaps no sync will ever come by.
  await lake.store.sweep(track.stream);
  for await (const { path } of lake.store.list(track.stream, fileName(track.source))) {
    const partition = partitionAt(lake.scheme, path);
    if (partition !== undefined) await visitFile(lake, track, partition, visit);
  }
}

export async function visitFile(lake: Lake, track: Track, partition: Partition, visit: Visit): Promise<void> {
  await lake.state.transaction(async (tx) => {
    await lockTrack(tx, track);
    const path = filePath(lake.scheme, track.stream, track.source, partition);
    const file = await openPartition(lake.store, path, track);
    if (!file) return;
    try {
      const wish = await visit(file, tx);
      if (wish !== 'leave') await fulfil(tx, lake, { file, partition, id: await findTrack(tx, track) }, wish);
    } finally {
      await file.close();
    }
  });
}

/** An index that lacks these changes is not wrong: it only says where to look, and no event is new. */
async function fulfil(
  tx: Queryable,
  lake: Lake,
  { file, partition, id }: { file: PartitionFile; partition: Partition; id: number | undefined },
  wish: Rework | 'remove',
): Promise<void> {
  const made = wish === 'remove' ? undefined : await remake(lake, file, wish);
  try {
    if (!made || wish === 'remove' || made.rows === 0) {
      await lake.store.remove(file.path, file.identity);
      if (id !== undefined) await dropFile(tx, id, partition);
      return;
    }
    const identity = await made.staged.publish(file.identity);
    if (id === undefined) return;
    await recordFile(tx, id, { ...made, partition, identity });
    await dropKeys(tx, id, partition, wish.dropped);
  } finally {
    await made?.staged.discard();
  }
}

const remake = (lake: Lake, present: PartitionFile, { columns, edits }: Rework) =>
  rewrite({
    store: lake.store,
    path: present.path,
    present,
    columns,
    edits,
    added: [],
    isFresh: true,
    compression: lake.compression,
    metadata: present.file.metadata,
    beat: async () => {},
  });
