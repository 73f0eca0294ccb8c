import { lastCommit } from '../../cursor/cursors.ts';
import type { Database, Transaction } from '../../cursor/database/index.ts';
import { withoutForgotten } from '../../cursor/forgotten.ts';
import { checkFence } from '../../cursor/leases.ts';
import { type Advance, applyAdvance } from '../../cursor/ledger.ts';
import { quarantine } from '../../cursor/quarantine.ts';
import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import { resolveInDoubt } from '../in-doubt-commit.ts';
import type { Batch, Receipt } from '../sink.ts';
import { ensureMonths } from './months.ts';
import { readReceipt, writeReceipt } from './receipts.ts';
import { store } from './store.ts';
import type { Partition } from './table.ts';

export interface BatchOptions {
  db: Database;
  schema: string;
  /** Where cursors live. The same object as `db` when data and state share a database: then a commit is one transaction. */
  state: Database;
  partition: Partition;
}

/** Rows are gathered and sent in one short transaction: none stays open while the service is being asked. */
export function openBatch({ db, schema, state, partition }: BatchOptions, stream: Stream): Batch {
  const rows: Row[] = [];

  /** Elsewhere the data goes first, with its receipt: a crash in between is recovered from that. */
  const storeElsewhere = async (kept: readonly Row[], advance: Advance): Promise<Receipt> => {
    const work = async (tx: Transaction): Promise<Receipt> => {
      const receipt = await store(tx, { schema, stream, partition, rows: kept }, advance);
      await writeReceipt(tx, schema, advance);
      return receipt;
    };
    const isThere = async (): Promise<boolean> =>
      (await readReceipt(db, schema, advance))?.commitId === advance.commitId;
    return resolveInDoubt(work, (attempt) => db.transaction(attempt), isThere);
  };

  return {
    async write(more) {
      rows.push(...more);
    },
    async commit(advance, rejected = []) {
      const isHere = db === state;
      // Elsewhere they go first: a receipt brings back the cursor after a crash, not the records that were set aside.
      if (!isHere && rejected.length > 0) {
        await state.transaction(async (tx) => {
          await checkFence(tx, advance);
          await quarantine(tx, advance, rejected);
        });
      }
      if (partition === 'month') await ensureMonths(db, schema, stream.name, instantsOf(rows));
      const work = async (tx: Transaction): Promise<Receipt> => {
        // Before any row is written, and held to the end: a writer that lost its lease must not touch the data either.
        await checkFence(tx, advance);
        const kept = await withoutForgotten(tx, advance.source, stream, rows);
        const receipt = isHere
          ? await store(tx, { schema, stream, partition, rows: kept }, advance)
          : await storeElsewhere(kept, advance);
        if (isHere) await quarantine(tx, advance, rejected);
        await applyAdvance(tx, advance);
        return receipt;
      };
      const isThere = async (): Promise<boolean> => (await lastCommit(state, advance)) === advance.commitId;
      return resolveInDoubt(work, (attempt) => state.transaction(attempt), isThere);
    },
    async abort() {
      rows.length = 0;
    },
  };
}

function* instantsOf(rows: readonly Row[]): Generator<Instant> {
  for (const { at } of rows) yield at;
}
