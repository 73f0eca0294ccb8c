import { createHash } from 'node:crypto';
import { createMentions } from '../model/forgotten.ts';
import { isObject, stringifyJson } from '../model/json.ts';
import { createRedact, DEFAULT_PRIVACY } from '../model/privacy.ts';
import type { StreamName } from '../model/streams.ts';
import type { Queryable } from './database/index.ts';
import { isoOf, type Sql, sql, storableText } from './database/sql.ts';
import { readForgotten } from './forgotten.ts';

export interface Rejected {
  record: unknown;
  reason: string;
}

/** The reader has already applied the privacy settings; other callers must not store a link's password either. */
const redact = createRedact(DEFAULT_PRIVACY);

/** Stores each record once, however often it is read. Written in the transaction of its batch, so that neither is lost. */
export async function quarantine(
  tx: Queryable,
  origin: { source: string; stream: StreamName; runId: string },
  rejected: readonly Rejected[],
): Promise<void> {
  if (rejected.length === 0) return;
  const isForgotten = createMentions(await readForgotten(tx, origin.source));
  for (const { record, reason } of rejected) {
    const kept = redact(record);
    if (isForgotten(kept)) continue;
    // Stored as text, because jsonb may reject the very thing that makes the record unusable.
    await tx.query(sql`
      insert into tributary.quarantine as q (source, stream, digest, reason, record, run_id)
      values (${origin.source}, ${origin.stream}, ${digestOf(kept)}, ${storableText(reason)}, ${textOf(kept)}, ${origin.runId})
      on conflict (source, stream, digest) do update
        set reason = excluded.reason, record = excluded.record, last_at = now(), run_id = excluded.run_id`);
  }
}

/** Only the ids of link and customer count: their counters change, so that the record would be stored again at every poll. */
function digestOf(record: unknown): string {
  const own = isObject(record) ? { ...record, link: idOf(record.link), customer: idOf(record.customer) } : record;
  return createHash('sha256').update(textOf(own)).digest('hex');
}

const idOf = (joined: unknown): unknown => (isObject(joined) && 'id' in joined ? joined.id : joined);

const textOf = (value: unknown): string => storableText(stringifyJson(value) ?? 'null');

/** For display, stricter than the privacy settings: screens are shared, and their text is pasted into tickets. */
export const masked = createRedact({ linkPassword: 'drop', ip: 'drop', customer: 'drop' });

export interface Quarantined {
  id: number;
  source: string;
  stream: StreamName;
  reason: string;
  record: string;
  runId: string;
  /** ISO in UTC. */
  firstAt: string;
  lastAt: string;
}

interface QuarantineFilter {
  ids?: readonly number[] | undefined;
  source?: string | undefined;
  stream?: string | undefined;
  /** The id of the last record on the previous page: only records after it are listed. */
  before?: number | undefined;
  limit?: number | undefined;
}

export const listQuarantined = (db: Queryable, filter: QuarantineFilter): Promise<Quarantined[]> =>
  db.query<Quarantined>(sql`
    select id, source, stream, reason, record, run_id as "runId",
      ${isoOf('first_at')} as "firstAt", ${isoOf('last_at')} as "lastAt"
    from tributary.quarantine ${matching(filter)} and (${filter.before}::bigint is null
      or (last_at, id) < (select last_at, id from tributary.quarantine where id = ${filter.before}))
    order by last_at desc, id desc limit ${filter.limit}`);

export async function countQuarantined(db: Queryable, filter: QuarantineFilter): Promise<number> {
  const [row] = await db.query<{ n: number }>(sql`select count(*) as n from tributary.quarantine ${matching(filter)}`);
  return row?.n ?? 0;
}

export async function dropQuarantined(db: Queryable, ids: readonly number[]): Promise<number> {
  const gone = await db.query(sql`delete from tributary.quarantine where id = any(${ids}) returning 1`);
  return gone.length;
}

const matching = ({ ids, source, stream }: QuarantineFilter): Sql => sql`
  where (${ids}::bigint[] is null or id = any(${ids})) and (${source}::text is null or source = ${source})
    and (${stream}::text is null or stream = ${stream})`;
