import { performance } from 'node:perf_hooks';
import type { Lease } from '../cursor/leases.ts';
import { certifiedShare, readLedger } from '../cursor/ledger.ts';
import type { Slice } from '../extract/reader.ts';
import { ConfigError } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import { STREAMS, type Stream } from '../model/streams.ts';
import {
  DAY_MS,
  describeInstant,
  describeRange,
  type Entry,
  gaps,
  holds,
  startOfDay,
  type Window,
} from '../model/window.ts';
import type { Sink } from '../sinks/sink.ts';
import type { Committer } from './committer.ts';
import { createMeter, type Estimate, estimateRows } from './estimate.ts';
import { keptFrom, refuseExpired } from './holdings/retain.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { sweepInParallel } from './parallel-sweep.ts';
import { withReading } from './reading.ts';
import { type OpenRun, type StreamReport, withRun } from './run.ts';
import { joined, type Share, shared } from './windows-to-read.ts';

/** Reads a window into every sink that lacks part of it. Uses the backfill lane and lets syncs go first. */
export async function backfillStream(
  deps: SyncDeps,
  job: StreamJob,
  { window, force = false }: BackfillRequest,
  kind: 'backfill' | 'repair' = 'backfill',
): Promise<StreamReport> {
  let read: Window | undefined;
  const report = await withRun(deps, job, kind, (run) =>
    withReading(
      deps,
      job,
      run,
      async ({ reader, committer }) => {
        const { signal } = deps;
        const { source, stream } = job;
        const { window: wanted, needs, seen } = await findUnread(deps, job, { window, force, isAttested: true });
        if (wanted.start >= wanted.end) throw notYet(window);
        read = wanted;
        const shares = shared(needs).map((share) => ({ ...share, lane: 'backfill' as const }));
        const handover = createHandover(run.lease, committer, signal);
        const looked = deps.isWatched
          ? await estimateRows(joined(shares.map((share) => share.window)), seen, wanted.start, (place) =>
              job.probe(place, { lane: 'backfill', signal }),
            )
          : undefined;
        const onSlice = countDone(deps, job, run, shares, looked?.parts ?? []);
        const isBusy = createIsBusy();
        await sweepInParallel(shares, {
          chainsAtOnce: () => parallelism(seen.tookMs, job.requestsPerSecond, reader.answerBytes(), isBusy()),
          profile: reader.profile,
          signal,
          sweep: (part, { lane }, still) => {
            run.enter(part);
            deps.log.debug({ source, stream, window: describeRange(part) }, 'backfilling');
            return reader.sweep({ window: part, lane, signal: still });
          },
          async take(slice, { sinks }, chain) {
            handover.offer();
            await committer.add(slice, sinks, chain);
            onSlice(slice);
          },
        });
        await handover.settled();
        return wanted;
      },
      window,
    ),
  );
  // The fault may be a lost database, so the ledger is not asked; the fault itself says what was kept.
  if (!read || report.fault) return report;
  const sinks = deps.sinks.map(({ name }) => name);
  return { ...report, range: { window: read, certified: await certifiedShare(deps.state, job, sinks, read) } };
}

/** Before anything is asked or written down: a range that cannot be read, or was not meant. */
export function refuseRange({ sinks }: Pick<SyncDeps, 'sinks'>, jobs: readonly StreamJob[], window: Window): void {
  refuseExpired(sinks, window);
  // The end of today is a way to say now.
  if (window.end > startOfDay(Date.now()) + DAY_MS)
    throw new ConfigError(`the end of the range, ${describeInstant(window.end)}, lies in the future`, {
      kept: 'everything; nothing was read or changed',
      next: 'give now, or an earlier time',
    });
  if (jobs.every(({ policy }) => window.start >= Date.now() - policy.settleMs)) throw notYet(window);
}

function notYet(window: Window): ConfigError {
  return new ConfigError(`no part of ${describeRange(window)} is old enough to be certified`, {
    next: 'choose an earlier start; a sync reads more recent events',
  });
}

/** Reports how much is done. */
function countDone(
  { onProgress }: SyncDeps,
  { source, stream }: StreamJob,
  run: OpenRun,
  shares: readonly Share[],
  estimates: readonly Estimate[],
): (slice: Slice) => void {
  const windows = shares.map(({ window }) => window);
  const meter = createMeter(windows, estimates);
  let [rows, done] = [0, 0];
  return ({ window, rows: read }) => {
    // A page may hold rows of other windows too, which come again there.
    const own = window ? read.filter(({ at }) => holds(window, at)).length : 0;
    rows += own;
    if (window) done = meter(window, own);
    onProgress({ source, stream, runId: run.id, rows, requests: run.requests(), through: window?.end, done });
  };
}

export interface BackfillRequest {
  window: Window;
  /** Reads again what is proven already. */
  force?: boolean;
  /** The run has asked the sinks what they hold of the window. */
  isAttested?: boolean;
}

type Deps = Pick<SyncDeps, 'state' | 'sinks' | 'signal'>;

/**
 * The parts of a window that are still to be read, by sink, and a sample of the service to estimate them by. The window ends where rows are
 * too young to be called complete, by the clock of the service; it may be empty. What some sink has not proven is the same, unless by force.
 */
