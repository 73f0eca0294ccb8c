import { setTimeout as sleep } from 'node:timers/promises';
import {
  claimWindow,
  endWindow,
  finishBackfills,
  keepWindow,
  readBackfills,
  readBackfillWindows,
  type WindowEnd,
} from '../cursor/backfills.ts';
import { isLeased, readParked } from '../cursor/schedules.ts';
import { Fault, RetryLater } from '../model/errors.ts';
import type { Window } from '../model/window.ts';
import type { StreamJob, SyncDeps } from '../sync/job.ts';
import type { StreamReport } from '../sync/run.ts';
import { promoteWindows } from './backfills.ts';
import type { JobQueue } from './bull.ts';
import { eitherSignal } from './either-signal.ts';
import type { WindowPayload } from './payloads.ts';
import { isKeyRefused, type Pace, type Plans, planKey } from './plan.ts';

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
  if ((await readParked(state, backfill.source, backfill.stream)).length > 0) return pace.recheckMs;
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
  const isInterrupted = signal.aborted || wanted.signal.aborted;
  const verdict = await judge(deps, plan.job, fault, { isInterrupted, tries: window.tries });
  await endWindow(state, id, start, { ...verdict, rows });
  if (verdict.state === 'queued' && !isInterrupted) return pace.busyMs * (verdict.tried ? window.tries : 1);
  await finishBackfills(state);
  if (!signal.aborted) await promoteWindows(deps);
  return undefined;
}

type Verdict = Omit<WindowEnd, 'rows'>;

/** What becomes of the window: only what the service did with it counts as a try. */
async function judge(
  { state }: WindowTurnDeps,
  { source, stream }: StreamJob,
  fault: Fault | undefined,
  { isInterrupted, tries }: { isInterrupted: boolean; tries: number },
): Promise<Verdict> {
  if (!fault) return { state: 'done', tried: true };
  if (isInterrupted) return { state: 'queued', tried: false };
  const { message } = fault;
  // The next sync parks the source, and its windows wait with it.
  if (isKeyRefused(fault)) return { state: 'queued', message, tried: false };
  if (!(fault instanceof RetryLater)) return { state: 'failed', message, tried: true };
  // A sync has the stream: it goes first, and for as long as it takes.
  if (await isLeased(state, source, stream)) return { state: 'queued', tried: false };
  return { state: tries >= MOST_TRIES ? 'failed' : 'queued', message, tried: true };
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
    const [first] = report.unproven;
    const why = first ? `: ${first.note}` : '';
    const doubt = new RetryLater(`the window was read and could not be proven complete${why}`, {
      next: 'tributary.windows says why; it is tried again, five times in all',
    });
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
