import { DAY_MS, startOfDay } from '../model/window.ts';

/**
 * A history that ends with yesterday and is the same whenever the sandbox is started today. Ended at the very moment of the start, every
 * restart would show the same ids at other times, and a second sync would rightly call every row changed.
 */
export function untilToday(seed: number): { seed: number; historyEnd: number } {
  const today = startOfDay(Date.now());
  return { seed: seed + today / DAY_MS, historyEnd: today };
}
