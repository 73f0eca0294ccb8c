import type { Row } from '../model/flatten.ts';
import { createMentions, createScrub, digestOf, type Forgotten } from '../model/forgotten.ts';
import { parseJson } from '../model/json.ts';
import type { Stream } from '../model/streams.ts';
import type { Queryable } from './database/index.ts';
import { raw, type Sql, sql } from './database/sql.ts';

export async function readForgotten(db: Queryable, source: string): Promise<Forgotten[]> {
  return db.query<Forgotten & Record<string, unknown>>(
    sql`select kind, digest from tributary.forgotten where source = ${source}`,
  );
}

/** Behind the fence of a commit or the lock of its files: who forgets waits for commits that have come this far. */
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

/** The id was mistyped: what comes with it is kept. */
export async function takeBack(db: Queryable, source: string, kind: Forgotten['kind'], id: string): Promise<void> {
  await db.query(
    sql`delete from tributary.forgotten where (source, kind, digest) = (${source}, ${kind}, ${digestOf(id)})`,
  );
}

/** Records that were set aside are raw: those that mention the id. */
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
  const gone = await mentionedIn(...of);
  if (gone.length > 0) await of[0].query(sql`delete from tributary.quarantine where id = any(${gone})`);
  return gone.length;
}

const PROGRESS_TABLES = ['cursors', 'windows', 'attestations', 'foreign_rows'] as const;

/** Leases stay: their epochs must go on rising, or a writer that slept through it all would pass the fence again. */
const OTHER_TABLES = ['runs', 'profiles', 'filters', 'quarantine', 'parked', 'incidents', 'backfills'] as const;

export const countSource = (db: Queryable, source: string): Promise<Record<string, number>> =>
  countIn([...PROGRESS_TABLES, ...OTHER_TABLES], db, source);

/** From now on nothing of the source is called complete. Returns how many rows went from each table. */
export const forgetProgress = (db: Queryable, source: string): Promise<Record<string, number>> =>
  countIn(PROGRESS_TABLES, db, source, DELETED);

/** Whatever else the state holds of a source, but for what was asked to stay forgotten. Returns how many rows went from each table. */
export async function forgetSource(db: Queryable, source: string): Promise<Record<string, number>> {
  const touched = await countIn(OTHER_TABLES, db, source, DELETED);
  // Without rows, its name is free for another service.
  const gone = await db.query(sql`delete from tributary.sources where name = ${source} returning 1`);
  return { ...touched, 'tributary.sources': gone.length };
}

const FOUND = (rows: Sql): Sql => sql`select count(*) as n ${rows}`;
const DELETED = (rows: Sql): Sql => sql`with gone as (delete ${rows} returning 1) select count(*) as n from gone`;

async function countIn(tables: readonly string[], db: Queryable, source: string, of = FOUND) {
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
