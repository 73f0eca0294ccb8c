import { eitherSignal } from '../api/cancel.ts';
import {
  claimWindow,
  endWindow,
  finishBackfills,
  keepWindow,
  readBackfills,
  type WindowEnd,
} from '../cursor/backfills.ts';
import { keepRenewing } from '../cursor/leases.ts';
import { A_BUG } from '../cursor/runs.ts';
import { isLeased, readParked } from '../cursor/schedules.ts';
import { Fault, RetryLater } from '../model/errors.ts';
import type { Window } from '../model/window.ts';
import { isOfEvents, type StreamJob, type SyncDeps } from '../sync/job.ts';
import type { StreamReport } from '../sync/run.ts';
import { promoteWindows } from './backfills.ts';
import type { JobQueue } from './bull.ts';
import type { WindowPayload } from './payloads.ts';
import { isKeyRefused, type ScheduledStreams, streamKey } from './schedule.ts';
import { type WatchedDeps, watchedRun } from './watchdog.ts';

export interface WindowJobDeps extends WatchedDeps {
  scheduled: ScheduledStreams;
  queue: JobQueue;
  /** Called with an unexpected error, before the window is retried. */
  onBug(error: unknown, where: Pick<StreamJob, 'source' | 'stream'>): Promise<void>;
  /** Reads what is not certified of a window; with force, all of it. */
  readWindow(deps: SyncDeps, job: StreamJob, request: { window: Window; force: boolean }): Promise<StreamReport>;
}

/** After this many failed tries a window has failed, until somebody retries it. */
const MOST_TRIES = 5;

/** Returns for how long to delay the job if another window of the stream is being read, or if this one is to be retried. */
export async function runBackfillWindow(
  deps: WindowJobDeps,
  { backfill: id, start }: WindowPayload,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { state, scheduled, timings } = deps;
  const [backfill] = await readBackfills(state, id);
  const job = backfill && scheduled.get(streamKey(backfill.source, backfill.stream))?.job;
  // The config no longer has the source: the backfill stays in the state in case the source is added again.
  if (!backfill || !job || !isOfEvents(job)) return undefined;
  if ((await readParked(state, backfill.source, backfill.stream)).length > 0) return timings.recheckMs;
  const window = await claimWindow(state, id, start);
  if (window === 'over') return undefined;
  if (window === 'busy') return timings.busyMs;

  const wanted = new AbortController();
  // Renews the claim, and aborts the read when the backfill is paused or cancelled.
  const stopKeeping = keepRenewing(async () => {
    if (!(await keepWindow(state, id, start))) wanted.abort();
  });
  const either = eitherSignal(signal, wanted.signal);
  const isInterrupted = (): boolean => signal.aborted || wanted.signal.aborted;
  // The default outcome, in case of a bug: retried, and failed after MOST_TRIES.
  let result: WindowResult = { state: window.tries >= MOST_TRIES ? 'failed' : 'queued', message: A_BUG, tried: true };
  let rows = 0;
  try {
    const outcome = await read(deps, job, { window, force: backfill.force }, either.signal);
    rows = outcome.rows;
    result = await judge(deps, job, outcome.fault, { isInterrupted: isInterrupted(), tries: window.tries });
  } catch (error) {
    // Recovery: the window was not read. An unavailable database does not count as a try; a bug is reported to the worker.
    if (error instanceof Fault) result = { state: 'queued', message: error.message, tried: false };
    else await deps.onBug(error, job);
  } finally {
    // The claim is always released: one that is renewed for a window that nobody reads would block the stream's backfills.
    either.release();
    await stopKeeping();
    await endWindow(state, id, start, { ...result, rows });
  }
  if (result.state === 'queued' && !isInterrupted()) return timings.busyMs * (result.tried ? window.tries : 1);
  await finishBackfills(state);
  if (!signal.aborted) await promoteWindows(deps);
  return undefined;
}

type WindowResult = Omit<WindowEnd, 'rows'>;

/** Returns the next state of the window. Only failures of the service count as a try. */
async function judge(
  { state }: WindowJobDeps,
  { source, stream }: StreamJob,
  fault: Fault | undefined,
  { isInterrupted, tries }: { isInterrupted: boolean; tries: number },
): Promise<WindowResult> {
  if (!fault) return { state: 'done', tried: true };
  if (isInterrupted) return { state: 'queued', tried: false };
  const { message } = fault;
  // The next sync parks the source; its windows wait until it is unparked.
  if (isKeyRefused(fault)) return { state: 'queued', message, tried: false };
  if (!(fault instanceof RetryLater)) return { state: 'failed', message, tried: true };
  // A sync holds the lease; syncs have priority, however long they take.
  if (await isLeased(state, source, stream)) return { state: 'queued', tried: false };
  return { state: tries >= MOST_TRIES ? 'failed' : 'queued', message, tried: true };
}

async function read(
  deps: WindowJobDeps,
  job: StreamJob,
  request: { window: Window; force: boolean },
  signal: AbortSignal,
): Promise<{ fault: Fault | undefined; rows: number }> {
  try {
    const report = await watchedRun(deps, job, signal, (run) => deps.readWindow(run, job, request));
    const isProven = report.state === 'done' || report.fault !== undefined;
    const [first] = report.unproven;
    const why = first ? `: ${first.note}` : '';
    const doubt = new RetryLater(`the window was read and could not be proven complete${why}`, {
      next: 'tributary.windows says why; a window is tried five times in all',
    });
    return { fault: isProven ? report.fault : doubt, rows: report.tally.read };
  } catch (error) {
    // Recovery: the run could not start; the kind of fault decides whether the window is retried or has failed.
    if (error instanceof Fault) return { fault: error, rows: 0 };
    throw error;
  }
}
