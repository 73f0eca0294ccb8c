import type { Instant } from '../model/instant.ts';
import type { Queryable } from './database.ts';
import { instantOf } from './sql.ts';

export const INCIDENT_KINDS = ['parked', 'late', 'uncertified'] as const;
export type IncidentKind = (typeof INCIDENT_KINDS)[number];

/** Something that somebody has to be told, as it is found. */
export interface Trouble {
  source: string;
  stream: string;
  kind: IncidentKind;
  message: string;
}

/** Trouble that is to be told now, or whose end is. */
export interface Incident extends Trouble {
  id: number;
  openedAt: Instant;
  /** Undefined while it lasts. */
  closedAt: Instant | undefined;
}

/** What is found now is opened once; what is no longer found is closed. Many workers may do this at the same time. */
export async function recordTroubles(db: Queryable, found: readonly Trouble[]): Promise<void> {
  const list = JSON.stringify(found);
  await db.query({
    text: `
      insert into tributary.incidents (source, stream, kind, message)
      select * from jsonb_to_recordset($1) as f (source text, stream text, kind text, message text)
      on conflict (source, stream, kind) where closed_at is null do nothing`,
    values: [list],
  });
  await db.query({
    text: `
      update tributary.incidents i set closed_at = now() where closed_at is null and not exists (
        select from jsonb_to_recordset($1) as f (source text, stream text, kind text)
        where (f.source, f.stream, f.kind) = (i.source, i.stream, i.kind))`,
    values: [list],
  });
}

/**
 * Takes what is still to be told. Taken means: nobody else tells it for a minute. Whoever dies before it was told leaves it
 * to the next. An incident that ended before anybody heard of it is told as what it was, then as over.
 */
export async function takeUntold(db: Queryable): Promise<Incident[]> {
  const rows = await db.query<Incident & { closedAt: Instant | null; told: boolean }>({
    text: `
      update tributary.incidents set claimed_until = clock_timestamp() + interval '1 minute'
      where (told_at is null or (closed_at is not null and recovery_told_at is null))
        and (claimed_until is null or claimed_until < clock_timestamp())
      returning id, source, stream, kind, message, ${instantOf('opened_at')} as "openedAt",
        ${instantOf('closed_at')} as "closedAt", told_at is not null as told`,
  });
  return rows.map(({ told, closedAt, ...rest }) => ({ ...rest, closedAt: told ? (closedAt ?? undefined) : undefined }));
}

/** It was told; what comes next of it may be told by anybody. */
export async function markTold(db: Queryable, { id, closedAt }: Incident): Promise<void> {
  await db.query({
    text: `
      update tributary.incidents set claimed_until = null,
        ${closedAt === undefined ? 'told_at' : 'recovery_told_at'} = now()
      where id = $1`,
    values: [id],
  });
}
