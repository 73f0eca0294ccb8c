import type { Database, Queryable } from '../../cursor/database/index.ts';
import { nameIn, quoteLiteral, raw, type Sql, sql } from '../../cursor/database/sql.ts';
import { rangesOf } from '../../cursor/holdings/attestations.ts';
import { type CountRows, type Feed, ofFeed } from '../../cursor/holdings/window-rows.ts';
import { RUN_ID } from '../../cursor/runs.ts';
import { entitiesOf, STREAMS, type Stream, type StreamName } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { type Asked, type Held, NO_TABLE } from '../sink.ts';
import { RECEIPTS } from './beside.ts';
import { qualifiedKeys } from './months.ts';
import { isThere } from './table.ts';
import type { Viewed } from './views.ts';

/** What the tables really hold: somebody may have dropped, restored or written to them since our commits. */

/** Whether a run wrote row `t`, of this stream. Other rows (inserted by hand, or from a wrong response) are kept but not counted. */
export const isOurs = (t: string, stream: Stream): Sql =>
  raw(
    `(${t}._run_id ~ ${quoteLiteral(RUN_ID)} and coalesce(lower(${t}.event), '') not in (${kindsOfOthers(stream).map(quoteLiteral).join(', ')})) is true`,
  );

const kindsOfOthers = ({ name }: Stream): string[] =>
  Object.values(STREAMS).flatMap((other) => (other.name === name ? [] : [other.event]));

/** The tables' file nodes, which change after drop, truncate and restore; also after VACUUM FULL and CLUSTER, where the rows then agree. */
function filesOf(schema: string, stream: StreamName): Sql {
  const names = [stream, ...entitiesOf(STREAMS[stream]).map(({ name }) => name)];
  return sql`
    select case when bool_or(t.relname = ${stream})
      then string_agg(c.oid || ':' || coalesce(pg_relation_filenode(c.oid), 0), ' ' order by c.oid) else ${NO_TABLE} end as files
    from pg_class t left join pg_inherits i on i.inhparent = t.oid join pg_class c on c.oid in (t.oid, i.inhrelid)
    where t.relnamespace = (select oid from pg_namespace where nspname = ${schema}) and t.relname = any(${names})`;
}

/** If the state is in another database, the receipt is part of the identity: a restored copy of the whole server has the same files. */
export async function identifyTable(db: Queryable, { schema, isStateHere }: Viewed, feed: Feed, known?: string) {
  const receipt = sql`(select commit_id from ${nameIn(schema, RECEIPTS)} where ${ofFeed(feed)})`;
  try {
    const [found] = await db.query<{ files: string; last: string | null }>(
      sql`select (${filesOf(schema, feed.stream)}) as files, ${isStateHere ? raw('null') : receipt} as last`,
    );
    const { files = '', last = null } = found ?? {};
    return last === null || last === known ? files : `${files}, last receipt ${last}`;
  } catch (error) {
    // Recovery: the schema or its tables are gone, as after a drop.
    if (isMissing(error)) return NO_TABLE;
    throw error;
  }
}

export const isMissing = (error: unknown): boolean =>
  ['42P01', '3F000'].includes((error as { code?: string }).code ?? '');

export interface Of {
  schema: string;
  stream: Stream;
  source: string;
}

/** Looked up by time: `|| ''` keeps the planner from using the key for a source that it estimates as empty, and so reading all of it. */
const rowsOf = ({ schema, stream, source }: Of): Sql => sql`
  from ${nameIn(schema, stream.name)} t where _source || '' = ${source} and t."timestamp" >= w.start_at and t."timestamp" < w.end_at`;

const forEach = (select: Sql, windows: readonly Window[]): Sql => sql`
  select t.* from ${rangesOf(windows)} with ordinality as w (start_at, end_at, place), lateral (${select}) t order by w.place`;

/** Groups by run and kind first: a day has many rows of few runs, and matching the pattern takes longer than counting. */
function selectCounts(of: Of, windows: readonly Window[]): Sql {
  const ours = isOurs('g', of.stream);
  const counts = sql`
    select coalesce(sum(n) filter (where ${ours}), 0)::int as ours, coalesce(sum(n) filter (where not (${ours})), 0)::int as others
    from (select _run_id, event, count(*) as n ${rowsOf(of)} group by _run_id, event) g`;
  return forEach(counts, windows);
}

type Counts = Record<'ours' | 'others', number>;

export const countRows =
  (db: Queryable, of: Of): CountRows =>
  async (windows) =>
    (await db.query<Counts>(selectCounts(of, windows))).map(({ ours }) => ours);

