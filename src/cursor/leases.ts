import { setTimeout } from 'node:timers/promises';
import { Cancelled, RetryLater } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';
import { isDead } from './database/holders.ts';
import type { Database, Queryable } from './database/index.ts';
import { raw, type Sql, sql } from './database/sql.ts';

/**
 * Exclusive write access to a stream. The epoch rises with every holder and is checked in every commit, so that a process that was
 * suspended past the end of its lease cannot write. Expiry goes by the database's clock, which all processes share.
 */
export type Lease<S extends string = SyncName> = Awaited<ReturnType<typeof acquireLease<S>>>;

interface LeaseOptions {
  /** For long work that yields: others that want the lease need not wait for its end. */
  givesWay?: boolean;
  signal?: AbortSignal | undefined;
  /** Runs in the transaction that takes the lease: reads what only the holder changes, and records that the run started. */
  onTaken?: ((tx: Queryable) => Promise<void>) | undefined;
  /** Called with the holder after two seconds of waiting. With it, waiting has no limit; without it, it ends after 30 s. */
  onWait?: ((holder: string) => void) | undefined;
}

const LEASE_SECONDS = 60;
/** How long a holder may take to finish its commit before it gives way. */
const PATIENCE_MS = 30_000;
/** The polling interval of a waiting process: doubles from the first value up to the second. */
const [FIRST_POLL_MS, LONGEST_POLL_MS] = [10, 200];
const REPORT_AFTER_MS = 2000; // Most runs end sooner; such short waits are not worth reporting.

export async function acquireLease<S extends string>(
  db: Database,
  source: string,
  stream: S,
  holder: string,
  { givesWay = false, signal, onWait, onTaken }: LeaseOptions = {},
) {
  const request = { source, stream, holder, givesWay };
  const patienceMs = onWait ? Number.POSITIVE_INFINITY : PATIENCE_MS;
  let epoch = await waitForLease(db, request, { signal, patienceMs, onWait, onTaken });
  const stopRenewing = keepRenewing(() => db.query(renewUnlocked(source, stream, epoch)));
  return {
    source,
    stream,
    /** Changes when the lease is handed over and taken back. */
    get epoch() {
      return epoch;
    },
    /** Whether another process waits for the lease. Only meaningful with `givesWay`. */
    isWanted: async (): Promise<boolean> => (await readLease(db, source, stream))?.wanted ?? false,
    /** Hands the lease to the waiting process, and takes it back afterwards. No commit may be in progress. */
    async giveWay(until: AbortSignal): Promise<void> {
      await db.query(giveBack(source, stream, sql`epoch = ${epoch}`));
      // The waiting process polls within this time; a holder that took the lease back at once would starve it.
      await pause(3 * LONGEST_POLL_MS, until);
      epoch = await waitForLease(db, request, { signal: until, patienceMs: Number.POSITIVE_INFINITY });
    },
    /** May be part of a transaction. If that fails, the lease must be released again, outside of it. */
    async release(tx: Queryable = db): Promise<void> {
      void stopRenewing();
      await tx.query(giveBack(source, stream, sql`epoch = ${epoch}`));
    },
  };
}

export async function withLease<T>(
  db: Database,
  source: string,
  stream: SyncName,
  holder: string,
  work: (lease: Lease) => Promise<T>,
  options?: LeaseOptions,
): Promise<T> {
  const lease = await acquireLease(db, source, stream, holder, options);
  try {
    return await work(lease);
  } finally {
    await lease.release();
  }
}

const RENEW_MS = 5000;

/** Renews until the returned function is called, which awaits a running renewal. One at a time, so that they do not pile up. */
export function keepRenewing(renew: () => Promise<unknown>): () => Promise<void> {
  let underWay: Promise<void> | undefined;
  const attempt = async (): Promise<void> => {
    // Recovery: retried in a few seconds; once the lease has expired, the fence rejects our commits.
    await renew().catch(() => {});
    underWay = undefined;
  };
  const timer = setInterval(() => {
    underWay ??= attempt();
  }, RENEW_MS).unref();
  return async () => {
    clearInterval(timer);
    await underWay;
  };
}

