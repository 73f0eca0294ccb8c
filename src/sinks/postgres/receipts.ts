import type { Queryable } from '../../cursor/database.ts';

import { type Advance, readBack } from '../../cursor/ledger.ts';
import { quoteIdent, type Sql, storableJson } from '../../cursor/sql.ts';

import type { StreamName } from '../../model/streams.ts';
import { CURSOR_COPY } from './views.ts';

/**
 * When the tables are in another database than the state, no transaction spans both. So the data's own transaction leaves a
 * receipt that says what the state is about to be told; after a crash in between, the receipt is read and the state told again.
 */
const RECEIPTS = '_receipts';

export const createReceipts = (schema: string): string => `
  create table if not exists ${quoteIdent(schema)}.${quoteIdent(RECEIPTS)} (
    source text not null, stream text not null, sink text not null, commit_id text not null, advance jsonb not null,
    committed_at timestamptz not null default now(), primary key (source, stream, sink));
  create table if not exists ${quoteIdent(schema)}.${quoteIdent(CURSOR_COPY)} (
    source text not null, stream text not null, complete_through timestamptz, newest_seen timestamptz,
    updated_at timestamptz not null, primary key (source, stream));`;

export async function writeReceipt(tx: Queryable, schema: string, advance: Advance): Promise<void> {
  const { source, stream, sink, commitId } = advance;
  await tx.query({
    text: `
      insert into ${quoteIdent(schema)}.${quoteIdent(RECEIPTS)} (source, stream, sink, commit_id, advance)
      values ($1, $2, $3, $4, $5)
      on conflict (source, stream, sink) do update
        set commit_id = excluded.commit_id, advance = excluded.advance, committed_at = now()`,
    values: [source, stream, sink, commitId, storableJson(JSON.stringify(advance))],
  });
}

export async function readReceipt(
  db: Queryable,
  schema: string,
  track: { source: string; stream: StreamName; sink: string },
): Promise<Advance | undefined> {
  const [found] = await db.query<{ there: string | null }>({
    text: 'select to_regclass($1)::text as there',
    values: [`${quoteIdent(schema)}.${quoteIdent(RECEIPTS)}`],
  });
  if (!found?.there) return undefined;
  const [receipt] = await db.query<{ advance: Advance }>(selectReceipt(schema, track));
  return receipt && readBack(receipt.advance);
}

const selectReceipt = (schema: string, track: { source: string; stream: string; sink: string }): Sql => ({
  text: `
    select advance from ${quoteIdent(schema)}.${quoteIdent(RECEIPTS)}
    where source = $1 and stream = $2 and sink = $3`,
  values: [track.source, track.stream, track.sink],
});

/** Once the state knows of the commit its receipt has done its duty; left there, it would undo a later reset of the cursor. */
export async function dropReceipt(
  db: Queryable,
  schema: string,
  track: { source: string; stream: string; sink: string },
  commitId: string,
): Promise<void> {
  await db.query({
    text: `
      delete from ${quoteIdent(schema)}.${quoteIdent(RECEIPTS)}
      where source = $1 and stream = $2 and sink = $3 and commit_id = $4`,
    values: [track.source, track.stream, track.sink, commitId],
  });
}

/** A copy of the cursor beside the data, for the view `coverage`. It may be a commit behind, never ahead. */
export async function copyCursor(
  db: Queryable,
  schema: string,
  cursor: { source: string; stream: string; complete_through: Date | null; newest_seen: Date | null; updated_at: Date },
): Promise<void> {
  await db.query({
    text: `
      insert into ${quoteIdent(schema)}.${quoteIdent(CURSOR_COPY)} (source, stream, complete_through, newest_seen, updated_at)
      values ($1, $2, $3, $4, $5)
      on conflict (source, stream) do update set complete_through = excluded.complete_through,
        newest_seen = excluded.newest_seen, updated_at = excluded.updated_at`,
    values: [cursor.source, cursor.stream, cursor.complete_through, cursor.newest_seen, cursor.updated_at],
  });
}
