import { setImmediate as pause } from 'node:timers/promises';

const LONGEST_MS = 25;

/** To be called between columns: lets other work run where the last time is a while ago. Leases are renewed then. */
export function createYield(): () => Promise<void> {
  let began = performance.now();
  return async () => {
    if (performance.now() - began < LONGEST_MS) return;
    await pause();
    began = performance.now();
  };
}
