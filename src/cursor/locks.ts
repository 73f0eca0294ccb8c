import { RetryLater } from '../model/errors.ts';
import { holderOf } from './database/holders.ts';
import type { Database, Queryable } from './database/index.ts';
import { acquireLease, renewHeld } from './leases.ts';

/** A lock for writing files, which may take minutes. It is a lease, so no transaction stays open and it works behind a pooler. */
export type Lock = Awaited<ReturnType<typeof takeLock>>;

/** The lease's source: no real source has this name. */
const KEY = 'locked files';

/** Callers within a process wait in a queue; processes poll the lease. */
const queues = new WeakMap<Database, Map<string, Promise<void>>>();

export async function takeLock(db: Database, name: string) {
  const leave = await enter(db, name);
  // Waits without limit: the caller has already read the rows for these files.
  const waits = { givesWay: true, onWait: () => {} };
  const lease = await acquireLease(db, KEY, name, holderOf('files'), waits).catch((error: unknown) => {
    leave();
    throw error;
  });
  return {
    /** Call in the transaction that records the work. Throws if the lock was lost; nobody can take it until the transaction ends. */
    async check(tx: Queryable): Promise<void> {
      if ((await tx.query(renewHeld(KEY, name, lease.epoch))).length > 0) return;
      throw new RetryLater(
        `this process was stopped for so long that another one may have changed the files (${name})`,
        { kept: 'what was committed before; the next commit looks at the files first', next: 'run again' },
      );
    },
    /** Call at the end of that transaction. */
    giveBack: (tx: Queryable): Promise<void> => lease.release(tx),
    /** Admits the next caller, and releases the lease unless a transaction has done so. */
    async release(isGivenBack: boolean): Promise<void> {
      // Recovery: if the database is unavailable, the lease expires by itself.
      if (!isGivenBack) await lease.release().catch(() => {});
      leave();
    },
  };
}

async function enter(db: Database, name: string): Promise<() => void> {
  const queue = queues.get(db) ?? new Map<string, Promise<void>>();
  queues.set(db, queue);
  const before = queue.get(name);
  let leave = (): void => {};
  const mine = new Promise<void>((resolve) => {
    leave = resolve;
  });
  queue.set(name, mine);
  await before;
  return () => {
    if (queue.get(name) === mine) queue.delete(name);
    leave();
  };
}
