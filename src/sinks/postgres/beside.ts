import type { Queryable } from '../../cursor/database/index.ts';
import { nameIn, raw, type Sql, sql, storableJson } from '../../cursor/database/sql.ts';
import { ofFeed } from '../../cursor/holdings/window-rows.ts';
import { type Advance, type CoverageRow, type Feed, readBack } from '../../cursor/ledger.ts';
import { startOfDay } from '../../model/window.ts';
import type { Batch } from '../sink.ts';
import { completeDays } from '../views/complete-days.ts';
import { isThere, type Table, type TableColumn } from './table.ts';

/** Tables for the views: which days are complete and since when, and copies of the state if that is in another database. */

export const RECEIPTS = '_receipts';

const column = (name: string, type: string, nullable = true, comment = ''): TableColumn => ({
  ...{ name, type, nullable, comment },
});

export const cursorCopy: Table = {
  name: '_cursors',
  doc: 'A copy of what the state says of this sink. The view coverage shows it.',
  key: ['source', 'stream'],
  columns: [
    column('source', 'text', false),
    column('stream', 'text', false),
    column('complete_through', 'timestamp with time zone'),
    column('newest_seen', 'timestamp with time zone'),
    column('updated_at', 'timestamp with time zone', false),
    column('since', 'timestamp with time zone'),
    column('filters', 'text'),
    column('set_aside', 'bigint'),
    column('also_complete', 'tstzmultirange'),
  ],
  indexes: [],
};

/** Also needed if the state is in the same database: the ledger tells what is complete, not since when. */
export const daysTable: Table = {
  name: '_days',
  doc: 'Days that are complete, and when they first were. The views complete_days and events show it.',
  key: ['source', 'stream', 'date'],
  columns: [
    column('source', 'text', false, 'Source, as named in the config.'),
    column('stream', 'text', false, 'One of clicks, leads or sales.'),
    column('date', 'date', false, 'Day, in UTC.'),
    column('rows', 'bigint', true, 'Rows of that day after the last run.'),
    column('complete_at', 'timestamp with time zone', false, 'When the day was first complete.'),
  ],
  indexes: [],
};

export const columnsCopy: Table = {
  name: '_columns',
  doc: 'A copy of what the state says of columns that came later. The view new_columns shows it.',
  key: ['id'],
  columns: [
    column('id', 'bigint', false),
    ...['stream', 'path', 'name', 'kind'].map((name) => column(name, 'text', false)),
    column('previous_kind', 'text'),
    column('source', 'text', false),
    column('changed_at', 'timestamp with time zone', false),
  ],
  indexes: [],
};

/** Tells when complete days have to be published. Nearly every poll stays within today and changes no complete day. */
export function createDaysDue() {
  const settled = new Set<string>();
  /** The latest day that each feed has reached. */
  const ends = new Map<string, number>();
  const keyOf = ({ source, stream }: Omit<Feed, 'sink'>): string => `${source}/${stream}`;
  return {
    isDue: (feed: Omit<Feed, 'sink'>): boolean => !settled.has(keyOf(feed)),
    settle: (feed: Omit<Feed, 'sink'>): unknown => settled.add(keyOf(feed)),
    /** Wraps a batch: its commit is due if a day ended, a window of an earlier day was read, or rows of one came late. */
    watched: (batch: Batch): Batch => ({
      ...batch,
      async commit(advance, rejected) {
        const receipt = await batch.commit(advance, rejected);
        const [key, today] = [keyOf(advance), startOfDay(Date.now())];
        const isNew = receipt.new + receipt.changed > 0;
        const reached = Math.max(0, ...advance.spans.map(({ end }) => startOfDay(end)));
        const isEarlier = advance.spans.some(({ start, end }) => end <= today || (isNew && start < today));
        if (isEarlier || reached > (ends.get(key) ?? 0)) settled.delete(key);
        ends.set(key, Math.max(reached, ends.get(key) ?? 0));
        return receipt;
      },
    }),
  };
}

