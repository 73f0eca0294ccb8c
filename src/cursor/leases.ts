import { hostname } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { Cancelled, RetryLater } from '../model/errors.ts';
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
  /** Another one after the stream was given away and taken again. */
  readonly epoch: number;
  /** Whether somebody waits for the stream. Only of interest to a holder that gives way. */
  isWanted(): Promise<boolean>;
  /** Hands the stream to whoever waits for it, and takes it again afterwards. No commit may be under way. */
  giveWay(signal: AbortSignal): Promise<void>;
  release(): Promise<void>;
}

export interface LeaseOptions {
  /** A long piece of work that lets others go first: they need not wait for its end. */
  givesWay?: boolean;
  /** Ends the waiting for a holder that gives way. */
  signal?: AbortSignal;
}

const LEASE_SECONDS = 60;
const RENEW_MS = (LEASE_SECONDS / 4) * 1000;

/** Who is at work, for others who find a stream taken. The process id tells them whether we are still there. */
export const holderOf = (command: string): string => `tributary ${command} (process ${process.pid} on ${hostname()})`;

/** How long one who is wanted may take to come to the end of a commit, and how often the one who waits looks again. */
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 200;

export async function acquireLease(
  db: Database,
  source: string,
  stream: StreamName,
  holder: string,
  { givesWay = false, signal }: LeaseOptions = {},
): Promise<Lease> {
  const claim = { source, stream, holder, givesWay };
  let epoch = await takeTurn(db, claim, signal, PATIENCE_MS);
  const renewal = setInterval(() => {
    // Recovery: a renewal that fails is tried again in a quarter of the lease; past its end the fence refuses our commits.
    db.query(renewLease(source, stream, epoch)).catch(() => {});
  }, RENEW_MS);
  renewal.unref();
  return {
    source,
    stream,
    get epoch() {
      return epoch;
    },
    async isWanted() {
      const [lease] = await db.query<{ wanted: boolean }>(readLease(source, stream));
      return lease?.wanted ?? false;
    },
    async giveWay(until) {
      await db.query(giveBackLease(source, stream, epoch));
      // Whoever waits looks again within this time; a holder that took the stream back at once would starve it.
      await pause(3 * LOOK_AGAIN_MS, until);
      epoch = await takeTurn(db, claim, until, Number.POSITIVE_INFINITY);
    },
    async release() {
      clearInterval(renewal);
      await db.query(giveBackLease(source, stream, epoch));
    },
  };
}

interface Claim {
  source: string;
  stream: StreamName;
  holder: string;
  givesWay: boolean;
}

/**
 * Takes the stream. A holder that gives way is waited for, and long work waits for whoever is at it; one that has given way itself
 * waits for as long as it takes.
 */
async function takeTurn(
  db: Database,
  claim: Claim,
  signal: AbortSignal | undefined,
  patienceMs: number,
): Promise<number> {
  const { source, stream, givesWay } = claim;
  const until = performance.now() + patienceMs;
  for (;;) {
    const taken = await take(db, claim);
    if (taken) return taken.epoch;
    const [other] = await db.query<{ gives_way: boolean }>(readLease(source, stream));
    const mayWait = givesWay || other?.gives_way;
    if (!mayWait || performance.now() > until) throw await heldByOther(db, source, stream);
    if (!givesWay) await db.query(askForLease(source, stream));
    await pause(LOOK_AGAIN_MS, signal);
  }
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await setTimeout(ms, undefined, signal ? { signal } : {});
  } catch (error) {
    throw new Cancelled('interrupted while waiting for the stream', { cause: error });
  }
}

/**
 * The fence: inside the transaction of every commit. The row stays locked until then, so nobody takes over in between; a
 * renewal waits too, so the fence renews.
 */
export async function checkFence(
  tx: Queryable,
  { source, stream, epoch }: Pick<Lease, 'source' | 'stream' | 'epoch'>,
): Promise<void> {
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

async function take(db: Database, claim: Claim): Promise<{ epoch: number } | undefined> {
  const { source, stream } = claim;
  const [taken] = await db.query<{ epoch: number }>(takeLease(claim));
  if (taken) return taken;
  const [other] = await db.query<{ holder: string; epoch: number }>(readLease(source, stream));
  if (!other || !isDead(other.holder)) return undefined;
  // It was killed on this machine and cannot come back: nobody needs to wait for its lease to end.
  await db.query(giveBackLease(source, stream, other.epoch));
  return (await db.query<{ epoch: number }>(takeLease(claim)))[0];
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

const takeLease = ({ source, stream, holder, givesWay }: Claim): Sql => ({
  text: `
    insert into tributary.leases as l (source, stream, epoch, holder, gives_way, expires_at)
    values ($1, $2, 1, $3, $4, clock_timestamp() + make_interval(secs => ${LEASE_SECONDS}))
    on conflict (source, stream) do update
      set epoch = l.epoch + 1, holder = excluded.holder, gives_way = excluded.gives_way, wanted_until = null,
        expires_at = excluded.expires_at
      where l.expires_at <= clock_timestamp()
    returning epoch`,
  values: [source, stream, holder, givesWay],
});

/** Outlives the time until the one who waits looks again; one that has left is soon no longer waited for. */
const askForLease = (source: string, stream: string): Sql => ({
  text: `
    update tributary.leases set wanted_until = clock_timestamp() + interval '2 seconds'
    where source = $1 and stream = $2`,
  values: [source, stream],
});

const renewLease = (source: string, stream: string, epoch: number, further = ''): Sql => ({
  text: `
    update tributary.leases set expires_at = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where source = $1 and stream = $2 and epoch = $3 ${further}`,
  values: [source, stream, epoch],
});

/** Its epoch ends with it: a renewal that comes round, or is still under way, would take the stream back for nobody. */
const giveBackLease = (source: string, stream: string, epoch: number): Sql => ({
  text: `
    update tributary.leases set expires_at = clock_timestamp(), epoch = epoch + 1
    where source = $1 and stream = $2 and epoch = $3`,
  values: [source, stream, epoch],
});

const readLease = (source: string, stream: string): Sql => ({
  text: `
    select holder, epoch, gives_way, coalesce(wanted_until > clock_timestamp(), false) as wanted,
      extract(epoch from expires_at - clock_timestamp())::float8 as left
    from tributary.leases where source = $1 and stream = $2`,
  values: [source, stream],
});
