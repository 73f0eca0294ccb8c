import { RetryLater } from '../model/errors.ts';
import { holderOf } from './database/holders.ts';
import type { Database, Queryable } from './database/index.ts';
import { acquireLease, renewHeld } from './leases.ts';

/** Its holder may send files for minutes, also behind a pooler: no transaction stays open. It is a lease. */
export type Lock = Awaited<ReturnType<typeof takeLock>>;

/** No source has this name. */
const KEY = 'locked files';

/** Within a process they queue up; between processes they look again. */
const queues = new WeakMap<Database, Map<string, Promise<void>>>();

export async function takeLock(db: Database, name: string) {
  const leave = await enter(db, name);
  // However long another holder takes: who waits for files has read their rows already.
  const waits = { givesWay: true, onWait: () => {} };
  const lease = await acquireLease(db, KEY, name, holderOf('files'), waits).catch((error: unknown) => {
    leave();
    throw error;
  });
  return {
    /** In the transaction that writes what was done behind it. Throws if it was lost; nobody takes it before the transaction ends. */
    async check(tx: Queryable): Promise<void> {
      if ((await tx.query(renewHeld(KEY, name, lease.epoch))).length > 0) return;
      throw new RetryLater(
        `this process was stopped for so long that another one may have changed the files (${name})`,
        { kept: 'what was committed before; the next commit looks at the files first', next: 'run again' },
      );
    },
    /** At the end of that transaction. */
    giveBack: (tx: Queryable): Promise<void> => lease.release(tx),
    /** Lets the next one in, and gives the lock back, unless a transaction has done so. */
    async release(isGivenBack: boolean): Promise<void> {
      // Recovery: if the database is away, the lock ends by itself.
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
