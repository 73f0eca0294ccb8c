import type { Queryable } from '../../cursor/database/index.ts';
import { nameIn, type Sql, sql, storableJson } from '../../cursor/database/sql.ts';
import { ofTrack } from '../../cursor/holdings/window-rows.ts';
import { type Advance, type CoverageRow, readBack, type Track } from '../../cursor/ledger.ts';
import { CURSOR_COPY, column } from './beside.ts';
import { isThere, type Table } from './table.ts';

/**
 * If tables and state are in two databases, no transaction spans both. So the transaction of the data also writes a receipt with what
 * the state is about to be told. After a crash in between, recovery reads the receipt and tells the state.
 */
export const RECEIPTS = '_receipts';

export const createReceipts = (schema: string): Sql => sql`
  create table if not exists ${nameIn(schema, RECEIPTS)} (
    source text not null, stream text not null, sink text not null, commit_id text not null, advance jsonb not null,
    committed_at timestamptz not null default now(), primary key (source, stream, sink));`;

/** A copy of the cursors beside the data, for the view `coverage`. */
export const cursorCopy: Table = {
  name: CURSOR_COPY,
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

export async function writeReceipt(tx: Queryable, schema: string, advance: Advance, follows?: string): Promise<void> {
  const { source, stream, sink, commitId } = advance;
  await tx.query(sql`
    insert into ${nameIn(schema, RECEIPTS)} (source, stream, sink, commit_id, advance)
    values (${source}, ${stream}, ${sink}, ${commitId}, ${storableJson(JSON.stringify({ ...advance, follows }))})
    on conflict (source, stream, sink) do update
      set commit_id = excluded.commit_id, advance = excluded.advance, committed_at = now()`);
}

/**
 * The receipt of the last commit of a track. It stays: one that is not the state's last commit says that the tables were restored from
 * a backup, or the state was.
 */
export async function readReceipt(db: Queryable, schema: string, track: Track) {
  if (!(await isThere(db, schema, RECEIPTS))) return undefined;
  const [receipt] = await db.query<{ id: string; advance: Partial<Advance> & { follows?: string } }>(
    sql`select commit_id as id, advance from ${nameIn(schema, RECEIPTS)} where ${ofTrack(track)}`,
  );
  if (!receipt) return undefined;
  const { follows, ...advance } = receipt.advance;
  return {
    commitId: receipt.id,
    /** Undefined once the state has been told; otherwise it would undo a later reset of the cursor. */
    advance: advance.commitId ? readBack(advance as Advance) : undefined,
    /** The commit that the state knew before this one: only then may the state be told of it. */
    follows,
  };
}

/** The state knows of the commit. Its name stays: it tells whether the tables are those of the state's last commit. */
export async function settleReceipt(db: Queryable, schema: string, track: Track, commitId: string): Promise<void> {
  await db.query(sql`
    update ${nameIn(schema, RECEIPTS)} set advance = '{}'
    where ${ofTrack(track)} and commit_id = ${commitId} and advance <> '{}'`);
}

/** It may be a commit behind, never ahead. */
export async function copyCursor(db: Queryable, schema: string, row: CoverageRow): Promise<void> {
  const ranges = row.also_complete.map(({ start, end }) => `[${start},${end})`);
  const names = cursorCopy.columns.map(({ name }) => name);
  await db.query({
    text: `
      insert into ${nameIn(schema, CURSOR_COPY)} (${names.join(', ')}) values (${names.map((_, i) => `$${i + 1}`).join(', ')})
      on conflict (source, stream) do update set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`,
    values: names.map((name) => (name === 'also_complete' ? `{${ranges.join(',')}}` : row[name as keyof CoverageRow])),
  });
}