/** Counts our rows, and describes rows of others and duplicates. */
export async function attestTable(db: Queryable, of: Of, windows: readonly Asked[]): Promise<Held[]> {
  if (!(await isThere(db, of.schema, of.stream.name))) return windows.map(() => ({ rows: 0 }));
  const found = await db.query<Counts>(selectCounts(of, windows));
  const held: Held[] = [];
  for (const [i, { ours, others }] of found.entries()) {
    const window = windows[i];
    if (!window) continue;
    const foreign =
      others > 0 ? await describeOthers(db, of, window, others) : await describeDoubles(db, of, window, ours);
    held.push({ rows: ours, foreign });
  }
  return held;
}

async function describeOthers(db: Queryable, of: Of, window: Window, rows: number): Promise<string> {
  const theirs = sql`
    select coalesce(lower(event), '') as kind, _run_id as run, max(_synced_at) as at ${rowsOf(of)} and not (${isOurs('t', of.stream)})
    group by 1, 2 order by 3 desc limit 3`;
  const writers = await db.query<{ kind: string; run: string; at: Date }>(forEach(theirs, [window]));
  const isForeign = (kind: string): boolean => kindsOfOthers(of.stream).includes(kind);
  const named = writers.map(({ kind, run, at }) => {
    const when = at.toISOString().slice(0, 16).replace('T', ' ');
    return `${isForeign(kind) ? `${kind}s, ` : ''}_run_id ${JSON.stringify(run)} at ${when}`;
  });
  const whose = writers.some(({ kind }) => isForeign(kind)) ? 'another stream' : 'another writer';
  const many = `${rows} ${rows === 1 ? 'row' : 'rows'} of ${whose}`;
  return `${of.schema}.${of.stream.name} holds ${many} (${named.join(', ')}); delete them, or run verify --repair`;
}

/** Duplicates are only possible if somebody dropped the primary key or added a table that inherits from ours. */
async function describeDoubles(db: Queryable, of: Of, window: Asked, rows: number): Promise<string | undefined> {
  if (rows <= (window.rows ?? Number.POSITIVE_INFINITY)) return undefined;
  const [found] = await db.query<{ ids: number }>(
    forEach(sql`select count(distinct event_id)::int as ids ${rowsOf(of)}`, [window]),
  );
  const doubles = rows - (found?.ids ?? rows);
  if (doubles === 0) return undefined;
  const many = doubles === 1 ? '1 event twice' : `${doubles} events more than once`;
  return `${of.schema}.${of.stream.name} holds ${many}; remove what put them there, then run verify --repair`;
}

/** Deletes rows of other writers, and all but one row of each event. */
export async function removeOthers(db: Database, of: Of, windows: readonly Window[]): Promise<void> {
  if (!(await isThere(db, of.schema, of.stream.name))) return;
  const ours = isOurs('t', of.stream);
  const others = sql`
    select part, place from (
      select t.tableoid as part, t.ctid as place, ${ours} as is_ours,
        row_number() over (partition by event_id order by ${ours} desc, _synced_at desc, t.tableoid, t.ctid) as number ${rowsOf(of)}) t
    where not is_ours or number > 1`;
  await db.query(sql`
    delete from ${nameIn(of.schema, of.stream.name)} d using (${forEach(others, windows)}) t
    where (d.tableoid, d.ctid) = (t.part, t.place)`);
}

/** Deletes keys whose rows are gone: they outlive rows that somebody deleted, truncated or dropped with their partition. */
export async function releaseKeys(db: Database, of: Of, windows: readonly Window[]): Promise<void> {
  const { schema, stream, source } = of;
  const [table, keys] = [nameIn(schema, stream.name), qualifiedKeys(schema, stream)];
  const isLeft = await isThere(db, schema, stream.name);
  const isGone = isLeft
    ? sql`not exists (select from ${table} t where (t._source, t.event_id, t."timestamp") = (k._source, k.event_id, k."timestamp"))`
    : raw('true');
  const within = sql`k._source = ${source} and k."timestamp" >= w.start_at and k."timestamp" < w.end_at and ${isGone}`;
  const from = sql`${rangesOf(windows)} as w (start_at, end_at)`;
  const release = async (): Promise<void> => {
    // The key of a row whose time somebody changed gets the new time.
    if (isLeft)
      await db.query(sql`
        update ${keys} k set "timestamp" = r."timestamp" from ${from}, ${table} r
        where ${within} and (r._source, r.event_id) = (k._source, k.event_id)`);
    await db.query(sql`delete from ${keys} k using ${from} where ${within}`);
  };
  await release().catch((error: unknown) => {
    // Recovery: the table of keys is gone too, so there is nothing to release.
    if (!isMissing(error)) throw error;
  });
}

/** Whether each window has any row, by the index alone. */
export async function glanceAt(db: Queryable, of: Of, windows: readonly Window[]): Promise<boolean[]> {
  if (windows.length === 0) return [];
  if (!(await isThere(db, of.schema, of.stream.name))) return windows.map(() => false);
  const select = forEach(sql`select exists (select ${rowsOf(of)}) as any`, windows);
  return (await db.query<{ any: boolean }>(select)).map(({ any }) => any);
}
