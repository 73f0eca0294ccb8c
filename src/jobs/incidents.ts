import type { Queryable } from '../cursor/database/index.ts';
import { instantOf, raw, sql } from '../cursor/database/sql.ts';
import type { Instant } from '../model/instant.ts';

/** An incident leads to one alert when it opens and one when it closes, regardless of how many workers run. */

export const INCIDENT_KINDS = ['parked', 'failing', 'late', 'uncertified', 'sink_changed'] as const;
export type IncidentKind = (typeof INCIDENT_KINDS)[number];

export interface Trouble {
  source: string;
  stream: string;
  kind: IncidentKind;
  message: string;
}

export interface Incident extends Trouble {
  id: number;
  openedAt: Instant;
  closedAt: Instant | undefined;
}

/** `found` is the full list of current troubles: open incidents that are not in it are closed. Safe with many workers. */
export async function recordTroubles(db: Queryable, found: readonly Trouble[]): Promise<void> {
  await open(db, found);
  await db.query(sql`
    update tributary.incidents i set closed_at = now() where closed_at is null and not ${raw(OF_A_WORKER)} and not exists (
      select from jsonb_to_recordset(${JSON.stringify(found)}) as f (source text, stream text, kind text)
      where (f.source, f.stream, f.kind) = (i.source, i.stream, i.kind))`);
}

/** The incident for failures of a worker's own upkeep, which belong to no stream. */
const WORKER = { source: 'worker', stream: '*', kind: 'failing' } as const;
const OF_A_WORKER = `(source, stream, kind) = ('${WORKER.source}', '${WORKER.stream}', '${WORKER.kind}')`;

/** Opens or, without a message, closes the incident. Only the failing worker can close it, or one that starts, in case that one died. */
export async function recordWorkerTrouble(db: Queryable, message: string | undefined): Promise<void> {
  if (message !== undefined) return open(db, [{ ...WORKER, message }]);
  await db.query(sql`update tributary.incidents set closed_at = now() where closed_at is null and ${raw(OF_A_WORKER)}`);
}

/** An incident that is already open gets the new message. */
async function open(db: Queryable, troubles: readonly Trouble[]): Promise<void> {
  await db.query(sql`
    insert into tributary.incidents (source, stream, kind, message)
    select * from jsonb_to_recordset(${JSON.stringify(troubles)}) as f (source text, stream text, kind text, message text)
    on conflict (source, stream, kind) where closed_at is null do update set message = excluded.message`);
}

/** A claim expires after a minute, in case this worker dies. An incident that closed unsent is sent as opened, then as closed. */
export async function claimUnsent(db: Queryable): Promise<Incident[]> {
  const rows = await db.query<Incident & { closedAt: Instant | null; wasSent: boolean }>(sql`
    update tributary.incidents set claimed_until = clock_timestamp() + interval '1 minute'
    where (told_at is null or (closed_at is not null and recovery_told_at is null))
      and (claimed_until is null or claimed_until < clock_timestamp())
    returning id, source, stream, kind, message, ${instantOf('opened_at')} as "openedAt",
      ${instantOf('closed_at')} as "closedAt", told_at is not null as "wasSent"`);
  return rows.map(({ wasSent, closedAt, ...rest }) => ({
    ...rest,
    closedAt: wasSent ? (closedAt ?? undefined) : undefined,
  }));
}

/** Records the delivery and releases the claim: any worker may send the next alert of this incident. */
export async function markSent(db: Queryable, { id, closedAt }: Incident): Promise<void> {
  await db.query(sql`
    update tributary.incidents set claimed_until = null,
      ${raw(closedAt === undefined ? 'told_at' : 'recovery_told_at')} = now()
    where id = ${id}`);
}
