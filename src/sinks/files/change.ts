import type { Database, Queryable, Transaction } from '../../cursor/database/index.ts';
import type { Sql } from '../../cursor/database/sql.ts';
import { type Lock, takeLock } from '../../cursor/locks.ts';

/** Writes files first, under locks but without a transaction, because uploads take minutes; then the state, in one short transaction. */
export interface Change {
  /** Waits for the lock of this name. It is held until the state is written. */
  lock(name: string): Promise<void>;
  /** Throws if a lock was lost. Call it when the files are ready, before the first one is published. */
  check(): Promise<void>;
  /** Queues a write to the state. Writes run at the end, in this order; those that move a cursor also run, rolled back, in `foresee`. */
  later(write: Write | Sql, options?: { movesCursor?: boolean }): void;
  /** Reads the state as it will be after the queued cursor moves. */
  foresee<T>(read: (db: Queryable) => Promise<T>): Promise<T>;
}

type Write = (tx: Transaction) => Promise<unknown>;

export type Commit = (write: (tx: Transaction) => Promise<void>) => Promise<void>;

export async function inChange<T>(
  state: Database,
  name: string,
  work: (change: Change) => Promise<T>,
  commit: Commit = (write) => state.transaction(write),
): Promise<T> {
  const locks = new Map<string, Lock>();
  const writes: Array<{ write: Write; movesCursor: boolean }> = [];
  const lock = async (wanted: string): Promise<void> => {
    if (!locks.has(wanted)) locks.set(wanted, await takeLock(state, wanted));
  };
  const foresee = async <R>(read: (db: Queryable) => Promise<R>): Promise<R> => {
    const moves = writes.filter(({ movesCursor }) => movesCursor);
    if (moves.length === 0) return read(state);
    const tx = await state.begin();
    try {
      for (const { write } of moves) await write(tx);
      return await read(tx);
    } finally {
      await tx.rollback();
    }
  };
  let isWritten = false;
  try {
    await lock(name);
    const later: Change['later'] = (write, { movesCursor = false } = {}) =>
      void writes.push({ write: typeof write === 'function' ? write : (tx) => tx.query(write), movesCursor });
    const check = async (db: Queryable = state): Promise<void> => {
      for (const held of locks.values()) await held.check(db);
    };
    const result = await work({ lock, check, later, foresee });
    if (writes.length === 0) return result;
    await commit(async (tx) => {
      await check(tx);
      for (const { write } of writes) await write(tx);
      for (const held of locks.values()) await held.giveBack(tx);
    });
    isWritten = true;
    return result;
  } finally {
    for (const held of [...locks.values()].reverse()) await held.release(isWritten);
  }
}
