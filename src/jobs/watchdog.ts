import { setTimeout as sleep } from 'node:timers/promises';
import { eitherSignal } from '../api/cancel.ts';
import type { Database } from '../cursor/database/index.ts';
import { releaseOwn } from '../cursor/leases.ts';
import { Fault } from '../model/errors.ts';
import type { Log } from '../model/log.ts';
import type { AnyJob, SyncDeps } from '../sync/job.ts';
import type { StreamReport } from '../sync/run.ts';
import { recordWorkerTrouble } from './incidents.ts';
import type { Timings } from './schedule.ts';

/** A run made no progress and did not end after its signal was aborted. The caller stops waiting for it. */
class Hung extends Error {}

interface WatchdogOptions {
  signal: AbortSignal;
  /** A changed value means that the work makes progress. */
  progress(): number;
  hangMs: number;
  graceMs: number;
}

/** Timers renew the lease even while work hangs, which would block its stream for ever. Ending a slow run is harmless. */
export async function watched<T>(work: (signal: AbortSignal) => Promise<T>, options: WatchdogOptions): Promise<T> {
  const { signal, progress, hangMs, graceMs } = options;
  const hung = new AbortController();
  const over = new AbortController();
  const either = eitherSignal(signal, hung.signal);
  const working = work(either.signal);
  // Nobody awaits hung work any more, so its rejection must be handled here.
  working.catch(() => {});
  const watching = async (): Promise<never> => {
    for (let last = progress(), since = performance.now(); ; ) {
      await sleep(hangMs / 10, undefined, { signal: over.signal });
      const now = progress();
      // After an abort, the worker's shutdown has its own limit for how long runs may take.
      if (now !== last || signal.aborted) [last, since] = [now, performance.now()];
      else if (performance.now() - since >= hangMs) break;
    }
    hung.abort();
    await sleep(graceMs, undefined, { signal: over.signal });
    throw new Hung(`it showed no sign of life for ${Math.round(hangMs / 1000)} s, and did not end when it was aborted`);
  };
  try {
    return await Promise.race([working, watching()]);
  } finally {
    over.abort();
    either.release();
  }
}

export interface WatchedDeps extends Omit<SyncDeps, 'signal'> {
  timings: Timings;
}

/** A run that neither sends requests nor commits for `hangMs` is given up, and its lease released. */
export async function watchedRun(
  deps: WatchedDeps,
  job: AnyJob,
  signal: AbortSignal,
  work: (deps: SyncDeps) => Promise<StreamReport>,
): Promise<StreamReport> {
  let reports = 0;
  const onProgress: SyncDeps['onProgress'] = (report) => {
    reports++;
    deps.onProgress(report);
  };
  const { hangMs, graceMs } = deps.timings;
  const options = { signal, progress: () => reports + job.requests().requests, hangMs, graceMs };
  try {
    return await watched((until) => work({ ...deps, signal: until, onProgress }), options);
  } catch (error) {
    if (error instanceof Hung) await releaseOwn(deps.state, job.source, job.stream, deps.holder);
    throw error;
  }
}

export type Upkeep = (what: string, work: (signal: AbortSignal) => Promise<void>) => Promise<void>;

interface UpkeepDeps {
  state: Database;
  log: Log;
  signal: AbortSignal;
  timings: Pick<Timings, 'hangMs' | 'graceMs'>;
  /** The worker has shut down without waiting, and closed the connections of the work that still runs. */
  isGivenUp(): boolean;
}

/** Never throws or waits for ever, as nothing else would notice. A bug or a hang is an open incident until the work succeeds again. */
export function createUpkeep({ state, log, signal, timings, isGivenUp }: UpkeepDeps): Upkeep {
  const { hangMs, graceMs } = timings;
  const failing = new Set<string>();
  const record = async (): Promise<void> => {
    const message = failing.size > 0 ? `a bug ended ${[...failing].join(', and ')}; the log says more` : undefined;
    await recordWorkerTrouble(state, message).catch((error: unknown) => {
      // Recovery: the bug is in the log, and is recorded together with the next one.
      log.warn({ reason: String(error) }, 'the bug could not be recorded');
    });
  };
  return async (what, work) => {
    try {
      await watched(work, { signal, progress: () => 0, hangMs, graceMs });
      if (failing.delete(what)) await record();
    } catch (error) {
      // Recovery: the next round does the work that this one could not.
      if (error instanceof Fault) return log.warn({ reason: error.describe() }, `${what} failed; it is tried again`);
      if (isGivenUp()) return log.debug({ reason: String(error) }, `${what} was given up, and has ended`);
      log.error({ err: error }, `a bug ended ${what}; it is tried again`);
      failing.add(what);
      await record();
    }
  };
}
