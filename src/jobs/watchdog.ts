import { setTimeout as sleep } from 'node:timers/promises';
import { eitherSignal } from '../api/cancel.ts';
import type { Database } from '../cursor/database/index.ts';
import { giveBackOwn } from '../cursor/leases.ts';
import { Fault } from '../model/errors.ts';
import type { Log } from '../model/log.ts';
import type { AnyJob, SyncDeps } from '../sync/job.ts';
import type { StreamReport } from '../sync/run.ts';
import { recordWorkerTrouble } from './incidents.ts';
import type { Timings } from './schedule.ts';

/** A run that showed no sign of life, was told to end, and did not. It is given up: whoever awaits it goes on without it. */
class Hung extends Error {}

interface WatchdogOptions {
  signal: AbortSignal;
  /** Another value than before is a sign of life. */
  pulse(): number;
  hangMs: number;
  graceMs: number;
}

/** Timers renew leases even while work hangs: its stream would be nobody's for ever. Ending a slow run is harmless. */
export async function watched<T>(work: (signal: AbortSignal) => Promise<T>, options: WatchdogOptions): Promise<T> {
  const { signal, pulse, hangMs, graceMs } = options;
  const hung = new AbortController();
  const over = new AbortController();
  const either = eitherSignal(signal, hung.signal);
  const working = work(either.signal);
  // Once it is given up, nobody awaits it any more.
  working.catch(() => {});
  const watching = async (): Promise<never> => {
    for (let last = pulse(), since = performance.now(); ; ) {
      await sleep(hangMs / 10, undefined, { signal: over.signal });
      const now = pulse();
      // The worker that ends waits for its runs itself.
      if (now !== last || signal.aborted) [last, since] = [now, performance.now()];
      else if (performance.now() - since >= hangMs) break;
    }
    hung.abort();
    await sleep(graceMs, undefined, { signal: over.signal });
    throw new Hung(`it showed no sign of life for ${Math.round(hangMs / 1000)} s, and did not end when it was told to`);
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

/** A run that sends requests or commits is alive; one that does neither for long is given up, and its lease with it. */
export async function watchedRun(
  deps: WatchedDeps,
  job: AnyJob,
  signal: AbortSignal,
  work: (deps: SyncDeps) => Promise<StreamReport>,
): Promise<StreamReport> {
  let beats = 0;
  const onProgress: SyncDeps['onProgress'] = (progress) => {
    beats++;
    deps.onProgress(progress);
  };
  const { hangMs, graceMs } = deps.timings;
  const pulse = (): number => beats + job.requests().requests;
  try {
    return await watched((until) => work({ ...deps, signal: until, onProgress }), { signal, pulse, hangMs, graceMs });
  } catch (error) {
    if (error instanceof Hung) await giveBackOwn(deps.state, job.source, job.stream, deps.holder);
    throw error;
  }
}

export type Upkeep = (what: string, work: (signal: AbortSignal) => Promise<void>) => Promise<void>;

interface UpkeepDeps {
  state: Database;
  log: Log;
  signal: AbortSignal;
  timings: Pick<Timings, 'hangMs' | 'graceMs'>;
  /** The worker has left without waiting, and its connections are closed under what still runs. */
  isGivenUp(): boolean;
}

/** Never throws or waits for ever: nothing else would notice. A bug or a hang is a trouble until it works again. */
export function createUpkeep({ state, log, signal, timings, isGivenUp }: UpkeepDeps): Upkeep {
  const { hangMs, graceMs } = timings;
  const failing = new Set<string>();
  const tell = async (): Promise<void> => {
    const message = failing.size > 0 ? `a bug ended ${[...failing].join(', and ')}; the log says more` : undefined;
    await recordWorkerTrouble(state, message).catch((error: unknown) => {
      // Recovery: the log has it, and it is told with the next bug.
      log.warn({ reason: String(error) }, 'the bug could not be recorded');
    });
  };
  return async (what, work) => {
    try {
      await watched(work, { signal, pulse: () => 0, hangMs, graceMs });
      if (failing.delete(what)) await tell();
    } catch (error) {
      // Recovery: whatever it was, the next round does what this one could not.
      if (error instanceof Fault) return log.warn({ reason: error.describe() }, `${what} failed; it is tried again`);
      if (isGivenUp()) return log.debug({ reason: String(error) }, `${what} was given up, and has ended`);
      log.error({ err: error }, `a bug ended ${what}; it is tried again`);
      failing.add(what);
      await tell();
    }
  };
}
