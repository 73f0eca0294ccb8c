import { setTimeout } from 'node:timers/promises';
import { RetryLater } from '../../model/errors.ts';
import { holderOf, isDead } from './holders.ts';
import type { Database, Queryable } from './index.ts';
import { raw, sql } from './sql.ts';

/**
 * A lock that needs no open transaction, and no connection of its own: its holder may send files for minutes, also behind a pooler. It is
 * a row among the leases, and ends by itself when nobody renews it.
 */
export interface Lock {
  /** In the transaction that writes what was done behind it. Throws if it was lost; nobody takes it before the transaction ends. */
  check(tx: Queryable): Promise<void>;
  /** At the end of that transaction. */
  giveBack(tx: Queryable): Promise<void>;
  /** Lets the next one in, and gives the lock back, unless a transaction has done so. */
  release(isGivenBack: boolean): Promise<void>;
}

const LOCK_SECONDS = 30;
const RENEW_MS = 5000;
const [FIRST_LOOK_MS, LOOK_AGAIN_MS] = [10, 200];

/** No source has this name. */
const KEY = 'locked files';
const inSeconds = raw(`clock_timestamp() + make_interval(secs => ${LOCK_SECONDS})`);

/** Within a process they queue up; between processes they look again. */
const queues = new WeakMap<Database, Map<string, Promise<void>>>();

export async function takeLock(db: Database, name: string): Promise<Lock> {
  const leave = await enter(db, name);
  try {
    const epoch = await waitFor(db, name);
    return hold(db, name, epoch, leave);
  } catch (error) {
    leave();
    throw error;
  }
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

async function waitFor(db: Database, name: string): Promise<number> {
  for (let ms = FIRST_LOOK_MS; ; ms = Math.min(2 * ms, LOOK_AGAIN_MS)) {
    const [taken] = await db.query<{ epoch: number }>(sql`
      insert into tributary.leases as l (source, stream, epoch, holder, expires_at)
      values (${KEY}, ${name}, 1, ${holderOf('files')}, ${inSeconds})
      on conflict (source, stream) do update set epoch = l.epoch + 1, holder = excluded.holder, expires_at = excluded.expires_at
      where l.expires_at <= clock_timestamp()
      returning epoch`);
    if (taken) return taken.epoch;
    const [other] = await db.query<{ holder: string; epoch: number }>(
      sql`select holder, epoch from tributary.leases where source = ${KEY} and stream = ${name}`,
    );
    if (other && isDead(other.holder)) await giveBack(db, name, other.epoch);
    else await setTimeout(ms);
  }
}

function hold(db: Database, name: string, epoch: number, leave: () => void): Lock {
  const timer = setInterval(() => {
    // Recovery: tried again in a few seconds; a lock that is lost is noticed by `check`.
    renew(db, name, epoch, 'for update skip locked').catch(() => {});
  }, RENEW_MS);
  timer.unref();
  return {
    async check(tx) {
      if (await renew(tx, name, epoch, 'for update')) return;
      throw new RetryLater(
        `this process was stopped for so long that another one may have changed the files (${name})`,
        {
          kept: 'what was committed before; the next commit looks at the files first',
          next: 'run again',
        },
      );
    },
    giveBack: (tx) => giveBack(tx, name, epoch),
    async release(isGivenBack) {
      clearInterval(timer);
      // Recovery: if the database is away, the lock ends by itself.
      if (!isGivenBack) await giveBack(db, name, epoch).catch(() => {});
      leave();
    },
  };
}

async function renew(db: Queryable, name: string, epoch: number, how: string): Promise<boolean> {
  const renewed = await db.query(sql`
    update tributary.leases set expires_at = ${inSeconds} where (source, stream) = (
      select source, stream from tributary.leases
      where source = ${KEY} and stream = ${name} and epoch = ${epoch} and expires_at > clock_timestamp() ${raw(how)})
    returning epoch`);
  return renewed.length > 0;
}

async function giveBack(db: Queryable, name: string, epoch: number): Promise<void> {
  await db.query(sql`
    update tributary.leases set expires_at = clock_timestamp(), epoch = epoch + 1
    where source = ${KEY} and stream = ${name} and epoch = ${epoch}`);
}
