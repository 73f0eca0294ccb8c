import { setTimeout as sleep } from 'node:timers/promises';
import {
  claimWindow,
  endWindow,
  finishBackfills,
  keepWindow,
  readBackfills,
  readBackfillWindows,
} from '../cursor/backfills.ts';
import { Fault, RetryLater } from '../model/errors.ts';
import type { Window } from '../model/window.ts';
import type { StreamJob, SyncDeps } from '../sync/job.ts';
import type { StreamReport } from '../sync/run.ts';
import { hintWindows } from './backfills.ts';
import type { JobQueue } from './bull.ts';
import { eitherSignal } from './either-signal.ts';
import type { WindowPayload } from './payloads.ts';
import { type Pace, type Plans, planKey } from './plan.ts';

export interface WindowTurnDeps extends Omit<SyncDeps, 'signal'> {
  plans: Plans;
  pace: Pace;
  queue: JobQueue;
  /** Reads a window that is not yet certified; with force, also what is. */
  readWindow(deps: SyncDeps, job: StreamJob, request: { window: Window; force: boolean }): Promise<StreamReport>;
}

/** A window that so many tries could not read has failed, until somebody retries it. */
const MOST_TRIES = 5;
const KEEP_EVERY_MS = 5000;

/**
 * Follows a hint that a window of a backfill is to be read. Returns how long to put the job off: another window of the stream is
 * being read, or this one is to be tried again.
 */
export async function takeWindow(
  deps: WindowTurnDeps,
  { backfill: id, start }: WindowPayload,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { state, plans, pace } = deps;
  const [backfill] = await readBackfills(state, id);
  const plan = backfill && plans.get(planKey(backfill.source, backfill.stream));
  // A source that the config no longer has: the backfill waits in the state, should it come back.
  if (!backfill || !plan) return undefined;
  const claim = await claimWindow(state, id, start);
  if (claim === 'over') return undefined;
  if (claim === 'busy') return pace.busyMs;
  const window = (await readBackfillWindows(state, id)).find((each) => each.start === start);
  if (!window) return undefined;

  const wanted = new AbortController();
  const over = new AbortController();
  const keeping = keep(deps, id, start, { wanted, over: over.signal });
  const either = eitherSignal(signal, wanted.signal);
  const outcome = await read(deps, plan.job, { window, force: backfill.force }, either.signal);
  either.letGo();
  over.abort();
  await keeping;

  const { fault, rows } = outcome;
  if (!fault) {
    await endWindow(state, id, start, { state: 'done', rows, tried: true });
  } else {
    const isTried = fault instanceof RetryLater && !wanted.signal.aborted && !signal.aborted;
    const isFailed = !signal.aborted && !wanted.signal.aborted && (!isTried || window.tries >= MOST_TRIES);
    const message = signal.aborted || wanted.signal.aborted ? undefined : fault.message;
    await endWindow(state, id, start, { state: isFailed ? 'failed' : 'queued', rows, message, tried: isTried });
    if (isTried && !isFailed) return pace.busyMs * window.tries;
  }
  await finishBackfills(state);
  if (!signal.aborted) await hintWindows(deps);
  return undefined;
}

interface Outcome {
  fault: Fault | undefined;
  rows: number;
}

async function read(
  deps: WindowTurnDeps,
  job: StreamJob,
  request: { window: Window; force: boolean },
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    const { window, force } = request;
    const report = await deps.readWindow({ ...deps, signal }, job, { window, force });
    const isProven = report.state === 'done' || report.fault !== undefined;
    const doubt = new RetryLater('the window was read and could not be proven complete');
    return { fault: isProven ? report.fault : doubt, rows: report.tally.read };
  } catch (error) {
    // Recovery: the run could not begin; the window is tried again, or has failed for good, by the kind of the fault.
    if (error instanceof Fault) return { fault: error, rows: 0 };
    throw error;
  }
}

/** While a window is read: it stays ours, and a pause or a cancel ends the reading. */
async function keep(
  { state, log }: WindowTurnDeps,
  id: string,
  start: number,
  { wanted, over }: { wanted: AbortController; over: AbortSignal },
): Promise<void> {
  while (await sleep(KEEP_EVERY_MS, true, { signal: over }).catch(() => false)) {
    try {
      if (!(await keepWindow(state, id, start))) wanted.abort();
    } catch (error) {
      // Recovery: asked again in a moment; the lease guards the rows meanwhile.
      log.debug({ reason: error instanceof Error ? error.message : '' }, 'the window could not be kept; trying again');
    }
  }
}
