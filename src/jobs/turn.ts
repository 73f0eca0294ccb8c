import type { Database } from '../cursor/database.ts';
import { giveBackOwn } from '../cursor/leases.ts';
import {
  claimProbe,
  claimTurn,
  type Due,
  isLeased,
  park,
  planNext,
  readParked,
  readSchedule,
  unpark,
  WHOLE_SOURCE,
} from '../cursor/schedules.ts';
import { Fault } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import type { SyncDeps } from '../sync/job.ts';
import type { StreamReport } from '../sync/run.ts';
import { syncStream } from '../sync/sync-stream.ts';
import { consequenceOf, type Pace, type Plans, planKey, probeAfterMs, retryAt, type StreamPlan } from './plan.ts';
import { nextRun } from './schedule.ts';

export interface TurnDeps extends Omit<SyncDeps, 'signal'> {
  plans: Plans;
  pace: Pace;
}

/** The queue's clocks and the database's differ a little: what is due in a moment is due. */
const EARLY_MS = 1000;

/**
 * Follows a hint that a stream is due; the caller has no other run on it. The state decides whether it is, so hints may come twice, late or for nothing. Returns what
 * came of the run, or nothing where there was none.
 */
export async function takeTurn(
  deps: TurnDeps,
  { source, stream }: Pick<Due, 'source' | 'stream'>,
  signal: AbortSignal,
): Promise<StreamReport | undefined> {
  const { state, plans, pace } = deps;
  const plan = plans.get(planKey(source, stream));
  const due = await readSchedule(state, source, stream);
  if (!plan || !due || due.nextRunAt > due.now + EARLY_MS) return undefined;
  const slot = nextRun(plan.schedule, Math.max(due.now, due.nextRunAt));
  // Until the run has ended, its next time is only a promise to look: a worker that dies leaves it to whoever looks then.
  if (!(await claimTurn(state, due, Math.min(slot, due.now + pace.recheckMs)))) return undefined;
  const probes = due.isParked ? await admit(state, due, pace) : [];
  if (!probes) return undefined;

  const began = performance.now();
  const databaseNow = (): Instant => due.now + (performance.now() - began);
  let report: StreamReport | undefined;
  let fault: Fault | undefined;
  try {
    if (due.holder === deps.holder) await giveBackOwn(state, source, stream, deps.holder);
    report = await syncStream({ ...deps, signal }, plan.job);
    fault = report.fault;
  } catch (error) {
    if (!(error instanceof Fault)) {
      // A bug: told as one by whoever called, and tried again, since the next events may not meet it.
      await planNext(state, due, { at: slot, failures: due.failures + 1 });
      throw error;
    }
    // Recovery: the run could not even begin; what follows is decided by its kind, as for one that ended.
    fault = error.at({ source, stream });
  }
  await settle(deps, plan, { due, fault, now: databaseNow(), probes });
  return report;
}

/** What is parked may run when its probe is due, one worker at a time. Returns the probes taken, or nothing for "not now". */
async function admit(state: Database, due: Due, pace: Pace): Promise<string[] | undefined> {
  const probes: string[] = [];
  for (const { source, stream, nextProbeAt } of await readParked(state, due.source, due.stream)) {
    const next = await claimProbe(state, { source, stream }, probeAfterMs);
    if (next === undefined) {
      await planNext(state, due, { at: Math.max(nextProbeAt, due.now + pace.recheckMs), failures: due.failures });
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

async function settle({ state, log }: TurnDeps, plan: StreamPlan, { due, fault, now, probes }: Ended): Promise<void> {
  const { source, stream } = due;
  const consequence = consequenceOf(fault, due.failures);
  const slot = nextRun(plan.schedule, now);
  if (fault && consequence.kind === 'retry' && (await isLeased(state, source, stream))) {
    // Somebody else is bringing these rows, or has taken over from us: the turn that was claimed looks again later.
    log.debug({ source, stream, reason: fault.message }, 'the stream is in other hands');
    return;
  }
  const refused = consequence.kind === 'park' ? (consequence.whole ? WHOLE_SOURCE : stream) : undefined;
  // The service answered: what kept the source or the stream parked is over, unless it is refused again just so.
  if (consequence.kind === 'go on' || consequence.kind === 'park') {
    for (const each of probes) if (each !== refused) await unpark(state, { source, stream: each });
  }
  switch (consequence.kind) {
    case 'go on':
      return planNext(state, due, { at: slot, failures: 0 });
    case 'resume':
      return planNext(state, due, { at: now, failures: due.failures });
    case 'retry':
      log.warn(
        { source, stream, reason: fault?.message, failures: due.failures + 1 },
        'a run failed; it is tried again',
      );
      return planNext(state, due, { at: retryAt(now, consequence.afterMs, slot), failures: due.failures + 1 });
    case 'park': {
      const { message: reason, next: nextStep } = consequence.fault;
      const { fingerprint } = plan;
      const nextProbeAt = now + probeAfterMs(0);
      return park(state, { source, stream: refused ?? stream, fingerprint, reason, nextStep, nextProbeAt });
    }
  }
}
