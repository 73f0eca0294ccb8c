import { type Instant, toIso } from '../../model/instant.ts';
import type { Queryable } from '../database/index.ts';
import { type CountRows, recountRows, type Track } from './window-rows.ts';

/** A sink that keeps no old events: the ledger forgets them first, so that nobody is promised rows that are being deleted. */

const ofTrack = 'source = $1 and stream = $2 and sink = $3';
const valuesOf = ({ source, stream, sink }: Track, before: Instant): string[] => [source, stream, sink, toIso(before)];

/** The coverage begins at `before` from now on. */
export async function forgetBefore(tx: Queryable, track: Track, before: Instant, count: CountRows): Promise<void> {
  const values = valuesOf(track, before);
  await tx.query({ text: `delete from tributary.windows where ${ofTrack} and end_at <= $4`, values });
  await tx.query({ text: `delete from tributary.foreign_rows where ${ofTrack} and end_at <= $4`, values });
  const cut = await tx.query({
    text: `update tributary.windows set start_at = $4 where ${ofTrack} and start_at < $4 returning 1`,
    values,
  });
  if (cut.length > 0) await recountRows(tx, track, { start: before, end: before + 1 }, count);
  await tx.query({
    text: `
      update tributary.cursors set since = $4, updated_at = now(),
        complete_through = case when complete_through > $4 then complete_through end
      where ${ofTrack} and since < $4`,
    values,
  });
}

/** Events before this are gone from the sink. */
export async function writePruned(db: Queryable, track: Track, before: Instant): Promise<void> {
  await db.query({
    text: `
      insert into tributary.attestations (source, stream, sink, identity, pruned_to) values ($1, $2, $3, '', $4)
      on conflict (source, stream, sink) do update set pruned_to = excluded.pruned_to`,
    values: valuesOf(track, before),
  });
}
