import type { Database, Queryable } from '../../cursor/database/index.ts';
import { quoteIdent, quoteLiteral, type Sql } from '../../cursor/database/sql.ts';
import type { CountRows } from '../../cursor/holdings/window-rows.ts';
import type { Track } from '../../cursor/ledger.ts';
import { RUN_ID } from '../../cursor/runs.ts';
import { toIso } from '../../model/instant.ts';
import { entitiesOf, STREAMS, type Stream, type StreamName } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { type Asked, type Held, UNSETTLED } from '../sink.ts';
import { keysPlace } from './months.ts';
import { RECEIPTS } from './receipts.ts';
import { tableName } from './table.ts';

/** What the tables hold, as Postgres tells it: whatever was committed, somebody may have dropped, restored or written to them since. */

/**
 * A row of the table `t` that a run wrote and that says it is of this stream. Others are left as they are, and are not counted: somebody else
 * inserted them, or the service once answered with rows of another stream.
 */
export const isOurs = (t: string, stream: Stream): string =>
  `(${t}._run_id ~ ${quoteLiteral(RUN_ID)} and coalesce(lower(${t}.event), '') not in (${kindsOfOthers(stream).map(quoteLiteral).join(', ')})) is true`;

/** What rows of the other streams call themselves. */
const kindsOfOthers = ({ name }: Stream): string[] =>
  Object.values(STREAMS).flatMap((other) => (other.name === name ? [] : [other.event]));

/** Never the same as before: a table that is gone must be looked for at every run. */
const NO_TABLE = `no table${UNSETTLED}`;

/**
 * The file of each table and partition, and of the tables of links and customers: another one after drop, truncate and restore. VACUUM FULL
 * and CLUSTER make new files too; then the rows are counted once, and agree.
 */
const filesOf = (stream: StreamName): string => `
  select case when bool_or(t.relname = $2)
    then string_agg(c.oid || ':' || coalesce(pg_relation_filenode(c.oid), 0), ' ' order by c.oid) else '${NO_TABLE}' end as files
  from pg_class t left join pg_inherits i on i.inhparent = t.oid join pg_class c on c.oid in (t.oid, i.inhrelid)
  where t.relnamespace = (select oid from pg_namespace where nspname = $1)
    and t.relname in ($2, ${entitiesOf(STREAMS[stream])
      .map(({ name }) => quoteLiteral(name))
      .join(', ')})`;

export async function identifyTable(db: Queryable, schema: string, stream: StreamName): Promise<string> {
  const [found] = await db.query<{ files: string }>({ text: filesOf(stream), values: [schema, stream] });
  return found?.files ?? '';
}

/**
 * Of tables in another database than the state: a copy of the whole server, restored, has the same files. Its last receipt is not the
 * last commit that the state knows.
 */
export async function identifyElsewhere(
  db: Queryable,
  schema: string,
  { source, stream, sink }: Track,
  known: string | undefined,
): Promise<string> {
  const receipt = `select commit_id from ${quoteIdent(schema)}.${RECEIPTS} where source = $3 and stream = $2 and sink = $4`;
  try {
    const [found] = await db.query<{ files: string; last: string | null }>({
      text: `select (${filesOf(stream)}) as files, (${receipt}) as last`,
      values: [schema, stream, source, sink],
    });
    const { files = '', last = null } = found ?? {};
    return last === null || last === known ? files : `${files}, last receipt ${last}`;
  } catch (error) {
    // Recovery: the schema or its tables are gone, as after a drop.
    if (isMissing(error)) return NO_TABLE;
    throw error;
  }
}

/** No such table, no such schema. */
export const isMissing = (error: unknown): boolean =>
  ['42P01', '3F000'].includes((error as { code?: string }).code ?? '');

/** A source in the table of a stream. */
interface Of {
  schema: string;
  stream: Stream;
  source: string;
}

async function isThere(db: Queryable, { schema, stream }: Of): Promise<boolean> {
  const values = [tableName(schema, stream)];
  return (await db.query({ text: 'select 1 where to_regclass($1) is not null', values })).length > 0;
}

/** Looked up by time: `|| ''` keeps the planner from taking the key of a source that it believes to be empty, and from reading all of it. */
const rowsOf = ({ schema, stream }: Of): string =>
  `from ${tableName(schema, stream)} t where _source || '' = $1 and t."timestamp" >= w.start_at and t."timestamp" < w.end_at`;

const forEach = (select: string, { source }: Of, windows: readonly Window[]): Sql => ({
  text: `
    select t.* from unnest($2::timestamptz[], $3::timestamptz[]) with ordinality as w (start_at, end_at, place), lateral (${select}) t
    order by w.place`,
  values: [source, windows.map(({ start }) => toIso(start)), windows.map(({ end }) => toIso(end))],
});

/** By run and kind first: a day has many rows of few, and a pattern takes longer than counting. */
const selectCounts = (of: Of, windows: readonly Window[]): Sql =>
  forEach(
    `
    select coalesce(sum(n) filter (where ${isOurs('g', of.stream)}), 0)::int as ours, coalesce(sum(n) filter (where not (${isOurs('g', of.stream)})), 0)::int as others
    from (select _run_id, event, count(*) as n ${rowsOf(of)} group by _run_id, event) g`,
    of,
    windows,
  );

