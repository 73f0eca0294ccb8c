import { lastCommit } from '../../cursor/cursors.ts';
import type { Database, Transaction } from '../../cursor/database/index.ts';
import { withoutForgotten } from '../../cursor/forgotten.ts';
import type { CountRows } from '../../cursor/holdings/window-rows.ts';
import { checkFence } from '../../cursor/leases.ts';
import { type Advance, applyAdvance } from '../../cursor/ledger.ts';
import { quarantine, type Rejected } from '../../cursor/quarantine.ts';
import type { Row } from '../../model/flatten.ts';
import type { Stream } from '../../model/streams.ts';
import { type Batch, type Receipt, resolveInDoubt, type Stored } from '../sink.ts';

/** The rows of a source, and what they prove. */
export interface Load {
  stream: Stream;
  rows: readonly Row[];
  advance: Advance;
  rejected: readonly Rejected[];
}

/** Rows are gathered, and written when they are committed. */
export function gather(stream: Stream, commit: (load: Load) => Promise<Receipt>): Batch {
  const rows: Row[] = [];
  return {
    async write(more) {
      rows.push(...more);
    },
    commit: (advance, rejected = []) => commit({ stream, rows, advance, rejected }),
    async abort() {
      rows.length = 0;
    },
  };
}

interface Merging {
  /** Writes the rows into files. */
  merge(rows: readonly Row[], renewLease: () => Promise<void>): Promise<Stored & { isAfterCrash: boolean }>;
  count: CountRows;
}

/** In a transaction of the state: the fence, the files, and then what they prove. */
export async function storeLoad(tx: Transaction, load: Load, { merge, count }: Merging): Promise<Receipt> {
  const { stream, advance, rejected } = load;
  const fence = await checkFence(tx, advance);
  const rows = await withoutForgotten(tx, advance.source, stream, load.rows);
  const { receipt, ...changes } = await merge(rows, fence.renew);
  await quarantine(tx, advance, rejected);
  await applyAdvance(tx, fence, advance, { ...changes, count });
  return receipt;
}

/** Runs a transaction with this commit in it. */
export const commitOnce = <T>(state: Database, advance: Advance, work: (tx: Transaction) => Promise<T>): Promise<T> =>
  resolveInDoubt(
    work,
    (attempt) => state.transaction(attempt),
    async () => (await lastCommit(state, advance)) === advance.commitId,
  );
