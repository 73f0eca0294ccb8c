import type { StreamName } from '../model/streams.ts';
import type { Queryable } from './database.ts';
import type { Sql } from './sql.ts';

/** A record that was set aside, as it is kept. */
export interface Quarantined {
  id: number;
  source: string;
  stream: StreamName;
  reason: string;
  /** JSON as text: what made it unusable may be what jsonb refuses. */
  record: string;
  runId: string;
  firstAt: Date;
  lastAt: Date;
}

export interface QuarantineFilter {
  ids?: readonly number[] | undefined;
  source?: string | undefined;
  stream?: string | undefined;
  /** Only records that come after this one in the list, by its id: the next page. */
  before?: number | undefined;
  limit?: number | undefined;
}

/** The newest first. */
export const listQuarantined = (db: Queryable, filter: QuarantineFilter): Promise<Quarantined[]> =>
  db.query<Quarantined & Record<string, unknown>>(select(filter));

export async function countQuarantined(db: Queryable, filter: QuarantineFilter): Promise<number> {
  const [row] = await db.query<{ n: number }>({
    text: `select count(*) as n from tributary.quarantine ${WHERE}`,
    values: valuesOf(filter),
  });
  return row?.n ?? 0;
}

/** Returns how many were there. */
export async function dropQuarantined(db: Queryable, ids: readonly number[]): Promise<number> {
  const gone = await db.query({
    text: 'delete from tributary.quarantine where id = any($1) returning 1',
    values: [ids],
  });
  return gone.length;
}

const WHERE = `
  where ($1::bigint[] is null or id = any($1)) and ($2::text is null or source = $2) and ($3::text is null or stream = $3)`;

const valuesOf = ({ ids, source, stream }: QuarantineFilter): unknown[] => [
  ids ?? null,
  source ?? null,
  stream ?? null,
];

const select = (filter: QuarantineFilter): Sql => ({
  text: `
    select id, source, stream, reason, record, run_id as "runId", first_at as "firstAt", last_at as "lastAt"
    from tributary.quarantine ${WHERE}
      and ($5::bigint is null or (last_at, id) < (select last_at, id from tributary.quarantine where id = $5))
    order by last_at desc, id desc limit $4`,
  values: [...valuesOf(filter), filter.limit ?? null, filter.before ?? null],
});
