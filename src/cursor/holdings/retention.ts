import { type Instant, toIso } from '../../model/instant.ts';
import type { Queryable } from '../database/index.ts';
import { sql } from '../database/sql.ts';
import { type CountRows, ofTrack, recountRows, type Track } from './window-rows.ts';

/** A sink that keeps no old events: the ledger forgets them first, so that nobody is promised rows that are being deleted. */

/** The coverage begins at `before` from now on. */
export async function forgetBefore(tx: Queryable, track: Track, before: Instant, count: CountRows): Promise<void> {
  const [ours, at] = [ofTrack(track), toIso(before)];
  await tx.query(sql`delete from tributary.windows where ${ours} and end_at <= ${at}`);
  await tx.query(sql`delete from tributary.foreign_rows where ${ours} and end_at <= ${at}`);
  const cut = await tx.query(
    sql`update tributary.windows set start_at = ${at} where ${ours} and start_at < ${at} returning 1`,
  );
  if (cut.length > 0) await recountRows(tx, track, { start: before, end: before + 1 }, count);
  await tx.query(sql`
    update tributary.cursors set since = ${at}, updated_at = now(),
      complete_through = case when complete_through > ${at} then complete_through end
    where ${ours} and since < ${at}`);
}

/** Events before this are gone from the sink. */
export async function writePruned(db: Queryable, { source, stream, sink }: Track, before: Instant): Promise<void> {
  await db.query(sql`
    insert into tributary.attestations (source, stream, sink, identity, pruned_to)
    values (${source}, ${stream}, ${sink}, '', ${toIso(before)})
    on conflict (source, stream, sink) do update set pruned_to = excluded.pruned_to`);
}
