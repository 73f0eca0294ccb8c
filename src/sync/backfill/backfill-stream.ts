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

/** Reads a window into every sink in which a part of it is missing. Uses the backfill lane and yields to syncs. */
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
        const estimate = deps.isWatched
          ? await estimateRows(joined(shares.map((share) => share.window)), seen, wanted.start, (part) =>
              job.probe(part, { lane: 'backfill', signal }),
            )
          : undefined;
        const onSlice = createProgressReporter(deps, job, run, shares, estimate?.parts ?? []);
        const measured = { ...reader, answerMs: () => seen.tookMs };
        await sweepInParallel(shares, {
          chainsAtOnce: createChainsAtOnce(job.requestsPerSecond, measured),
          profile: reader.profile,
          signal,
          sweep: (part, { lane }, sweepSignal) => {
            run.enter(part);
            deps.log.debug({ source, stream, window: describeRange(part) }, 'backfilling');
            return reader.sweep({ window: part, lane, signal: sweepSignal });
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
  // After a fault the ledger is not queried, as the database may be lost; the fault itself says what was kept.
  if (!read || report.fault) return report;
  const sinks = deps.sinks.map(({ name }) => name);
  return { ...report, range: { window: read, certified: await certifiedShare(deps.state, job, sinks, read) } };
}

function createProgressReporter(
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
    // A page may also hold rows of other windows, which are read again with those windows.
    const own = window ? read.filter(({ at }) => holds(window, at)).length : 0;
    rows += own;
    if (window) done = meter(window, own);
    onProgress({ source, stream, runId: run.id, rows, requests: run.requests(), through: window?.end, done });
  };
}

const CHECK_EVERY_MS = 500;

/** Hands the lease to a waiting sync, between two commits, and takes it back afterwards. */
function createHandover(lease: Lease, committer: Pick<Committer, 'between'>, signal: AbortSignal) {
  let checkedAt = performance.now();
  let isChecking = false;
  let current: Promise<void> = Promise.resolve();

  const check = async (): Promise<void> => {
    if (await lease.isWanted()) await committer.between(() => lease.giveWay(signal));
  };

  return {
    /** Does not block: reading continues, and only commits wait. */
    offer() {
      if (isChecking || performance.now() - checkedAt < CHECK_EVERY_MS) return;
      isChecking = true;
      current = check().finally(() => {
        checkedAt = performance.now();
        isChecking = false;
      });
      current.catch(() => {}); // Thrown by `settled`, and by every commit that waits for it.
    },
    /** Rejects if this run could not take the lease back. */
    settled: () => current,
  };
}
