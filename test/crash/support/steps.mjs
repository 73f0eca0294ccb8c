import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Every I/O step of a case, numbered by label: `commit: answered #3` is the third answer to a COMMIT. A case pauses at its
 * chosen step: nothing that it does afterwards leaves the process, and nothing comes in.
 */
const cases = new AsyncLocalStorage();
const never = new Promise(() => {});

/** @param at The step to pause at; undefined to run to the end. */
export const createCase = (at) => {
  const one = { at, steps: [], times: new Map(), isStill: false, stood: undefined, stand: undefined };
  one.stood = new Promise((resolve) => {
    one.stand = resolve;
  });
  return one;
};

export const within = (one, work) => cases.run(one, work);

/** The current case. Work outside of all cases is not affected. */
export const present = () => cases.getStore();

/** Records a step. Returns whether the case is now paused. */
export function take(one, label) {
  if (one.isStill) return true;
  const n = (one.times.get(label) ?? 0) + 1;
  one.times.set(label, n);
  const step = `${label} #${n}`;
  one.steps.push(step);
  one.isStill = step === one.at;
  if (one.isStill) one.stand();
  return one.isStill;
}

/** The same for a function that returns a promise: it runs, but its result is withheld. */
export async function taking(one, label, work) {
  if (one.isStill) return never;
  const result = await work();
  return take(one, label) ? never : result;
}

/** Replaces what differs between cases and processes. */
export const plain = (name) =>
  name
    .replace(/\d+@.+?\.\d+\.(tmp|lock)$/, '*.$1')
    .replace(/source-\d+/g, 'source')
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '*')
    .replace(/(^|\.)\d{5}-\*\.metadata/, '$1*.metadata')
    .replace(/snap-\d+/, 'snap-*')
    .replace(/=\d+(-\d+)*/g, '=*');
