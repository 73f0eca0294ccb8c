import type { Track } from '../../cursor/ledger.ts';
import type { Lake } from './lake.ts';
import { META } from './partition-file.ts';
import { visitFile } from './rework.ts';
import { findTrack, quietPartitions } from './whereabouts.ts';

/** Nobody who opened the version before is still about to read it; and late events have mostly come. */
const QUIET_SECONDS = 3600;
/** A run should end soon; the next one goes on. */
const MOST = 8;

/** Files of partitions that have come to rest are made anew without their version before: half the size, and nothing else changes. */
export async function tidy(
  lake: Lake,
  { source, stream }: Pick<Track, 'source' | 'stream'>,
  quietSeconds = QUIET_SECONDS,
): Promise<void> {
  const track = { sink: lake.name, stream, source };
  const id = await findTrack(lake.state, track);
  if (id === undefined) return;
  for (const partition of await quietPartitions(lake.state, id, { quietSeconds, most: MOST })) {
    await visitFile(lake, track, partition, async ({ file }) =>
      file.metadata[META.before] === 'yes' ? { columns: file.columns, edits: new Map(), dropped: [] } : 'leave',
    );
  }
}
