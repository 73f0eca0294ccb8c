import { AsyncResource } from 'node:async_hooks';
import Bottleneck from 'bottleneck';
import { Cancelled, RetryLater } from '../model/errors.ts';
import { type Budget, createBudget, gapOf, LANES, type Lane, type Slot } from './budget.ts';
import { cancelled, onAbort, sleep } from './cancel.ts';

export type { Lane } from './budget.ts';

/** Paces the requests of one key. */
export type Limiter = ReturnType<typeof createLimiter>;

export interface LimiterOptions {
  requestsPerSecond: number;
  /** The budget that all processes share; by default this process's own. */
  budget?: Budget;
  /** Concurrent requests: bounds memory and connections when the service is slow. */
  maxConcurrent?: number;
}

/** Two seconds' worth, so that a slow service does not slow the pace. */
const underWay = (perSecond: number): number => Math.max(16, Math.ceil(2 * perSecond));
/** Idle connections are closed after four seconds or more; a request after that needs a new one. */
const WARM_MS = 3000;
/** How long a turn waits for a budget that cannot be reached: a database restarts in less. */
const PATIENCE_MS = 10_000;
const ASK_AGAIN_MS = 250;
/** A slot reached later than this is not used: the next slot of its chain may have been granted by then. */
const TOO_LATE_MS = 500;
const CLOCK_CHECK_MS = 1000;
/** Every this many turns the request that has waited longest is sent, so that no lane starves: a first sync can take hours. */
const FAIR = 4;

/** A request that waits for its turn. */
interface Waiting {
  lane: Lane;
  start(slot: Slot): void;
  leave(reason: unknown): void;
}

/**
 * Bottleneck grants turns one at a time, spaced by the plan's rate. In its turn a process takes a slot of the shared budget and sends its
 * most urgent request. Until then a turn is bound to no request: one aborted while it waits costs nothing, and one that comes during a
 * pause does not wait behind less urgent ones. (Bottleneck's priorities are fixed at queueing, and starve the lanes below a busy one.)
 */
