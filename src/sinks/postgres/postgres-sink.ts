import { cursorRow, lastCommit } from '../../cursor/cursors.ts';
import { applyAdvance } from '../../cursor/ledger.ts';
import { STREAM_NAMES } from '../../model/streams.ts';
import type { Abilities, SinkWith } from '../sink.ts';
import { type BatchOptions, openBatch } from './batch.ts';
import { checkPostgres } from './check.ts';
import { findDifferences } from './differences.ts';
import { erase } from './erase.ts';
import type { Partition } from './months.ts';
import { prepareWarehouse } from './prepare.ts';
import { readRows } from './read-rows.ts';
import { copyCursor, dropReceipt, readReceipt } from './receipts.ts';

export interface PostgresSinkOptions extends Omit<BatchOptions, 'partition'> {
  name: string;
  partition?: Partition;
}

/** Large enough that a batch loads at full speed, small enough that two of them bound the memory. */
const BATCH_ROWS = 5000;

export type PostgresSink = SinkWith<Exclude<keyof Abilities, 'rewrite' | 'maintain'>>;

export function createPostgresSink(options: PostgresSinkOptions): PostgresSink {
  const { name, db, schema, state, partition = 'none' } = options;
  const isStateHere = db === state;
  return {
    name,
    place: `Postgres schema ${schema} (${[...STREAM_NAMES, 'links', 'customers'].join(', ')})`,
    batchRows: BATCH_ROWS,
    prepare: (stream) => prepareWarehouse({ db, schema, sink: name, isStateHere, partition }, stream),
    open: async (stream) => openBatch({ db, schema, state, partition }, stream),
    async recover({ source, stream, epoch }) {
      if (isStateHere) return;
      const track = { source, stream, sink: name };
      const receipt = await readReceipt(db, schema, track);
      // The data of this commit is there and the state was never told: tell it now, under our own lease.
      if (receipt && (await lastCommit(state, track)) !== receipt.commitId) {
        await state.transaction((tx) => applyAdvance(tx, { ...receipt, epoch }));
      }
    },
    async publishProgress({ source, stream }) {
      if (isStateHere) return;
      const track = { source, stream, sink: name };
      const [cursor, told] = [await cursorRow(state, track), await lastCommit(state, track)];
      if (!cursor || told === undefined) return;
      await copyCursor(db, schema, cursor);
      await dropReceipt(db, schema, track, told);
    },
    erase: (erasure) => erase(db, schema, erasure),
    check: () => checkPostgres(db, schema, `sink ${name}`, isStateHere ? 'the state database' : 'its database'),
    compare: (comparison) => findDifferences(db, schema, comparison),
    read: (stream, source, window) => readRows(db, schema, stream, { source, window }),
    close: async () => {},
  };
}
