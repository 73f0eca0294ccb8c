import { type Instant, toIso } from '../model/instant.ts';
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

/** What somebody chose. What is left open means all of it. */
export const chooseTracks = (
  all: readonly KnownTrack[],
  {
    source,
    streams = [],
    sink,
  }: { source?: string | undefined; streams?: readonly StreamName[]; sink?: string | undefined },
): KnownTrack[] =>
  all.filter(
    (track) =>
      (streams.length === 0 || streams.includes(track.stream)) &&
      (source === undefined || track.source === source) &&
      (sink === undefined || track.sink === sink),
  );

/** For machines: moments are ISO texts, what is unknown is null. */
export interface TrackReport {
  source: string;
  stream: StreamName;
  sink: string;
  since: string;
  completeThrough: string | null;
  newestSeen: string | null;
  updatedAt: string;
}

export const reportTrack = ({ source, stream, sink, since, updatedAt, ...track }: KnownTrack): TrackReport => ({
  source,
  stream,
  sink,
  since: toIso(since),
  completeThrough: track.completeThrough === undefined ? null : toIso(track.completeThrough),
  newestSeen: track.newestSeen === undefined ? null : toIso(track.newestSeen),
  updatedAt: toIso(updatedAt),
});
