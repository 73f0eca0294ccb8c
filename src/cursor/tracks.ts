import type { Instant } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import type { Cursor } from './cursors.ts';
import type { Queryable } from './database.ts';
import type { Track } from './ledger.ts';
import { instantOf } from './sql.ts';

export interface KnownTrack extends Track, Cursor {
  updatedAt: Instant;
}

/** Every cursor of the state, whether or not the config still names its source and sink. */
export async function knownTracks(db: Queryable): Promise<KnownTrack[]> {
  type Found = { source: string; stream: StreamName; sink: string } & Record<'since' | 'updated', Instant> &
    Record<'through' | 'newest', Instant | null>;
  const rows = await db.query<Found>({
    text: `
      select source, stream, sink, ${instantOf('since')} as since, ${instantOf('complete_through')} as through,
        ${instantOf('newest_seen')} as newest, ${instantOf('updated_at')} as updated
      from tributary.cursors order by source, stream, sink`,
  });
  return rows.map(({ through, newest, updated, ...row }) => ({
    ...row,
    completeThrough: through ?? undefined,
    newestSeen: newest ?? undefined,
    updatedAt: updated,
  }));
}