export function createLimiter(options: LimiterOptions) {
  const { requestsPerSecond, budget = createBudget(requestsPerSecond) } = options;
  const { maxConcurrent = underWay(requestsPerSecond) } = options;
  const openTurns = (): Bottleneck => new Bottleneck({ maxConcurrent: 1, minTime: gapOf(requestsPerSecond) });
  const meter = createUsageMeter(requestsPerSecond);
  const waiting = new Set<Waiting>();
  const running = new Set<Promise<unknown>>();
  const closing = new AbortController();
  let turns = openTurns();
  let turnsTaken = 0;
  let answeredAt = Number.NEGATIVE_INFINITY;

  /** Only `stop` rejects it: then waiting requests were rejected too, or have a turn in the new queue. */
  const queueTurn = (): void => void turns.schedule(takeTurn).catch(() => {});

  /** Bottleneck uses the wall clock: if that is set back by an hour, it would stop for an hour. */
  let clockOffset = Date.now() - performance.now();
  const clockCheck = setInterval(() => {
    const offset = Date.now() - performance.now();
    if (offset < clockOffset - CLOCK_CHECK_MS) {
      void turns.stop();
      turns = openTurns();
      for (let i = 0; i < waiting.size; i++) queueTurn();
    }
    clockOffset = offset;
  }, CLOCK_CHECK_MS).unref();

  /** The request to send next: the oldest of the most urgent lane, and every fourth time the oldest of all. */
  function first(): Waiting | undefined {
    const all = [...waiting];
    if (turnsTaken % FAIR === FAIR - 1) return all[0];
    return all.sort((a, b) => LANES.indexOf(a.lane) - LANES.indexOf(b.lane))[0];
  }

  async function takeTurn(): Promise<void> {
    const patience = performance.now() + PATIENCE_MS;
    for (let next = first(); next && !closing.signal.aborted; next = first()) {
      if (running.size >= maxConcurrent) {
        await Promise.race(running).catch(() => {}); // Its own caller gets the error; here only the free place matters.
        continue;
      }
      const isCold = running.size === 0 && performance.now() - answeredAt > WARM_MS;
      try {
        const turn = await budget.take(next.lane, isCold);
        if ('waitMs' in turn) await rest(turn.waitMs);
        else if (await reach(turn)) return send(turn);
      } catch (error) {
        // Recovery: retry for a while. Never send without a slot: other processes would get the 429.
        if (error instanceof RetryLater && performance.now() < patience) await rest(ASK_AGAIN_MS);
        else next.leave(error);
      }
    }
  }

  const rest = (ms: number): Promise<void> => sleep(Math.max(1, Math.ceil(ms)), closing.signal).catch(() => {}); // Ends early on close.

  /** Sleeps until the slot's time. False if it woke too late or a pause began: the slot is lost, and another one is taken. */
  async function reach(slot: Slot): Promise<boolean> {
    const early = slot.at - budget.now();
    if (early > 0) await rest(early);
    return budget.now() - slot.at < TOO_LATE_MS && slot.pauseCount === budget.pauseCount();
  }

  function send(slot: Slot): void {
    const next = first();
    turnsTaken++;
    if (next) next.start(slot);
    else budget.answered(slot); // No request is waiting any more: the slot is lost, and nobody waits for its answer.
  }

  async function execute<T>(task: () => Promise<T>, slot: Slot): Promise<T> {
    meter.started();
    setImmediate(() => budget.left(slot));
    try {
      const result = await task();
      budget.answered(slot);
      return result;
    } catch (error) {
      if (error instanceof RetryLater && error.answer?.status === 429) await budget.tooMany(error.afterMs, slot);
      else budget.answered(slot);
      throw error;
    } finally {
      answeredAt = performance.now();
    }
  }

  function run<T>(lane: Lane, asked: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (signal?.aborted) return Promise.reject(cancelled(signal));
    if (closing.signal.aborted) return Promise.reject(new Cancelled('the limiter is closed'));
    meter.entered();
    // A turn is granted in the async context of another request: without this, traces would assign the request to that run.
    const task = AsyncResource.bind(asked);
    const outcome = new Promise<T>((resolve, reject) => {
      const stopWaiting = (): void => {
        stopListening();
        waiting.delete(one);
      };
      const one: Waiting = {
        lane,
        start(slot) {
          stopWaiting();
          const request = execute(task, slot);
          running.add(request);
          request.finally(() => running.delete(request)).then(resolve, reject);
        },
        leave(reason) {
          stopWaiting();
          reject(reason);
        },
      };
      const stopListening = onAbort(signal, () => signal && one.leave(cancelled(signal)));
      waiting.add(one);
      queueTurn();
    });
    return outcome.finally(meter.left);
  }

  return {
    /** Runs the task in its turn. A task that fails with a 429 pauses every lane. */
    run,
    usage: () => meter.read(budget.pauses()),
    /** Rejects waiting requests. Requests in flight continue until their own signal ends them. */
    close(): void {
      if (closing.signal.aborted) return;
      closing.abort();
      clearInterval(clockCheck);
      void turns.stop();
      for (const { leave } of waiting) leave(new Cancelled('the limiter is closed'));
    },
  };
}

/** How much of the budget was used. Figures that are not known yet are absent, not zero. */
export type Usage = ReturnType<ReturnType<typeof createUsageMeter>['read']>;

function createUsageMeter(requestsPerSecond: number) {
  let requests = 0;
  let present = 0;
  let since = 0;
  let activeMs = 0;
  return {
    entered(): void {
      if (present++ === 0) since = performance.now();
    },
    left(): void {
      if (--present === 0) activeMs += performance.now() - since;
    },
    started(): void {
      requests++;
    },
    read(pauses: number) {
      const activeSeconds = (activeMs + (present > 0 ? performance.now() - since : 0)) / 1000;
      // A single request takes a moment but accounts for a whole gap: short bursts would otherwise show more than 100 %.
      const share = requests > 0 ? Math.min(1, requests / (requestsPerSecond * activeSeconds)) : undefined;
      return {
        requests,
        /** Seconds in which at least one request waited or was under way. */
        activeSeconds,
        /** Requests started in that time, as a share of what the budget would have allowed. */
        share,
        pauses,
      };
    },
  };
}