interface LeaseRequest extends Record<'source' | 'stream' | 'holder', string> {
  givesWay: boolean;
}

/** Waits only for holders that give way. A request with `givesWay` waits for any holder, and without limit to get its own lease back. */
async function waitForLease(
  db: Database,
  request: LeaseRequest,
  { signal, patienceMs, onWait, onTaken }: LeaseOptions & { patienceMs: number },
): Promise<number> {
  const { source, stream, givesWay } = request;
  const began = performance.now();
  let isReported = false;
  for (let ms = FIRST_POLL_MS; ; ms = Math.min(2 * ms, LONGEST_POLL_MS)) {
    const epoch = await takeFree(db, request, onTaken);
    if (epoch !== undefined) return epoch;
    const other = await readLease(db, source, stream);
    if (other && isDead(other.holder)) {
      // The holder was killed on this machine, so there is no need to wait until its lease expires.
      await db.query(giveBack(source, stream, sql`epoch = ${other.epoch}`));
      continue;
    }
    const waitedMs = performance.now() - began;
    if (!(givesWay || other?.gives_way) || waitedMs > patienceMs) throw heldByOther(request, other);
    if (!givesWay) await db.query(askForLease(source, stream));
    if (!isReported && other && waitedMs > REPORT_AFTER_MS) onWait?.(other.holder);
    isReported ||= waitedMs > REPORT_AFTER_MS;
    await pause(ms, signal);
  }
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await setTimeout(ms, undefined, signal ? { signal } : {}).catch((cause: unknown) => {
    throw new Cancelled('interrupted while waiting for the stream', { cause });
  });
}

/** Guarantees that the lease is ours until the transaction ends: its row is locked, so no other process can take it. */
export interface Fence {
  /** When the transaction began, by the database's clock. */
  now: Instant;
  /** Renews the lease, unless that was done seconds ago: for transactions that may take longer than a lease lasts. */
  renew(): Promise<void>;
}

/** `filters` are those that the rows were read with: while a backfill gave way, a sync may have changed them. */
type Fenced = Pick<Lease, 'source' | 'stream' | 'epoch'> & { filters?: string | undefined };

/** Must be called inside the transaction of every commit, before anything is written. */
export async function checkFence(tx: Queryable, { source, stream, epoch, filters }: Fenced): Promise<Fence> {
  let checkedAt = Number.NEGATIVE_INFINITY;
  const check = async (): Promise<Instant> => {
    const [held] = await tx.query<{ now: Instant; other: boolean }>(renewHeld(source, stream, epoch, filters));
    checkedAt = performance.now();
    const where = { source, stream };
    if (held?.other) {
      throw new RetryLater(
        'another process changed the filters of this stream: rows read with the old filters cannot be certified',
        {
          where,
          kept: 'everything committed so far; this batch was not written',
          next: 'give every process the same config, then run again',
        },
      );
    }
    if (held) return held.now;
    throw new RetryLater('this process lost its lease on the stream: another process may hold it now', {
      where,
      kept: 'everything committed so far; this batch was not written',
      next: 'nothing, if the other process is yours; otherwise run again',
    });
  };
  return {
    now: await check(),
    async renew() {
      if (performance.now() - checkedAt > RENEW_MS) await check();
    },
  };
}

/** Waits for all commits of the source that are in progress: each holds a row lock on its lease until it ends. */
export async function waitForCommits(db: Queryable, source: string): Promise<void> {
  await db.query(sql`select from tributary.leases where source = ${source} for share`);
}

/** Releases a lease that a run of this process left behind: the database was unavailable, or the run hangs and must not write any more. */
export async function releaseOwn(db: Queryable, source: string, stream: SyncName, holder: string): Promise<void> {
  await db.query(giveBack(source, stream, sql`holder = ${holder} and expires_at > clock_timestamp()`));
}

