import { lastCommit } from '../../cursor/cursors.ts';
import type { Database, Transaction } from '../../cursor/database.ts';
import { checkFence } from '../../cursor/leases.ts';
import { type Advance, applyAdvance } from '../../cursor/ledger.ts';
import { quarantine } from '../../cursor/quarantine.ts';
import { entitiesOf } from '../../model/entities.ts';
import { RetryLater } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import type { Batch, Receipt } from '../sink.ts';
import { createCopyEncoder } from './copy-encoder.ts';
import { copyIntoStage, createStage, markMissing, mergeStage, stageColumns } from './merge.ts';
import { mergeEntity } from './merge-entity.ts';
import { readReceipt, writeReceipt } from './receipts.ts';
import { createStorable } from './storable-row.ts';

export interface BatchOptions {
  db: Database;
  schema: string;
  /** Where cursors live. The same object as `db` when data and state share a database: then a commit is one transaction. */
  state: Database;
}

/** Rows are encoded as they come and sent in one short transaction: none stays open while the service is being asked. */
export function openBatch({ db, schema, state }: BatchOptions, stream: Stream): Batch {
  const encoder = createCopyEncoder(stageColumns(stream).map((column) => column.kind));
  const storable = createStorable(stream);
  let position = 0;
  let mended = 0;

  const store = async (tx: Transaction, { source, runId, spans }: Advance): Promise<Receipt> => {
    const whole = spans.filter((span) => span.whole);
    if (position === 0 && whole.length === 0) return { new: 0, changed: 0, unchanged: 0, mended };
    await tx.query(createStage(stream));
    await tx.copyIn(copyIntoStage(), encoder.finish());
    const [merged] = await tx.query<{ total: number; new: number; changed: number }>(
      mergeStage(schema, stream, source, runId),
    );
    if (!merged) throw new Error('the merge returned no counts');
    for (const entity of entitiesOf(stream)) await tx.query(mergeEntity(schema, entity, source));
    for (const { start, end } of whole) await tx.query(markMissing(schema, stream, source, toIso(start), toIso(end)));
    const unchanged = merged.total - merged.new - merged.changed;
    return { new: merged.new, changed: merged.changed, unchanged, mended };
  };

  /** Elsewhere the data goes first, with its receipt: a crash in between is mended from that. */
  const storeElsewhere = async (advance: Advance): Promise<Receipt> => {
    const work = async (tx: Transaction): Promise<Receipt> => {
      const receipt = await store(tx, advance);
      await writeReceipt(tx, schema, advance);
      return receipt;
    };
    const isThere = async (): Promise<boolean> =>
      (await readReceipt(db, schema, advance))?.commitId === advance.commitId;
    return certainly(work, (attempt) => db.transaction(attempt), isThere);
  };

  return {
    async write(rows) {
      for (const row of rows) {
        const { values, isMended } = storable(row);
        if (isMended) mended++;
        encoder.add([...values, position++]);
      }
    },
    async commit(advance, rejected = []) {
      const work = async (tx: Transaction): Promise<Receipt> => {
        // Before any row is written, and held to the end: a writer that lost its lease must not touch the data either.
        await checkFence(tx, advance);
        const receipt = db === state ? await store(tx, advance) : await storeElsewhere(advance);
        await quarantine(tx, advance, rejected);
        await applyAdvance(tx, advance);
        return receipt;
      };
      const isThere = async (): Promise<boolean> => (await lastCommit(state, advance)) === advance.commitId;
      return certainly(work, (attempt) => state.transaction(attempt), isThere);
    },
    async abort() {
      encoder.finish();
    },
  };
}

/**
 * Runs a transaction and makes sure of its outcome. When the connection breaks while COMMIT is under way, nobody knows whether
 * it went through: that is looked up, not repeated blindly.
 */
async function certainly<T>(
  work: (tx: Transaction) => Promise<T>,
  run: (work: (tx: Transaction) => Promise<T>) => Promise<T>,
  isThere: () => Promise<boolean>,
): Promise<T> {
  let done: { result: T } | undefined;
  try {
    return await run(async (tx) => {
      const result = await work(tx);
      done = { result };
      return result;
    });
  } catch (error) {
    // Recovery: only a commit that was sent can be in doubt; anything earlier was rolled back.
    if (done && error instanceof RetryLater && (await isThere())) return done.result;
    throw error;
  }
}
