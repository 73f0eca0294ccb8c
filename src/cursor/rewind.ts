import { type Instant, toIso } from '../model/instant.ts';
import type { Queryable } from './database.ts';
import type { Track } from './ledger.ts';
import type { Sql } from './sql.ts';

/** Takes proofs back, so that the next sync reads again. Rows stay where they are. The caller holds the lease. */

/** Everything from `to` on counts as never read. At the very beginning nothing is left proven. */
export async function rewind(tx: Queryable, track: Track, to: Instant): Promise<void> {
  await tx.query(dropFrom(track, to));
  await tx.query(cutAt(track, to));
  await tx.query(lowerWatermark(track, to));
}

/** As if the stream had never been synced into this sink. */
export async function forgetTrack(tx: Queryable, track: Track): Promise<void> {
  for (const table of ['windows', 'cursors']) await tx.query(dropTrack(table, track));
}

const keyOf = ({ source, stream, sink }: Track): string[] => [source, stream, sink];

const dropFrom = (track: Track, to: Instant): Sql => ({
  text: 'delete from tributary.windows where source = $1 and stream = $2 and sink = $3 and start_at >= $4',
  values: [...keyOf(track), toIso(to)],
});

/** Its share of the time is the fairest guess of how many rows a piece of a window holds. */
const cutAt = (track: Track, to: Instant): Sql => ({
  text: `
    update tributary.windows set end_at = $4,
      rows = round(rows * extract(epoch from $4::timestamptz - start_at) / extract(epoch from end_at - start_at))
    where source = $1 and stream = $2 and sink = $3 and end_at > $4`,
  values: [...keyOf(track), toIso(to)],
});

const lowerWatermark = (track: Track, to: Instant): Sql => ({
  text: `
    update tributary.cursors
    set complete_through = case when $4::timestamptz > since then $4::timestamptz end, updated_at = now()
    where source = $1 and stream = $2 and sink = $3`,
  values: [...keyOf(track), toIso(to)],
});

const dropTrack = (table: string, track: Track): Sql => ({
  text: `delete from tributary.${table} where source = $1 and stream = $2 and sink = $3`,
  values: keyOf(track),
});
