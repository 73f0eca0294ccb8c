import type { Database, Transaction } from '../../cursor/database.ts';
import { checkFence } from '../../cursor/leases.ts';
import { type Advance, applyAdvance } from '../../cursor/ledger.ts';
import { quarantine } from '../../cursor/quarantine.ts';
import { quoteIdent } from '../../cursor/sql.ts';
import { STREAM_NAMES, type Stream } from '../../model/streams.ts';
import type { Batch, Receipt, Sink } from '../sink.ts';
import { createCopyEncoder } from './copy-encoder.ts';
import { copyIntoStage, createStage, mergeStage, stageColumns } from './merge.ts';
import {
  addColumns,
  comments,
  createIndexes,
  createTable,
  missingColumns,
  selectTable,
  tableComment,
} from './table.ts';

export interface PostgresSinkOptions {
  name: string;
  db: Database;
  schema: string;
  /** Where cursors live. The same object as `db` when data and state share a database: then a commit is one transaction. */
  state: Database;
}

export function createPostgresSink({ name, db, schema, state }: PostgresSinkOptions): Sink {
  return {
    name,
    place: `Postgres schema ${schema} (${STREAM_NAMES.join(', ')})`,
    prepare: (stream) => prepareTable(db, schema, stream),
    open: async (stream) => openBatch({ name, db, schema, state }, stream),
    close: async () => {},
  };
}

async function prepareTable(db: Database, schema: string, stream: Stream): Promise<void> {
  await db.transaction(async (tx) => {
    // `create … if not exists` of two processes at once can still collide in the catalogue; this lock makes them take turns.
    await tx.query({
      text: 'select pg_advisory_xact_lock(hashtext($1))',
      values: [`tributary schema ${schema}`],
    });
    const [table] = await tx.query<{ comment: string | null; columns: string[] }>(selectTable(schema, stream));
    const missing = missingColumns(stream, table?.columns ?? []);
    if (table?.comment === tableComment(stream) && missing.length === 0) return;
    await tx.query({ text: `create schema if not exists ${quoteIdent(schema)}` });
    const upgrade = table ? addColumns(schema, stream, missing) : createTable(schema, stream);
    await tx.query({ text: [upgrade, createIndexes(schema, stream), comments(schema, stream)].join('\n') });
  });
}

/** Rows are encoded as they come and sent in one short transaction: none stays open while the service is being asked. */
function openBatch({ db, schema, state }: PostgresSinkOptions, stream: Stream): Batch {
  const encoder = createCopyEncoder(stageColumns(stream).map((column) => column.kind));
  let position = 0;

  const store = async (tx: Transaction, { source, runId }: Advance): Promise<Receipt> => {
    if (position === 0) return { new: 0, changed: 0, unchanged: 0 };
    await tx.query(createStage(stream));
    await tx.copyIn(copyIntoStage(), encoder.finish());
    const [merged] = await tx.query<{ total: number; new: number; changed: number }>(
      mergeStage(schema, stream, source, runId),
    );
    if (!merged) throw new Error('the merge returned no counts');
    return { new: merged.new, changed: merged.changed, unchanged: merged.total - merged.new - merged.changed };
  };

  return {
    async write(rows) {
      for (const row of rows) encoder.add([...row.values, row.extra, position++]);
    },
    async commit(advance, rejected = []) {
      return state.transaction(async (tx) => {
        // Before any row is written, and held to the end: a writer that lost its lease must not touch the data either.
        await checkFence(tx, advance);
        // Elsewhere the data goes first: a crash in between reads the window again, and the merge finds its rows unchanged.
        const receipt = db === state ? await store(tx, advance) : await db.transaction((data) => store(data, advance));
        await quarantine(tx, advance, rejected);
        await applyAdvance(tx, advance);
        return receipt;
      });
    },
    async abort() {
      encoder.finish();
    },
  };
}
