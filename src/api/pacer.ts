import Bottleneck from 'bottleneck';
import { Cancelled, RetryLater } from '../model/errors.ts';
import { cancelled, onAbort, sleep } from './cancel.ts';
import { createPace } from './pace.ts';
import { createUsageMeter, type Usage } from './usage.ts';

/** Who goes first: the tail of today, then repairs, then history. */
export type Lane = 'fresh' | 'repair' | 'backfill';

export interface Pacer {
  /** Runs the task when its turn comes. A task that fails with a 429 pauses every lane. */
  run<T>(lane: Lane, task: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Pauses every lane, as a 429 does: for one that was met elsewhere. */
  pause(afterMs?: number): void;
  usage(): Usage;
  /** Turns away whoever still waits. What is under way goes on: its own signal ends it. */
  close(): void;
}

export interface PacerOptions {
  requestsPerSecond: number;
  /** Requests under way at a time: a bound on memory and connections when the service is slow. */
  maxConcurrent?: number;
}

const PRIORITY: Readonly<Record<Lane, number>> = { fresh: 2, repair: 5, backfill: 8 };
const MAX_CONCURRENT = 16;

/** A request that waits for its turn. */
interface Ticket {
  /** Aborted when it leaves unstarted. */
  left: AbortSignal;
  start(): Promise<void>;
}

/**
 * Spaces the requests of one key. Bottleneck orders the lanes and lets one ticket at a time stand at the gate; there it
 * waits until the pace allows a start. Spacing by Bottleneck's own `minTime` would take a slot for every ticket that
 * leaves while it waits, and would book slots ahead of a pause or of a more urgent lane.
 */
export function createPacer({ requestsPerSecond, maxConcurrent = MAX_CONCURRENT }: PacerOptions): Pacer {
  const gate = new Bottleneck({ maxConcurrent: 1 });
  const pace = createPace(requestsPerSecond);
  const meter = createUsageMeter(requestsPerSecond);
  const waiting = new Set<(reason: Cancelled) => void>();
  const running = new Set<Promise<void>>();
  let closed = false;

  /** Stands at the gate with a ticket until it has started or left. A probe holds the gate until it is answered. */
  async function serve(ticket: Ticket): Promise<void> {
    while (!ticket.left.aborted) {
      const wait = pace.waitMs();
      if (wait > 0)
        await sleep(Math.ceil(wait), ticket.left).catch(() => {}); // It left: the loop sees that.
      else if (running.size >= maxConcurrent)
        await Promise.race(running); // Nobody behind it could start either.
      else {
        const alone = pace.goesAlone();
        const settled = ticket.start();
        if (alone) await settled;
        return;
      }
    }
  }

  async function execute<T>(task: () => Promise<T>): Promise<T> {
    meter.started();
    const era = pace.started();
    setImmediate(pace.sent);
    try {
      const result = await task();
      pace.succeeded(era);
      return result;
    } catch (error) {
      if (error instanceof RetryLater && error.answer?.status === 429) pace.tooMany(error.afterMs, era);
      throw error;
    }
  }

  function run<T>(lane: Lane, task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (signal?.aborted) return Promise.reject(cancelled(signal));
    if (closed) return Promise.reject(new Cancelled('the pacer is closed'));
    meter.entered();
    const outcome = new Promise<T>((resolve, reject) => {
      const departed = new AbortController();
      const leave = (reason: Cancelled): void => {
        departed.abort();
        stopWaiting();
        reject(reason);
      };
      const stopListening = onAbort(signal, () => signal && leave(cancelled(signal)));
      const stopWaiting = (): void => {
        stopListening();
        waiting.delete(leave);
      };
      const start = (): Promise<void> => {
        stopWaiting();
        const settled = execute(task).then(resolve, reject);
        running.add(settled);
        return settled.finally(() => running.delete(settled));
      };
      waiting.add(leave);
      gate.schedule({ priority: PRIORITY[lane] }, () => serve({ left: departed.signal, start })).catch(reject);
    });
    return outcome.finally(meter.left);
  }

  return {
    run,
    pause: (afterMs) => pace.tooMany(afterMs),
    usage: () => meter.read(pace.pauses()),
    close() {
      closed = true;
      for (const leave of waiting) leave(new Cancelled('the pacer is closed'));
    },
  };
}
