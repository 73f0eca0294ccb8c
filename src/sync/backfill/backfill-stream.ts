import type { Lease } from '../../cursor/leases.ts';
import { certifiedShare } from '../../cursor/ledger.ts';
import type { Slice } from '../../extract/reader.ts';
import { describeRange, holds, type Window } from '../../model/window.ts';
import type { Committer } from '../committer.ts';
import { createMeter, type Estimate, estimateRows } from '../estimate.ts';
import type { StreamJob, SyncDeps } from '../job.ts';
import { sweepInParallel } from '../parallel-sweep.ts';
import { createChainsAtOnce } from '../parallelism.ts';
import { withReading } from '../reading.ts';
import { type OpenRun, type StreamReport, withRun } from '../run.ts';
import { joined, type Share, shared } from '../windows-to-read.ts';
import { type BackfillRequest, findUnread, notYet } from './unread.ts';

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
        const measured = { ...reader, answerMs: () => seen.tookMs };
        await sweepInParallel(shares, {
          chainsAtOnce: createChainsAtOnce(job.requestsPerSecond, measured),
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
