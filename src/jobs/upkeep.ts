import type { Database } from '../cursor/database/index.ts';
import { Fault } from '../model/errors.ts';
import type { Log } from '../model/log.ts';
import { recordWorkerTrouble } from './incidents.ts';
import type { Timings } from './schedule.ts';
import { watched } from './watchdog.ts';

/** What a worker does beside its runs: filling the queue, telling of trouble, maintaining sinks. It is done again and again. */
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
