import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Cancelled, RetryLater, type ServiceAnswer } from '../model/errors.ts';

/** The error for an aborted signal, with the signal's reason as its cause. */
export const cancelled = (signal: AbortSignal): Cancelled => new Cancelled('interrupted', { cause: signal.reason });

/**
 * Calls the listener once when the signal aborts; returns the function that removes it. One signal serves a whole run, so more than ten
 * requests listen to it at a time: Node would warn of a leak that does not exist.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => {};
  setMaxListeners(0, signal);
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}

/** Sleeps; throws Cancelled if the signal aborts. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal) setMaxListeners(0, signal);
  try {
    await delay(ms, undefined, signal && { signal });
  } catch (error) {
    throw signal?.aborted ? cancelled(signal) : error;
  }
}

/** Whether work ended within a time. The timer keeps the process alive: otherwise Node could exit with code 13 and no message. */
export async function isDoneWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  try {
    return await Promise.race([work.then(() => true), delay(ms, false, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}

/** How long each part of a request may take. */
export interface Timeouts {
  /** Until the connection is open, including TLS if used. */
  connectMs: number;
  /** Until the answer begins: deep pages are slow to start. */
  headersMs: number;
  /** Between two chunks of the body: a stalled connection never sends anything. */
  idleMs: number;
  /** In total: a body that comes byte by byte is never idle. */
  totalMs: number;
}

/**
 * The `answer` of a RetryLater if the service accepted the request but its answer did not come, not in time, or not completely: a shorter
 * range or a smaller page may be answered. Without a connection nothing is known about the request.
 */
export const CUT: ServiceAnswer = { status: 0, code: 'answer_cut', message: 'the answer did not come to its end' };

export type Deadline = ReturnType<typeof createDeadline>;

/** Combines the caller's signal and the limits. (AbortSignal.any would leak on a signal that outlives its requests.) */
export function createDeadline({ connectMs, headersMs, idleMs, totalMs }: Timeouts, caller?: AbortSignal) {
  const controller = new AbortController();
  const stopListening = onAbort(caller, () => caller && controller.abort(cancelled(caller)));
  const limit = (ms: number, what: string, next: string, { left = ms, isAsked = true } = {}) =>
    setTimeout(() => {
      const answer = isAsked ? CUT : undefined;
      controller.abort(new RetryLater(`${what} ${ms / 1000} s`, { next, answer }));
    }, left);

  let endsAt = performance.now() + totalMs;
  const inTotal = () =>
    limit(totalMs, 'the answer was not complete after', 'a smaller page comes faster; or run it again later', {
      left: endsAt - performance.now(),
    });
  const idle = () =>
    limit(
      idleMs,
      'the answer stalled: nothing came for',
      'run it again; if the problem persists, check any proxy in between',
    );
  const stop = (): void => {
    clearTimeout(total);
    clearTimeout(part);
  };
  let total = inTotal();
  let part = limit(
    connectMs,
    'no connection to the service within',
    'check the network and any firewall or proxy in between',
    { isAsked: false },
  );
  return {
    /** Aborted with the error to throw: Cancelled, or the RetryLater of the limit that was hit. */
    signal: controller.signal as AbortSignal,
    onConnect() {
      clearTimeout(part);
      part = limit(headersMs, 'the service did not begin to answer within', 'run it again later');
    },
    onHeaders() {
      clearTimeout(part);
      part = idle();
    },
    onChunk() {
      part.refresh();
    },
    /** Waits for work of our own, which counts toward none of the limits. */
    async pauseFor(own: Promise<void>): Promise<void> {
      stop();
      const began = performance.now();
      await own;
      endsAt += performance.now() - began;
      [total, part] = [inTotal(), idle()];
    },
    close() {
      stop();
      stopListening();
    },
  };
}

/**
 * A signal that aborts with any of several others until it is released. Not AbortSignal.any: that would leak a little on the signal of the
 * process with every run.
 */
export function eitherSignal(...signals: readonly AbortSignal[]): { signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const stops = signals.map((each) => onAbort(each, () => controller.abort(each.reason)));
  for (const each of signals) if (each.aborted) controller.abort(each.reason);
  return { signal: controller.signal, release: () => stops.forEach((stop) => void stop()) };
}
