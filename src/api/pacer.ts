import { Cancelled, type Fault, RetryLater } from '../model/errors.ts';
import { cancelled, onAbort, sleep } from './cancel.ts';
import { createDoor } from './door.ts';
import { createPace } from './pace.ts';
import type { Grant, Lane, Slots } from './slots.ts';
import { createUsageMeter, type Usage } from './usage.ts';

export type { Lane } from './slots.ts';

export interface Pacer {
  /** Runs the task when its turn comes. A task that fails with a 429 pauses every lane. */
  run<T>(lane: Lane, task: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Pauses every lane, as a 429 does: for one that was met elsewhere. */
  pause(afterMs?: number): Promise<void>;
  usage(): Usage;
  /** Turns away whoever still waits. What is under way goes on: its own signal ends it. */
  close(): void;
}

export interface PacerOptions {
  requestsPerSecond: number;
  /** Where turns come from: the budget that all processes share, or, left out, this process's own pace. */
  slots?: Slots;
  /** Requests under way at a time: a bound on memory and connections when the service is slow. */
  maxConcurrent?: number;
}

const MAX_CONCURRENT = 16;
/** An idle connection is closed after four seconds or more: a request after that pays for a new one. */
const WARM_MS = 3000;
/** How long a ticket waits for slots that cannot be asked for: a database restarts in less. */
const PATIENCE_MS = 10_000;
const ASK_AGAIN_MS = 250;

/** A request that waits for its turn. */
interface Ticket {
  lane: Lane;
  /** Aborted when it leaves unstarted. */
  left: AbortSignal;
  start(grant: Grant): void;
}

/**
 * Lets the requests of one key go, each when its turn comes. Bottleneck keeps a queue for each lane, with one ticket at a
 * time at its door, asking for its turn; between the doors the slots decide. Spacing by Bottleneck's own `minTime` would
 * take a slot for every ticket that leaves while it waits, would book slots ahead of a pause or of a more urgent lane, and
 * would know nothing of other processes.
 */
export function createPacer(options: PacerOptions): Pacer {
  const { requestsPerSecond, slots = createPace(requestsPerSecond), maxConcurrent = MAX_CONCURRENT } = options;
  const doors = { fresh: createDoor(), repair: createDoor(), backfill: createDoor() };
  const meter = createUsageMeter(requestsPerSecond);
  const waiting = new Set<(reason: Fault) => void>();
  /** What is under way; an ask too, since it may be granted. */
  const seats = new Set<Promise<unknown>>();
  let settledAt = Number.NEGATIVE_INFINITY;
  let closed = false;

  function seated<T>(work: Promise<T>): Promise<T> {
    seats.add(work);
    const leave = (): void => void seats.delete(work);
    work.then(leave, leave);
    return work;
  }

  /** Stands at the door with a ticket until it has started or left. */
  async function serve(ticket: Ticket): Promise<void> {
    const patience = performance.now() + PATIENCE_MS;
    while (!ticket.left.aborted) {
      if (seats.size >= maxConcurrent) {
        await Promise.race(seats).catch(() => {}); // Its own caller hears of it; here it only leaves a seat.
        continue;
      }
      const isCold = seats.size === 0 && performance.now() - settledAt > WARM_MS;
      try {
        const turn = await seated(slots.ask(ticket.lane, isCold));
        if (!turn.granted) await rest(turn.waitMs, ticket);
        else if (ticket.left.aborted)
          slots.settled(turn); // One slot is lost; nobody waits for its answer.
        else return ticket.start(turn);
      } catch (error) {
        // Recovery: ask again for a while. Never without a turn: others would be refused for it.
        if (!(error instanceof RetryLater) || performance.now() > patience) throw error;
        await rest(ASK_AGAIN_MS, ticket);
      }
    }
  }

  const rest = (ms: number, { left }: Ticket): Promise<void> => sleep(Math.max(1, Math.ceil(ms)), left).catch(() => {}); // It left: the loop sees that.

  async function execute<T>(task: () => Promise<T>, grant: Grant): Promise<T> {
    meter.started();
    setImmediate(() => slots.departed(grant));
    try {
      const result = await task();
      slots.settled(grant);
      return result;
    } catch (error) {
      if (error instanceof RetryLater && error.answer?.status === 429) await slots.tooMany(error.afterMs, grant);
      else slots.settled(grant);
      throw error;
    } finally {
      settledAt = performance.now();
    }
  }

  function run<T>(lane: Lane, task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (signal?.aborted) return Promise.reject(cancelled(signal));
    if (closed) return Promise.reject(new Cancelled('the pacer is closed'));
    meter.entered();
    const outcome = new Promise<T>((resolve, reject) => {
      const departed = new AbortController();
      const leave = (reason: Fault): void => {
        departed.abort();
        stopWaiting();
        reject(reason);
      };
      const stopListening = onAbort(signal, () => signal && leave(cancelled(signal)));
      const stopWaiting = (): void => {
        stopListening();
        waiting.delete(leave);
      };
      const start = (grant: Grant): void => {
        stopWaiting();
        seated(execute(task, grant)).then(resolve, reject);
      };
      waiting.add(leave);
      doors[lane].pass(() => serve({ lane, left: departed.signal, start })).catch(leave);
    });
    return outcome.finally(meter.left);
  }

  return {
    run,
    pause: (afterMs) => slots.tooMany(afterMs),
    usage: () => meter.read(slots.pauses()),
    close() {
      closed = true;
      for (const leave of waiting) leave(new Cancelled('the pacer is closed'));
    },
  };
}
