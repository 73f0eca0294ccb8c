import { setTimeout as sleep } from 'node:timers/promises';
import { eitherSignal } from '../api/cancel.ts';
import {
  claimWindow,
  endWindow,
  finishBackfills,
  keepWindow,
  readBackfills,
  readBackfillWindows,
  type WindowEnd,
} from '../cursor/backfills.ts';
import type { Database, Queryable } from '../cursor/database/index.ts';
import { giveBackOwn } from '../cursor/leases.ts';
import {
  claimDue,
  claimProbe,
  type Due,
  isLeased,
  park,
  readParked,
  scheduleNext,
  unpark,
  WHOLE_SOURCE,
} from '../cursor/schedules.ts';
import { Fault, RetryLater } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import type { Window } from '../model/window.ts';
import type { StreamJob, SyncDeps } from '../sync/job.ts';
import type { StreamReport } from '../sync/run.ts';
import { syncStream } from '../sync/sync-stream.ts';
import { promoteWindows } from './backfills.ts';
import type { JobQueue } from './bull.ts';
import type { WindowPayload } from './payloads.ts';
import {
  consequenceOf,
  isKeyRefused,
  nextRun,
  probeAfterMs,
  retryAt,
  type ScheduledStream,
  type ScheduledStreams,
  streamKey,
  type Timings,
} from './schedule.ts';

interface StreamJobDeps extends Omit<SyncDeps, 'signal'> {
  scheduled: ScheduledStreams;
  timings: Timings;
}

/** The clocks of queue and database differ a little: a stream that is due within this time is due. */
const EARLY_MS = 1000;

/**
 * Runs a stream that a job calls due; the caller has no other run on it. The state decides whether it is due, so a job may come twice,
 * late or for nothing. Returns what came of the run, or nothing where there was none.
 */
export async function runDueStream(
  deps: StreamJobDeps,
  { source, stream }: Pick<Due, 'source' | 'stream'>,
  signal: AbortSignal,
): Promise<StreamReport | undefined> {
  const { state, scheduled, timings } = deps;
  const entry = scheduled.get(streamKey(source, stream));
  if (!entry) return undefined;
  // While the run goes on, its next time is only a recheck: if this worker dies, another one finds the stream due then.
  const forMs = Math.min(timings.recheckMs, entry.job.everyMs);
  const due = await claimDue(state, { source, stream }, { earlyMs: EARLY_MS, forMs });
  if (!due) return undefined;
  const probes = due.isParked ? await admit(state, due, timings) : [];
  if (!probes) return undefined;

  const began = performance.now();
  const databaseNow = (): Instant => due.now + (performance.now() - began);
  let report: StreamReport | undefined;
  let fault: Fault | undefined;
  try {
    if (due.holder === deps.holder) await giveBackOwn(state, source, stream, deps.holder);
    const onEnd = (tx: Queryable): Promise<void> => {
      // A run that began a little early must not be due again for the same time.
      const at = nextRun(entry.schedule, Math.max(databaseNow(), due.nextRunAt));
      return scheduleNext(tx, due, { at, failures: 0 });
    };
    report = await syncStream({ ...deps, signal, onEnd }, entry.job);
    fault = report.fault;
  } catch (error) {
    if (!(error instanceof Fault)) {
      // A bug: the caller reports it. The stream is tried again, because the next events may not trigger it.
      await scheduleNext(state, due, { at: nextRun(entry.schedule, databaseNow()), failures: due.failures + 1 });
      throw error;
    }
    // Recovery: the run could not start. The kind of fault decides what follows, as for a run that ended with it.
    fault = error.at({ source, stream });
  }
  if (fault || probes.length > 0) await settle(deps, entry, { due, fault, now: databaseNow(), probes });
  return report;
}

/** What is parked may run when its probe is due, one worker at a time. Returns the probes taken, or nothing for "not now". */
async function admit(state: Database, due: Due, timings: Timings): Promise<string[] | undefined> {
  const probes: string[] = [];
  for (const { source, stream, nextProbeAt } of await readParked(state, due.source, due.stream)) {
    const next = await claimProbe(state, { source, stream }, probeAfterMs);
    if (next === undefined) {
      await scheduleNext(state, due, {
        at: Math.max(nextProbeAt, due.now + timings.recheckMs),
        failures: due.failures,
      });
      return undefined;
    }
    probes.push(stream);
  }
  return probes;
}

interface Ended {
  due: Due;
  fault: Fault | undefined;
  now: Instant;
  /** What was parked and asked again by this run. */
  probes: readonly string[];
}

