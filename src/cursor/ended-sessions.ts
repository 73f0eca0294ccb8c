import { type Instant, toIso } from '../model/instant.ts';
import type { Queryable } from './database.ts';

/** `id` is a digest: the table must not hold anything that opens a session. */
export async function endSession(db: Queryable, id: string, expiresAt: Instant): Promise<void> {
  await db.query({ text: 'delete from tributary.ended_sessions where expires_at < now()' });
  await db.query({
    text: 'insert into tributary.ended_sessions (id, expires_at) values ($1, $2) on conflict do nothing',
    values: [id, toIso(expiresAt)],
  });
}

export async function readEndedSessions(db: Queryable): Promise<Set<string>> {
  const rows = await db.query<{ id: string }>({
    text: 'select id from tributary.ended_sessions where expires_at > now()',
  });
  return new Set(rows.map(({ id }) => id));
}
