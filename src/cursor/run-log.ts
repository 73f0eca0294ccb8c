import type { Queryable } from './database/index.ts';
import { isoOf, raw, sql, storableJson } from './database/sql.ts';

export interface RunLine {
  at: string;
  level: string;
  message: string;
  details: Record<string, string>;
}

export interface RunRequest {
  at: string;
  /** Null for a request without a time range: a page of all links. */
  from: string | null;
  to: string | null;
  order: string;
  page: number;
  limit: number;
  rows: number | null;
  ms: number;
  /** Null without an answer, or if the answer was unusable regardless of its status. */
  status: number | null;
}

export interface RunLog {
  line: readonly RunLine[];
  request: readonly RunRequest[];
}

/** How many entries of each kind are kept per run: the last ones. */
export const MOST_KEPT: Readonly<Record<keyof RunLog, number>> = { line: 200, request: 500 };

/** Retention: polls of every minute log little each, but add up to 4,000 entries a day. */
const KEPT_DAYS = 7;

export async function appendRunLog(db: Queryable, run: string, kind: keyof RunLog, entries: readonly object[]) {
  // Texts from the service may hold characters that Postgres rejects.
  const texts = storableJson(JSON.stringify(entries));
  await db.query(sql`
    insert into tributary.run_log (run_id, kind, at, entry) select ${run}, ${kind}, (entry ->> 'at')::timestamptz, entry - 'at'
    from jsonb_array_elements(${texts}::jsonb) with ordinality as e (entry, place) order by place`);
}

export async function trimRunLog(db: Queryable, run: string, kind: keyof RunLog): Promise<void> {
  await db.query(sql`
    delete from tributary.run_log where (run_id, kind) = (${run}, ${kind}) and id <= (
      select id from tributary.run_log where (run_id, kind) = (${run}, ${kind})
      order by id desc offset ${MOST_KEPT[kind]} limit 1)`);
}

/** Deleting a run deletes its log as well; this is for runs that are kept longer than their log. */
export async function removeOldRunLogs(db: Queryable): Promise<void> {
  await db.query(sql`delete from tributary.run_log where at < now() - interval '${raw(KEPT_DAYS)} days'`);
}

/** In order of time, at most MOST_KEPT of each kind: more may be stored until the next trim. */
export async function readRunLog(db: Queryable, run: string): Promise<RunLog> {
  const rows = await db.query<{ kind: keyof RunLog; at: string; entry: object }>(
    sql`select kind, ${isoOf('at')} as at, entry from tributary.run_log where run_id = ${run} order by kind, id`,
  );
  const of = (wanted: keyof RunLog): object[] => {
    const last = rows.filter(({ kind }) => kind === wanted).slice(-MOST_KEPT[wanted]);
    return last.map(({ at, entry }) => ({ at, ...entry }));
  };
  return { line: of('line') as RunLine[], request: of('request') as RunRequest[] };
}
