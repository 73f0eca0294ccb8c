import { lastCommit } from '../../cursor/cursors.ts';
import type { Transaction } from '../../cursor/database/index.ts';
import { withoutForgotten } from '../../cursor/forgotten.ts';
import { checkFence } from '../../cursor/leases.ts';
import { type Advance, applyAdvance } from '../../cursor/ledger.ts';
import { quarantine } from '../../cursor/quarantine.ts';
import type { Row } from '../../model/flatten.ts';
import type { Stream } from '../../model/streams.ts';
import { resolveInDoubt } from '../in-doubt-commit.ts';
import type { Batch, Receipt } from '../sink.ts';
import { enterTrack, lockTrack, reconcile, settleTrack } from './event-index.ts';
import type { Lake } from './lake.ts';
import { mergeBatch } from './merge-batch.ts';

/** A lease is renewed by its fence; files can take longer than it lasts. */
const BEAT_MS = 5000;

/**
 * Rows are gathered and written in one transaction of the state. The files are replaced inside of it, before the ledger hears of them:
 * a crash in between leaves rows that the ledger does not know of, and they are merged again, without effect, when their window is
 * read again. That files were being replaced is said before the transaction begins, so that the index is mended first.
 *
 * @param met Tracks whose files were compared with the index by this process.
 */
export function openBatch(lake: Lake, stream: Stream, met: Set<number>): Batch {
  const { state } = lake;
  const rows: Row[] = [];
  return {
    async write(more) {
      rows.push(...more);
    },
    async commit(advance, rejected = []) {
      const { id, isUnsettled } = await enterTrack(state, advance);
      const isToCompare = isUnsettled || !met.has(id);
      const work = async (tx: Transaction): Promise<Receipt> => {
        // Before the fence: whoever waits behind a long rewrite goes on renewing its lease meanwhile.
        await lockTrack(tx, advance);
        await checkFence(tx, advance);
        const kept = await withoutForgotten(tx, advance.source, stream, rows);
        if (isToCompare) await reconcile(tx, lake, advance, id);
        const beat = createBeat(tx, advance);
        const receipt = await mergeBatch(tx, { lake, track: id, stream, rows: kept, advance, beat });
        await quarantine(tx, advance, rejected);
        await applyAdvance(tx, advance);
        await settleTrack(tx, id);
        return receipt;
      };
      const isThere = async (): Promise<boolean> => (await lastCommit(state, advance)) === advance.commitId;
      met.delete(id);
      const receipt = await resolveInDoubt(work, (attempt) => state.transaction(attempt), isThere);
      met.add(id);
      return receipt;
    },
    async abort() {
      rows.length = 0;
    },
  };
}

function createBeat(tx: Transaction, advance: Advance): () => Promise<void> {
  let last = Date.now();
  return async () => {
    if (Date.now() - last < BEAT_MS) return;
    await checkFence(tx, advance);
    last = Date.now();
  };
}