function takeFree(db: Database, request: LeaseRequest, onTaken: LeaseOptions['onTaken']): Promise<number | undefined> {
  return db.transaction(async (tx) => {
    const [expired] = await tx.query<{ epoch: number }>(takeExpired(request));
    const taken = expired ?? (await tx.query<{ epoch: number }>(insertLease(request)))[0];
    if (taken) await onTaken?.(tx);
    return taken?.epoch;
  });
}

/** Another process holds the lease; the caller may try again. */
export class StreamBusy extends RetryLater {}

function heldByOther({ source, stream, givesWay }: LeaseRequest, other: Found | undefined): StreamBusy {
  return new StreamBusy(`${other?.holder ?? 'another process'} is writing this stream now`, {
    where: { source, stream },
    kept: 'everything; nothing was read or written',
    next: `wait for it to finish, or, if it was killed, ${Math.max(1, Math.ceil(other?.left ?? LEASE_SECONDS))} s for its lease to end; then run again${givesWay ? ', or leave it to the workers with --queue' : ''}`,
  });
}

const inSeconds = raw(`clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})`);

/** Skips a row that a commit has locked instead of waiting for it: a waiting query would occupy a connection of the pool. */
const unlocked = (source: string, stream: string): Sql => sql`(source, stream) = (
  select source, stream from tributary.leases where source = ${source} and stream = ${stream} for update skip locked)`;

const takeExpired = ({ source, stream, holder, givesWay }: LeaseRequest): Sql => sql`
  update tributary.leases
  set epoch = epoch + 1, holder = ${holder}, gives_way = ${givesWay}, wanted_until = null, expires_at = ${inSeconds}
  where ${unlocked(source, stream)} and expires_at <= clock_timestamp()
  returning epoch`;

/** Checks for the row first: an insert would wait for a commit that has locked it. */
const insertLease = ({ source, stream, holder, givesWay }: LeaseRequest): Sql => sql`
  insert into tributary.leases (source, stream, epoch, holder, gives_way, expires_at)
  select ${source}, ${stream}, 1, ${holder}, ${givesWay}, ${inSeconds}
  where not exists (select from tributary.leases where source = ${source} and stream = ${stream})
  on conflict (source, stream) do nothing
  returning epoch`;

/** Two seconds exceed the polling interval of the waiting process, yet a process that stopped waiting is soon forgotten. */
const askForLease = (source: string, stream: string): Sql => sql`
  update tributary.leases set wanted_until = clock_timestamp() + interval '2 seconds' where ${unlocked(source, stream)}`;

/** The row stays locked until the transaction ends. */
export const renewHeld = (source: string, stream: string, epoch: number, filters?: string): Sql => sql`
  update tributary.leases set expires_at = ${inSeconds}
  where source = ${source} and stream = ${stream} and epoch = ${epoch} and expires_at > clock_timestamp()
  returning floor(extract(epoch from now()) * 1000)::bigint as now, exists (
    select from tributary.filters f where f.source = ${source} and f.stream = ${stream} and f.filters <> ${filters}::text) as other`;

const renewUnlocked = (source: string, stream: string, epoch: number): Sql => sql`
  update tributary.leases set expires_at = ${inSeconds} where ${unlocked(source, stream)} and epoch = ${epoch}
  returning epoch`;

/** Raises the epoch, so that a renewal in flight cannot revive the lease. */
const giveBack = (source: string, stream: string, which: Sql): Sql => sql`
  update tributary.leases set expires_at = clock_timestamp(), epoch = epoch + 1
  where source = ${source} and stream = ${stream} and ${which}`;

type Found = { holder: string; epoch: number; gives_way: boolean; wanted: boolean; left: number };

async function readLease(db: Queryable, source: string, stream: string): Promise<Found | undefined> {
  const [found] = await db.query<Found>(sql`
    select holder, epoch, gives_way, coalesce(wanted_until > clock_timestamp(), false) as wanted,
      extract(epoch from expires_at - clock_timestamp())::float8 as left
    from tributary.leases where source = ${source} and stream = ${stream}`);
  return found;
}