type Counts = Record<'ours' | 'others', number>;

/** Counts the rows of a source that are ours. */
export const countRows =
  (db: Queryable, of: Of): CountRows =>
  async (windows) =>
    (await db.query<Counts>(selectCounts(of, windows))).map(({ ours }) => ours);

/** The same, and whose the other rows are. */
export async function attestTable(db: Queryable, of: Of, windows: readonly Asked[]): Promise<Held[]> {
  if (!(await isThere(db, of))) return windows.map(() => ({ rows: 0 }));
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
  const theirs = `${rowsOf(of)} and not (${isOurs('t', of.stream)}) group by 1, 2 order by 3 desc limit 3`;
  const columns = "coalesce(lower(event), '') as kind, _run_id as run, max(_synced_at) as at";
  const select = forEach(`select ${columns} ${theirs}`, of, [window]);
  const writers = await db.query<{ kind: string; run: string; at: Date }>(select);
  const isForeign = (kind: string): boolean => kindsOfOthers(of.stream).includes(kind);
  const named = writers.map(({ kind, run, at }) => {
    const when = at.toISOString().slice(0, 16).replace('T', ' ');
    return `${isForeign(kind) ? `${kind}s, ` : ''}_run_id ${JSON.stringify(run)} at ${when}`;
  });
  const whose = writers.some(({ kind }) => isForeign(kind)) ? 'another stream' : 'another writer';
  const many = `${rows} ${rows === 1 ? 'row' : 'rows'} of ${whose}`;
  return `${of.schema}.${of.stream.name} holds ${many} (${named.join(', ')}); delete them, or run verify --repair`;
}

/** A primary key keeps doubles out, until somebody drops it or adds a table that inherits from ours. */
async function describeDoubles(db: Queryable, of: Of, window: Asked, rows: number): Promise<string | undefined> {
  if (rows <= (window.rows ?? Number.POSITIVE_INFINITY)) return undefined;
  const [found] = await db.query<{ ids: number }>(
    forEach(`select count(distinct event_id)::int as ids ${rowsOf(of)}`, of, [window]),
  );
  const doubles = rows - (found?.ids ?? rows);
  if (doubles === 0) return undefined;
  const many = doubles === 1 ? '1 event twice' : `${doubles} events more than once`;
  return `${of.schema}.${of.stream.name} holds ${many}; remove what put them there, then run verify --repair`;
}

/** Rows of other writers, and all but one of the rows of an event. */
export async function removeOthers(db: Database, of: Of, windows: readonly Window[]): Promise<void> {
  if (!(await isThere(db, of))) return;
  const row = 't.tableoid as part, t.ctid as place';
  const newestFirst = `row_number() over (partition by event_id order by ${isOurs('t', of.stream)} desc, _synced_at desc, t.tableoid, t.ctid)`;
  const { text, values = [] } = forEach(
    `
    select part, place from (
      select ${row}, ${isOurs('t', of.stream)} as is_ours, ${newestFirst} as number ${rowsOf(of)}) t
    where not is_ours or number > 1`,
    of,
    windows,
  );
  const table = tableName(of.schema, of.stream);
  await db.query({
    text: `delete from ${table} d using (${text}) t where (d.tableoid, d.ctid) = (t.part, t.place)`,
    values,
  });
}

/** The keys of partitions outlive rows that somebody deleted, truncated or dropped with their partition. */
export async function releaseKeys(db: Database, of: Of, windows: readonly Window[]): Promise<void> {
  const keys = keysPlace(of.schema, of.stream);
  const isGone = (await isThere(db, of))
    ? `not exists (select from ${tableName(of.schema, of.stream)} t
        where (t._source, t.event_id, t."timestamp") = (k._source, k.event_id, k."timestamp"))`
    : 'true';
  const { values = [] } = forEach('', of, windows);
  const within = `k._source = $1 and k."timestamp" >= w.start_at and k."timestamp" < w.end_at and ${isGone}`;
  const windowsOf = `unnest($2::timestamptz[], $3::timestamptz[]) as w (start_at, end_at)`;
  const release = async (): Promise<void> => {
    // A row whose time somebody changed is still there: its key follows it.
    if (isGone !== 'true')
      await db.query({
        text: `
          update ${keys} k set "timestamp" = r."timestamp" from ${windowsOf}, ${tableName(of.schema, of.stream)} r
          where ${within} and (r._source, r.event_id) = (k._source, k.event_id)`,
        values,
      });
    await db.query({ text: `delete from ${keys} k using ${windowsOf} where ${within}`, values });
  };
  await release().catch((error: unknown) => {
    // Recovery: the table of keys is gone too, and with it all that it remembered.
    if (!isMissing(error)) throw error;
  });
}

/** Whether a window has any row at all: a look at the index, not at the rows. */
export async function glanceAt(db: Queryable, of: Of, windows: readonly Window[]): Promise<boolean[]> {
  if (windows.length === 0) return [];
  if (!(await isThere(db, of))) return windows.map(() => false);
  const select = forEach(`select exists (select ${rowsOf(of)}) as any`, of, windows);
  return (await db.query<{ any: boolean }>(select)).map(({ any }) => any);
}