async function settle(
  { state, log }: StreamJobDeps,
  entry: ScheduledStream,
  { due, fault, now, probes }: Ended,
): Promise<void> {
  const { source, stream } = due;
  const consequence = consequenceOf(fault, due.failures);
  const slot = nextRun(entry.schedule, now);
  if (fault && consequence.kind === 'retry' && (await isLeased(state, source, stream))) {
    // Another process is reading these rows, or took the lease from us: the recheck finds the stream due later.
    log.debug({ source, stream, reason: fault.message }, 'the stream is in other hands');
    return;
  }
  const refused = consequence.kind === 'park' ? (consequence.whole ? WHOLE_SOURCE : stream) : undefined;
  // The service answered, so the reason for parking is gone, unless the same refusal came again.
  if (consequence.kind === 'go on' || consequence.kind === 'park') {
    for (const each of probes) if (each !== refused) await unpark(state, { source, stream: each });
  }
  switch (consequence.kind) {
    case 'go on':
      return scheduleNext(state, due, { at: slot, failures: 0 });
    case 'resume':
      return scheduleNext(state, due, { at: now, failures: due.failures });
    case 'retry':
      log.warn(
        { source, stream, reason: fault?.message, failures: due.failures + 1 },
        'a run failed; it is tried again',
      );
      return scheduleNext(state, due, { at: retryAt(now, consequence.afterMs, slot), failures: due.failures + 1 });
    case 'park': {
      const { message: reason, next: nextStep } = consequence.fault;
      const { fingerprint } = entry;
      const nextProbeAt = now + probeAfterMs(0);
      return park(state, { source, stream: refused ?? stream, fingerprint, reason, nextStep, nextProbeAt });
    }
  }
}

export interface WindowJobDeps extends Omit<SyncDeps, 'signal'> {
  scheduled: ScheduledStreams;
  timings: Timings;
  queue: JobQueue;
  /** Reads a window that is not yet certified; with force, also what is. */
  readWindow(deps: SyncDeps, job: StreamJob, request: { window: Window; force: boolean }): Promise<StreamReport>;
}

/** A window that so many tries could not read has failed, until somebody retries it. */
const MOST_TRIES = 5;
const KEEP_EVERY_MS = 5000;

/**
 * Reads a window of a backfill for a job. Returns how long to put the job off: another window of the stream is
 * being read, or this one is to be tried again.
 */
export async function runBackfillWindow(
  deps: WindowJobDeps,
  { backfill: id, start }: WindowPayload,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { state, scheduled, timings } = deps;
  const [backfill] = await readBackfills(state, id);
  const entry = backfill && scheduled.get(streamKey(backfill.source, backfill.stream));
  // The config no longer has the source: the backfill stays in the state in case it comes back.
  if (!backfill || !entry) return undefined;
  if ((await readParked(state, backfill.source, backfill.stream)).length > 0) return timings.recheckMs;
  const claim = await claimWindow(state, id, start);
  if (claim === 'over') return undefined;
  if (claim === 'busy') return timings.busyMs;
  const window = (await readBackfillWindows(state, id)).find((each) => each.start === start);
  if (!window) return undefined;

  const wanted = new AbortController();
  const over = new AbortController();
  const keeping = keep(deps, id, start, { wanted, over: over.signal });
  const either = eitherSignal(signal, wanted.signal);
  const outcome = await read(deps, entry.job, { window, force: backfill.force }, either.signal);
  either.release();
  over.abort();
  await keeping;

  const { fault, rows } = outcome;
  const isInterrupted = signal.aborted || wanted.signal.aborted;
  const result = await judge(deps, entry.job, fault, { isInterrupted, tries: window.tries });
  await endWindow(state, id, start, { ...result, rows });
  if (result.state === 'queued' && !isInterrupted) return timings.busyMs * (result.tried ? window.tries : 1);
  await finishBackfills(state);
  if (!signal.aborted) await promoteWindows(deps);
  return undefined;
}

type WindowResult = Omit<WindowEnd, 'rows'>;

/** The next state of the window. Only failures of the service count as a try. */
async function judge(
  { state }: WindowJobDeps,
  { source, stream }: StreamJob,
  fault: Fault | undefined,
  { isInterrupted, tries }: { isInterrupted: boolean; tries: number },
): Promise<WindowResult> {
  if (!fault) return { state: 'done', tried: true };
  if (isInterrupted) return { state: 'queued', tried: false };
  const { message } = fault;
  // The next sync parks the source, and its windows wait with it.
  if (isKeyRefused(fault)) return { state: 'queued', message, tried: false };
  if (!(fault instanceof RetryLater)) return { state: 'failed', message, tried: true };
  // A sync holds the stream: it goes first, however long it takes.
  if (await isLeased(state, source, stream)) return { state: 'queued', tried: false };
  return { state: tries >= MOST_TRIES ? 'failed' : 'queued', message, tried: true };
}

interface Outcome {
  fault: Fault | undefined;
  rows: number;
}

async function read(
  deps: WindowJobDeps,
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

/** While a window is read: keeps the claim alive, and ends the reading when the backfill is paused or cancelled. */
async function keep(
  { state, log }: WindowJobDeps,
  id: string,
  start: number,
  { wanted, over }: { wanted: AbortController; over: AbortSignal },
): Promise<void> {
  while (await sleep(KEEP_EVERY_MS, true, { signal: over }).catch(() => false)) {
    try {
      if (!(await keepWindow(state, id, start))) wanted.abort();
    } catch (error) {
      // Recovery: asked again shortly; the lease protects the rows meanwhile.
      log.debug({ reason: error instanceof Error ? error.message : '' }, 'the window could not be kept; trying again');
    }
  }
}