export async function findUnread(
  { state, sinks, signal }: Deps,
  job: StreamJob,
  { window: asked, force = false, isAttested = false }: BackfillRequest,
) {
  const { source, stream, policy } = job;
  const seen = await job.probe(asked, { lane: 'backfill', signal });
  // What may still come late is left to the syncs.
  const end = Math.min(asked.end, (seen.serverNow ?? Date.now()) - policy.settleMs);
  const window = { start: asked.start, end: Math.max(asked.start, end) };
  const each = sinks.map(async (sink) => {
    const ledger = await readLedger(state, { source, stream, sink: sink.name }, window.start);
    const proven = ledger.filter(({ certified, start }) => certified && start < window.end);
    const held = isAttested ? proven : await stillHeld(sink, STREAMS[stream], source, proven);
    const kept = { ...window, start: Math.max(window.start, keptFrom(sink, Date.now())) };
    return { sink: sink.name, open: gaps(held, kept), all: gaps([], kept) };
  });
  const found = await Promise.all(each);
  const needs = found.map(({ sink, open, all }) => ({ sink, windows: force ? all : open }));
  return { window, needs, unproven: joined(found.flatMap(({ open }) => open)), seen };
}

/** What is proven and still in the sink. Nothing is reopened: the run that reads the window does that. */
async function stillHeld(
  sink: Sink,
  stream: Stream,
  source: string,
  proven: readonly Entry[],
): Promise<readonly Entry[]> {
  if (!sink.attest || proven.length === 0) return proven;
  const held = await sink.attest(stream, source, proven);
  return proven.filter(({ rows }, i) => held[i]?.rows === rows && held[i]?.foreign === undefined);
}

/** The same in chunks for a queue. */
export async function unreadChunks(deps: Deps, job: StreamJob, request: BackfillRequest): Promise<Window[]> {
  refuseRange(deps, [job], request.window);
  const { needs, seen } = await findUnread(deps, job, request);
  return joined(needs.flatMap(({ windows }) => windows)).flatMap((window) => chunksOf(window, seen.density));
}

/** How a long window is divided among chains, and among jobs of a queue. Pure. */

/** Rows a job of the queue holds: some minutes of work on any plan, so that a lost worker loses little. */
const ROWS_A_CHUNK = 100_000;
const MOST_CHUNKS = 400;

/** A chain waits for its answer and for the sinks before its next request; a second chain uses the budget meanwhile. */
const LEAST_SIDE_BY_SIDE = 2;
const MOST_SIDE_BY_SIDE = 8;
/** Room for answers that are slower than the one that was measured. */
const ROOM = 2;

/** Pages that are read side by side are held side by side. Eight usual ones take 35 MB. */
const MOST_BYTES_SIDE_BY_SIDE = 48 * 1024 * 1024;

/** Latency times rate is the number of requests in flight that uses up the budget (Little's law); fewer where pages are large. */
export function parallelism(answerMs: number, requestsPerSecond: number, answerBytes = 0, isBusy = false): number {
  const inFlight = Math.ceil((answerMs / 1000) * requestsPerSecond * ROOM);
  // A process that is busy all the time reads no faster with more chains. It holds a page for each, and its sinks get shorter stretches.
  const most = isBusy ? LEAST_SIDE_BY_SIDE : MOST_SIDE_BY_SIDE;
  const wanted = Math.min(most, Math.max(LEAST_SIDE_BY_SIDE, inFlight));
  return Math.max(1, Math.min(wanted, Math.floor(MOST_BYTES_SIDE_BY_SIDE / Math.max(1, answerBytes))));
}

const BUSY = 0.75;
const BUSY_FOR_MS = 1000;

/** Whether the event loop has had no pause worth mentioning lately; until that is known, yes. */
export function createIsBusy(): () => boolean {
  let [since, lookedAt, isBusy] = [performance.eventLoopUtilization(), performance.now(), true];
  return () => {
    if (performance.now() - lookedAt < BUSY_FOR_MS) return isBusy;
    isBusy = performance.eventLoopUtilization(since).utilization > BUSY;
    [since, lookedAt] = [performance.eventLoopUtilization(), performance.now()];
    return isBusy;
  };
}

/** Chunks for a queue: whole days, whatever was proven of them already. */
export function chunksOf(window: Window, density: number): Window[] {
  const days = Math.ceil((window.end - window.start) / DAY_MS);
  return cut(window, Math.max(daysFor(ROWS_A_CHUNK, density), Math.ceil(days / MOST_CHUNKS)));
}

/** A stream without rows is cut into months: a handful of requests each. */
const LONGEST_DAYS = 31;

const daysFor = (rows: number, density: number): number =>
  Math.min(LONGEST_DAYS, Math.max(1, Math.floor(rows / (density * DAY_MS))));

function cut({ start, end }: Window, days: number): Window[] {
  const pieces: Window[] = [];
  for (let at: Instant = start; at < end; ) {
    const next = Math.min(end, startOfDay(at) + days * DAY_MS);
    pieces.push({ start: at, end: next });
    at = next;
  }
  return pieces;
}

const LOOK_EVERY_MS = 500;

/** Lets a sync that waits for the stream go first, between two commits. */
function createHandover(lease: Lease, committer: Pick<Committer, 'between'>, signal: AbortSignal) {
  let lookedAt = performance.now();
  let isLooking = false;
  let current: Promise<void> = Promise.resolve();

  const look = async (): Promise<void> => {
    if (await lease.isWanted()) await committer.between(() => lease.giveWay(signal));
  };

  return {
    /** Does not block: reading goes on, only commits wait. */
    offer() {
      if (isLooking || performance.now() - lookedAt < LOOK_EVERY_MS) return;
      isLooking = true;
      current = look().finally(() => {
        lookedAt = performance.now();
        isLooking = false;
      });
      current.catch(() => {}); // Thrown by `settled`, and by every commit that waits for it.
    },
    /** Throws the error that kept this run from taking the stream back. */
    settled: () => current,
  };
}
