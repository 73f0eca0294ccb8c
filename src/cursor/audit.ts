import { Fault } from '../model/errors.ts';
import { type Instant, toIso } from '../model/instant.ts';
import type { Queryable } from './database/index.ts';
import { isoOf, sql, storableJson, storableText } from './database/sql.ts';

/** A change that somebody requested. Must not hold secrets or personal data: entries outlive both. */
export interface AuditEntry {
  /** The name of an API token, or the operating system user who ran the command. */
  actor: string;
  /** A verb and its object, such as `backfill.start` or `customer.forget`. */
  action: string;
  target?: string | undefined;
  /** The client address of the request, or the host that the command ran on. */
  from?: string | undefined;
  detail?: Readonly<Record<string, unknown>> | undefined;
}

export interface AuditRecord {
  id: string;
  /** ISO in UTC. */
  at: string;
  actor: string;
  action: string;
  target: string | null;
  from: string | null;
  detail: Record<string, unknown>;
}

/** Pass the transaction of the change if there is one, so that the change and its entry are atomic. */
export async function recordAudit(db: Queryable, entry: AuditEntry): Promise<void> {
  const { actor, action, target, from, detail = {} } = entry;
  // These texts come from requests and may hold characters that Postgres rejects; the entry must be written regardless.
  const [who, what, which, origin] = [actor, action, target, from].map((text) => text && storableText(text));
  await db.query(sql`
    insert into tributary.audit (actor, action, target, origin, detail)
    values (${who}, ${what}, ${which}, ${origin}, ${storableJson(JSON.stringify(detail))})`);
}

/** Writes the entry before the work, so that no change goes unrecorded, and a second entry if the work fails. */
export async function audited<T>(db: Queryable, entry: AuditEntry, work: () => Promise<T>): Promise<T> {
  await recordAudit(db, entry);
  try {
    return await work();
  } catch (error) {
    const failed = error instanceof Fault ? error.message : 'a bug';
    // Recovery: none for the work itself. The failure is recorded if the state database can be written to.
    await recordAudit(db, { ...entry, detail: { ...entry.detail, failed } }).catch(() => {});
    throw error;
  }
}

/** Newest first. `before` is the id of the last entry on the previous page. */
export async function listAudit(
  db: Queryable,
  { limit, before }: { limit: number; before?: string | undefined },
): Promise<AuditRecord[]> {
  // An id beyond bigint is larger than that of any entry.
  return db.query<AuditRecord>(sql`
    select id::text, ${isoOf('at')} as at, actor, action, target, origin as "from", detail from tributary.audit a
    where ${before}::numeric is null or a.id <= greatest(0, least(${before}::numeric - 1, 9223372036854775807))::bigint
    order by a.id desc limit ${limit}`);
}

/** `id` is a digest, so that the table holds nothing that could be used to open a session. */
export async function endSession(db: Queryable, id: string, expiresAt: Instant): Promise<void> {
  await db.query(sql`delete from tributary.ended_sessions where expires_at < now()`);
  await db.query(
    sql`insert into tributary.ended_sessions (id, expires_at) values (${id}, ${toIso(expiresAt)}) on conflict do nothing`,
  );
}

export async function readEndedSessions(db: Queryable): Promise<Set<string>> {
  const rows = await db.query<{ id: string }>(sql`select id from tributary.ended_sessions where expires_at > now()`);
  return new Set(rows.map(({ id }) => id));
}