/** Stores the days that are complete now. Days that were complete before keep their `complete_at`. */
export async function publishDays(db: Queryable, schema: string, state: Queryable, feed: Feed): Promise<void> {
  const table = nameIn(schema, daysTable.name);
  const { source, stream } = feed;
  const days = await state.query({
    text: `select date::text, rows from (${completeDays('c.source = $1 and c.stream = $2 and c.sink = $3')}) d order by 1`,
    values: [source, stream, feed.sink],
  });
  await db.query(sql`
    with now_complete as (select date, rows from jsonb_to_recordset(${JSON.stringify(days)}) as d (date date, rows bigint)),
    gone as (
      delete from ${table} k where k.source = ${source} and k.stream = ${stream} and not exists (select from now_complete n where n.date = k.date)
    )
    insert into ${table} as k (source, stream, date, rows, complete_at) select ${source}, ${stream}, date, rows, now() from now_complete
    on conflict (source, stream, date) do update set rows = excluded.rows where k.rows is distinct from excluded.rows`);
}

/** Copies new rows of the log of columns, which only grows. */
export async function publishColumns(db: Queryable, schema: string, state: Queryable): Promise<void> {
  const table = nameIn(schema, columnsCopy.name);
  const names = raw(columnsCopy.columns.map(({ name }) => name).join(', '));
  const [last] = await db.query<{ id: number }>(sql`select coalesce(max(id), 0) as id from ${table}`);
  const rows = await state.query(sql`select ${names} from tributary.columns where id > ${last?.id ?? 0} order by id`);
  if (rows.length === 0) return;
  await db.query(sql`
    insert into ${table} (${names})
    select ${names} from jsonb_populate_recordset(null::${table}, ${JSON.stringify(rows)}) on conflict do nothing`);
}

/** No transaction spans two databases: a receipt beside the data holds the advance that the state may miss after a crash. */
export const createReceipts = (schema: string): Sql => sql`
  create table if not exists ${nameIn(schema, RECEIPTS)} (
    source text not null, stream text not null, sink text not null, commit_id text not null, advance jsonb not null,
    committed_at timestamptz not null default now(), primary key (source, stream, sink));`;

export async function writeReceipt(tx: Queryable, schema: string, advance: Advance, follows?: string): Promise<void> {
  const { source, stream, sink, commitId } = advance;
  await tx.query(sql`
    insert into ${nameIn(schema, RECEIPTS)} (source, stream, sink, commit_id, advance)
    values (${source}, ${stream}, ${sink}, ${commitId}, ${storableJson(JSON.stringify({ ...advance, follows }))})
    on conflict (source, stream, sink) do update
      set commit_id = excluded.commit_id, advance = excluded.advance, committed_at = now()`);
}

/** Receipts are kept: one that is not of the state's last commit shows that tables or state were restored. */
export async function readReceipt(db: Queryable, schema: string, feed: Feed) {
  if (!(await isThere(db, schema, RECEIPTS))) return undefined;
  const [receipt] = await db.query<{ id: string; advance: Partial<Advance> & { follows?: string } }>(
    sql`select commit_id as id, advance from ${nameIn(schema, RECEIPTS)} where ${ofFeed(feed)}`,
  );
  if (!receipt) return undefined;
  const { follows, ...advance } = receipt.advance;
  return {
    commitId: receipt.id,
    /** Undefined once the state has it; otherwise it would undo a later reset of the cursor. */
    advance: advance.commitId ? readBack(advance as Advance) : undefined,
    /** The state's last commit before this one: the advance applies only to that state. */
    follows,
  };
}

/** Clears the advance once the state has it. The commit id stays, to tell whether the tables are those of the state's last commit. */
export async function settleReceipt(db: Queryable, schema: string, feed: Feed, commitId: string): Promise<void> {
  await db.query(sql`
    update ${nameIn(schema, RECEIPTS)} set advance = '{}'
    where ${ofFeed(feed)} and commit_id = ${commitId} and advance <> '{}'`);
}

/** Copies a cursor. The copy may lag one commit behind but is never ahead. */
export async function copyCursor(db: Queryable, schema: string, row: CoverageRow): Promise<void> {
  const ranges = row.also_complete.map(({ start, end }) => `[${start},${end})`);
  const names = cursorCopy.columns.map(({ name }) => name);
  await db.query({
    text: `
      insert into ${nameIn(schema, cursorCopy.name)} (${names.join(', ')}) values (${names.map((_, i) => `$${i + 1}`).join(', ')})
      on conflict (source, stream) do update set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`,
    values: names.map((name) => (name === 'also_complete' ? `{${ranges.join(',')}}` : row[name as keyof CoverageRow])),
  });
}
