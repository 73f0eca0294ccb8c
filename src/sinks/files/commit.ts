import { lastCommit } from '../../cursor/cursors.ts';
import type { Database, Queryable, Transaction } from '../../cursor/database/index.ts';
import { withoutForgotten } from '../../cursor/forgotten.ts';
import { checkFence } from '../../cursor/leases.ts';
import { type Advance, applyAdvance } from '../../cursor/ledger.ts';
import { quarantine, type Rejected } from '../../cursor/quarantine.ts';
import type { Row } from '../../model/flatten.ts';
import type { Stream } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { type Batch, type Receipt, resolveInDoubt, type Stored } from '../sink.ts';
import type { Change } from './change.ts';
import type { ReadAgainMs } from './event-index.ts';
import type { Store } from './store/store.ts';

/** What the sinks that write files have in common. */
export interface FileSink {
  name: string;
  store: Store;
  /** The state database: cursors, and the index of the partition of each recent event. */
  state: Database;
  readAgainMs: ReadAgainMs;
}

/** The rows of a source, and how far they advance its ledger and cursor. */
export interface Load {
  stream: Stream;
  rows: readonly Row[];
  advance: Advance;
  rejected: readonly Rejected[];
}

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
  merge(rows: readonly Row[]): Promise<Stored & { isAfterCrash: boolean }>;
  /** Rows of each window, as the commit leaves them. */
  count(db: Queryable, windows: readonly Window[]): Promise<number[]>;
}

/** Writes the files and queues the state's advance. The caller holds the lock, which `forget` waits for. */
export async function storeLoad(state: Queryable, change: Change, load: Load, merging: Merging): Promise<Receipt> {
  const { stream, advance, rejected } = load;
  // Early exit for a process that lost its lease: it need not write files. The check that matters is the one at commit.
  await checkFence(state, advance);
  const rows = await withoutForgotten(state, advance.source, stream, load.rows);
  const { receipt, ...changes } = await merging.merge(rows);
  const prove = async (tx: Transaction): Promise<void> => {
    const fence = await checkFence(tx, advance);
    await quarantine(tx, advance, rejected);
    await applyAdvance(tx, fence, advance, { ...changes, count: (windows) => merging.count(tx, windows) });
  };
  change.later(prove, { movesCursor: true });
  return receipt;
}

export const commitOnce =
  (state: Database, advance: Advance) =>
  <T>(work: (tx: Transaction) => Promise<T>): Promise<T> =>
    resolveInDoubt(state, work, async () => (await lastCommit(state, advance)) === advance.commitId);
