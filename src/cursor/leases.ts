import { hostname } from 'node:os';
import { RetryLater } from '../model/errors.ts';
import type { StreamName } from '../model/streams.ts';
import type { Database, Queryable } from './database.ts';
import type { Sql } from './sql.ts';

/**
 * Two writers never meet on a stream. A lease says who may write; its epoch rises with every holder and is checked inside
 * every commit, so that a holder who slept past its lease (a stopped process, a lost network) cannot write any more.
 * The clock is the database's: it is the one clock that all processes share.
 */
export interface Lease {
  source: string;
  stream: StreamName;
  epoch: number;
  release(): Promise<void>;
}

const LEASE_SECONDS = 60;
const RENEW_MS = (LEASE_SECONDS / 4) * 1000;

/** Who is at work, for others who find a stream taken. The process id tells them whether we are still there. */
export const holderOf = (command: string): string => `tributary ${command} (process ${process.pid} on ${hostname()})`;

export async function acquireLease(db: Database, source: string, stream: StreamName, holder: string): Promise<Lease> {
  const { epoch } = (await take(db, source, stream, holder)) ?? {};
  if (epoch === undefined) throw await heldByOther(db, source, stream);
  const renewal = setInterval(() => {
    // Recovery: a renewal that fails is tried again in a quarter of the lease; past its end the fence refuses our commits.
    db.query(renewLease(source, stream, epoch)).catch(() => {});
  }, RENEW_MS);
  renewal.unref();
  return {
    source,
    stream,
    epoch,
    async release() {
      clearInterval(renewal);
      await db.query(giveBackLease(source, stream, epoch));
    },
  };
}

/**
 * The fence: inside the transaction of every commit. The row stays locked until then, so nobody takes over in between; a
 * renewal waits too, so the fence renews.
 */
export async function checkFence(tx: Queryable, { source, stream, epoch }: Omit<Lease, 'release'>): Promise<void> {
  const held = await tx.query(renewLease(source, stream, epoch, 'and expires_at > clock_timestamp() returning epoch'));
  if (held.length > 0) return;
  throw new RetryLater('this process was away too long and lost the stream: another may have taken it over', {
    where: { source, stream },
    kept: 'everything committed so far; this batch was not written',
    next: 'nothing, if the other process is yours; else run again',
  });
}

/** Returns once every commit of the source that is under way now is through: each holds the row of its lease until then. */
export async function waitForCommits(db: Queryable, source: string): Promise<void> {
  await db.query({ text: 'select from tributary.leases where source = $1 for share', values: [source] });
}

/**
 * Gives back what a run of this process held and could not give back, because the database was away just then. Only for a
 * holder who knows that none of its runs is on the stream.
 */
export async function giveBackOwn(db: Queryable, source: string, stream: StreamName, holder: string): Promise<void> {
  await db.query({
    text: `
      update tributary.leases set expires_at = clock_timestamp()
      where source = $1 and stream = $2 and holder = $3 and expires_at > clock_timestamp()`,
    values: [source, stream, holder],
  });
}

async function take(
  db: Database,
  source: string,
  stream: StreamName,
  holder: string,
): Promise<{ epoch: number } | undefined> {
  const [taken] = await db.query<{ epoch: number }>(takeLease(source, stream, holder));
  if (taken) return taken;
  const [other] = await db.query<{ holder: string; epoch: number }>(readLease(source, stream));
  if (!other || !isDead(other.holder)) return undefined;
  // It was killed on this machine and cannot come back: nobody needs to wait for its lease to end.
  await db.query(giveBackLease(source, stream, other.epoch));
  return (await db.query<{ epoch: number }>(takeLease(source, stream, holder)))[0];
}

/** Only of a process on this machine can we know that it is gone. */
function isDead(holder: string): boolean {
  const m = /\(process (\d+) on (.*)\)$/.exec(holder);
  if (!m || m[2] !== hostname() || Number(m[1]) === process.pid) return false;
  try {
    process.kill(Number(m[1]), 0);
    return false;
  } catch (error) {
    // EPERM: it is there, and another user's.
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}

async function heldByOther(db: Queryable, source: string, stream: StreamName): Promise<RetryLater> {
  const [other] = await db.query<{ holder: string; left: number }>(readLease(source, stream));
  return new RetryLater(`${other?.holder ?? 'another process'} is writing this stream now`, {
    where: { source, stream },
    kept: 'everything; nothing was read or written',
    next: `wait for it to finish, or, if it was killed, ${Math.max(1, Math.ceil(other?.left ?? LEASE_SECONDS))} s for its lease to end; then run again`,
  });
}

const takeLease = (source: string, stream: string, holder: string): Sql => ({
  text: `
    insert into tributary.leases as l (source, stream, epoch, holder, expires_at)
    values ($1, $2, 1, $3, clock_timestamp() + make_interval(secs => ${LEASE_SECONDS}))
    on conflict (source, stream) do update
      set epoch = l.epoch + 1, holder = excluded.holder, expires_at = excluded.expires_at
      where l.expires_at <= clock_timestamp()
    returning epoch`,
  values: [source, stream, holder],
});

const renewLease = (source: string, stream: string, epoch: number, further = ''): Sql => ({
  text: `
    update tributary.leases set expires_at = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where source = $1 and stream = $2 and epoch = $3 ${further}`,
  values: [source, stream, epoch],
});

const giveBackLease = (source: string, stream: string, epoch: number): Sql => ({
  text: 'update tributary.leases set expires_at = clock_timestamp() where source = $1 and stream = $2 and epoch = $3',
  values: [source, stream, epoch],
});

const readLease = (source: string, stream: string): Sql => ({
  text: `
    select holder, epoch, extract(epoch from expires_at - clock_timestamp())::float8 as left
    from tributary.leases where source = $1 and stream = $2`,
  values: [source, stream],
});
