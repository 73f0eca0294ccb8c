import { Fault } from '../model/errors.ts';
import { type Instant, toIso } from '../model/instant.ts';
import type { Queryable } from './database/index.ts';
import { isoOf, sql, storableJson, storableText } from './database/sql.ts';

/** A change that somebody asked for. Never put a secret or personal data in it: the table outlives both. */
export interface AuditEntry {
  /** The name of a token, or the user of the machine who ran the command. */
  actor: string;
  /** A verb and its object, such as `backfill.start` or `customer.forget`. */
  action: string;
  target?: string | undefined;
  /** The address that a request came from, or the host that the command ran on. */
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

/** Give it the transaction of the change where there is one: then either both happen or neither. */
export async function recordAudit(db: Queryable, entry: AuditEntry): Promise<void> {
  const { actor, action, target, from, detail = {} } = entry;
  // Names and addresses come with requests: they may hold what Postgres refuses, and the entry must be made all the same.
  const [who, what, which, origin] = [actor, action, target, from].map((text) => text && storableText(text));
  await db.query(sql`
    insert into tributary.audit (actor, action, target, origin, detail)
    values (${who}, ${what}, ${which}, ${origin}, ${storableJson(JSON.stringify(detail))})`);
}

/** The entry is made first: nothing is changed that the trail does not know of. What failed gets a second one, which says so. */
export async function audited<T>(db: Queryable, entry: AuditEntry, work: () => Promise<T>): Promise<T> {
  await recordAudit(db, entry);
  try {
    return await work();
  } catch (error) {
    const failed = error instanceof Fault ? error.message : 'a bug';
    // Recovery: none for what was asked. That it failed is told as far as the state can be written to.
    await recordAudit(db, { ...entry, detail: { ...entry.detail, failed } }).catch(() => {});
    throw error;
  }
}

/** The newest first. `before` is the id of the last entry of the page before. */
export async function listAudit(
  db: Queryable,
  { limit, before }: { limit: number; before?: string | undefined },
): Promise<AuditRecord[]> {
  // A number beyond bigint is beyond every entry there is.
  return db.query<AuditRecord>(sql`
    select id::text, ${isoOf('at')} as at, actor, action, target, origin as "from", detail from tributary.audit a
    where ${before}::numeric is null or a.id <= greatest(0, least(${before}::numeric - 1, 9223372036854775807))::bigint
    order by a.id desc limit ${limit}`);
}

/** `id` is a digest: the table must not hold anything that opens a session. */
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
