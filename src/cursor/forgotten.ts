import type { Row } from '../model/flatten.ts';
import { createMentions, createScrub, digestOf, type Forgotten } from '../model/forgotten.ts';
import { parseJson } from '../model/json.ts';
import type { Stream } from '../model/streams.ts';
import type { Queryable } from './database/index.ts';
import { raw, type Sql, sql } from './database/sql.ts';

export const readForgotten = (db: Queryable, source: string): Promise<Forgotten[]> =>
  db.query<Forgotten>(sql`select kind, digest from tributary.forgotten where source = ${source}`);

/** Called after the fence check or the file lock of a commit: `forget` waits for commits that have passed that point. */
export async function withoutForgotten(
  tx: Queryable,
  source: string,
  stream: Stream,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  return createScrub(stream, await readForgotten(tx, source))(rows);
}

export async function remember(db: Queryable, source: string, kind: Forgotten['kind'], id: string): Promise<void> {
  await db.query(
    sql`insert into tributary.forgotten (source, kind, digest) values (${source}, ${kind}, ${digestOf(id)}) on conflict do nothing`,
  );
}

/** Undoes `remember` for a mistyped id: rows with it are kept. */
export async function unremember(db: Queryable, source: string, kind: Forgotten['kind'], id: string): Promise<void> {
  await db.query(
    sql`delete from tributary.forgotten where (source, kind, digest) = (${source}, ${kind}, ${digestOf(id)})`,
  );
}

/** The ids of quarantined records, which are raw, that mention the forgotten id. */
export async function mentionedIn(
  db: Queryable,
  source: string,
  kind: Forgotten['kind'],
  id: string,
): Promise<number[]> {
  const candidates = await db.query<{ id: number; record: string }>(
    sql`select id, record from tributary.quarantine where source = ${source} and strpos(record, ${JSON.stringify(id).slice(1, -1)}) > 0`,
  );
  const mentions = createMentions([{ kind, digest: digestOf(id) }]);
  return candidates.filter(({ record }) => mentions(parseJson(record))).map((one) => one.id);
}

export async function forgetQuarantined(...of: Parameters<typeof mentionedIn>): Promise<number> {
  const ids = await mentionedIn(...of);
  if (ids.length > 0) await of[0].query(sql`delete from tributary.quarantine where id = any(${ids})`);
  return ids.length;
}

const PROGRESS_TABLES = ['cursors', 'windows', 'attestations', 'foreign_rows'] as const;

/** Leases stay: if their epochs restarted, a writer that was suspended all the while would pass the fence again. */
const OTHER_TABLES = ['runs', 'profiles', 'filters', 'quarantine', 'parked', 'incidents', 'backfills'] as const;

export const countSource = (db: Queryable, source: string): Promise<Record<string, number>> =>
  countIn([...PROGRESS_TABLES, ...OTHER_TABLES], db, source);

/** Deletes cursors and ledger, so that nothing of the source counts as complete. Returns the number of deleted rows by table. */
export const forgetProgress = (db: Queryable, source: string): Promise<Record<string, number>> =>
  countIn(PROGRESS_TABLES, db, source, DELETE);

/** Deletes the rest of the source's state, except the list of forgotten ids. Returns the number of deleted rows by table. */
export async function forgetSource(db: Queryable, source: string): Promise<Record<string, number>> {
  const touched = await countIn(OTHER_TABLES, db, source, DELETE);
  // Once a source has no rows, its name may be used for another service.
  const gone = await db.query(sql`delete from tributary.sources where name = ${source} returning 1`);
  return { ...touched, 'tributary.sources': gone.length };
}

const COUNT = (rows: Sql): Sql => sql`select count(*) as n ${rows}`;
const DELETE = (rows: Sql): Sql => sql`with gone as (delete ${rows} returning 1) select count(*) as n from gone`;

async function countIn(tables: readonly string[], db: Queryable, source: string, of = COUNT) {
  const touched: Record<string, number> = {};
  for (const table of tables.map((name) => `tributary.${name}`)) {
    const [row] = await db.query<{ n: number }>(of(sql`from ${raw(table)} where source = ${source}`));
    touched[table] = row?.n ?? 0;
  }
  return touched;
}

export async function knownSources(db: Queryable): Promise<string[]> {
  const tables = [...PROGRESS_TABLES, ...OTHER_TABLES, 'forgotten'].map(
    (table) => `select source from tributary.${table}`,
  );
  const rows = await db.query<{ source: string }>(sql`${raw(tables.join(' union '))} order by source`);
  return rows.map(({ source }) => source);
}
