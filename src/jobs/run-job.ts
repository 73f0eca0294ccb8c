import type { Database, Queryable } from '../cursor/database/index.ts';
import { releaseOwn } from '../cursor/leases.ts';
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
import { Fault } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import type { StreamReport } from '../sync/run.ts';
import { syncAny } from '../sync/sync-stream.ts';
import {
  consequenceOf,
  nextRun,
  probeAfterMs,
  type ScheduledStream,
  type ScheduledStreams,
  streamKey,
  type Timings,
} from './schedule.ts';
import { type WatchedDeps, watchedRun } from './watchdog.ts';

interface StreamJobDeps extends WatchedDeps {
  scheduled: ScheduledStreams;
}

/** A stream that is due within this time counts as due, because the clocks of queue and database differ slightly. */
const EARLY_MS = 1000;

/** The caller must not be running this stream already. The state decides what is due: jobs may be duplicate, late or needless. */
export async function runDueStream(
  deps: StreamJobDeps,
  { source, stream }: Pick<Due, 'source' | 'stream'>,
  signal: AbortSignal,
): Promise<StreamReport | undefined> {
  const { state, scheduled, timings } = deps;
  const entry = scheduled.get(streamKey(source, stream));
  if (!entry) return undefined;
  // During the run, the next time is only a recheck: if this worker dies, another one then finds the stream due.
  const forMs = Math.min(timings.recheckMs, entry.job.everyMs);
  const due = await claimDue(state, { source, stream }, { earlyMs: EARLY_MS, forMs });
  if (!due) return undefined;
  const probes = due.isParked ? await claimProbes(state, due, timings) : [];
  if (!probes) return undefined;

  const began = performance.now();
  const databaseNow = (): Instant => due.now + (performance.now() - began);
  let report: StreamReport | undefined;
  let fault: Fault | undefined;
  try {
    if (due.holder === deps.holder) await releaseOwn(state, source, stream, deps.holder);
    const onEnd = (tx: Queryable): Promise<void> => {
      // A run that started slightly early must not be due again for the same slot.
      const at = nextRun(entry.schedule, Math.max(databaseNow(), due.nextRunAt));
      return scheduleNext(tx, due, { at, failures: 0 });
    };
    report = await watchedRun(deps, entry.job, signal, (run) => syncAny({ ...run, onEnd }, entry.job));
    fault = report.fault;
  } catch (error) {
    if (!(error instanceof Fault)) {
      // A bug, which the caller reports. The stream is retried, because the next events may not trigger the bug.
      await scheduleNext(state, due, { at: nextRun(entry.schedule, databaseNow()), failures: due.failures + 1 });
      throw error;
    }
    // Recovery: the run could not start. The kind of fault decides what follows, as if the run had ended with it.
    fault = error.at({ source, stream });
  }
  if (fault || probes.length > 0) await applyConsequence(deps, entry, { due, fault, now: databaseNow(), probes });
  return report;
}

/** A parked stream may run when its probe is due, on one worker at a time. Returns the claimed probes, or undefined for "not now". */
async function claimProbes(state: Database, due: Due, timings: Timings): Promise<string[] | undefined> {
  const probes: string[] = [];
  for (const { source, stream, nextProbeAt } of await readParked(state, due.source, due.stream)) {
    const next = await claimProbe(state, { source, stream }, probeAfterMs);
    if (next === undefined) {
      const at = Math.max(nextProbeAt, due.now + timings.recheckMs);
      await scheduleNext(state, due, { at, failures: due.failures });
      return undefined;
    }
    probes.push(stream);
  }
  return probes;
}

/** Reschedules, parks or unparks the stream after its run. `probes`: what was parked and probed by this run. */
async function applyConsequence(
  { state, log }: StreamJobDeps,
  entry: ScheduledStream,
  { due, fault, now, probes }: { due: Due; fault: Fault | undefined; now: Instant; probes: readonly string[] },
): Promise<void> {
  const { source, stream } = due;
  const consequence = consequenceOf(fault, due.failures);
  const slot = nextRun(entry.schedule, now);
  if (fault && consequence.kind === 'retry' && (await isLeased(state, source, stream))) {
    // Another process reads this stream, or took the lease from us: the recheck finds the stream due later.
    log.debug({ source, stream, reason: fault.message }, 'another process holds the lease');
    return;
  }
  // A key without permission to list links may still be able to read events.
  const isWhole = consequence.kind === 'park' && consequence.whole && stream !== 'links';
  const refused = consequence.kind === 'park' ? (isWhole ? WHOLE_SOURCE : stream) : undefined;
  // The service answered, so the reason for parking no longer holds, unless the service refused again in the same way.
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
      return scheduleNext(state, due, { at: Math.min(slot, now + consequence.afterMs), failures: due.failures + 1 });
    case 'park': {
      const { message: reason, next: nextStep } = consequence.fault;
      const { fingerprint } = entry;
      const nextProbeAt = now + probeAfterMs(0);
      return park(state, { source, stream: refused ?? stream, fingerprint, reason, nextStep, nextProbeAt });
    }
  }
}
