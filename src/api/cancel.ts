import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Cancelled } from '../model/errors.ts';

/** What the caller of an aborted signal gets; the reason travels along as the cause. */
export const cancelled = (signal: AbortSignal): Cancelled => new Cancelled('interrupted', { cause: signal.reason });

/**
 * Calls back once when the signal aborts; returns the way to stop listening. One signal stands for a whole run, so more
 * than ten requests listen to it at a time: Node would print a warning about a leak that is none.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => {};
  setMaxListeners(0, signal);
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}

/** Sleeps, unless the signal ends it with Cancelled. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal) setMaxListeners(0, signal);
  try {
    await delay(ms, undefined, signal && { signal });
  } catch (error) {
    throw signal?.aborted ? cancelled(signal) : error;
  }
}
