import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Every step of I/O that a piece of work takes, numbered by its label: `commit: answered #3` is the third answer to a COMMIT. A case
 * stands still at a step that is chosen for it: nothing that it does afterwards comes out of the process, and nothing comes in.
 */
const cases = new AsyncLocalStorage();
const never = new Promise(() => {});

/** @param at The step to stand still at; undefined for one that goes through. */
export const createCase = (at) => {
  const one = { at, steps: [], times: new Map(), isStill: false, stood: undefined, stand: undefined };
  one.stood = new Promise((resolve) => {
    one.stand = resolve;
  });
  return one;
};

export const within = (one, work) => cases.run(one, work);

/** Whose work this is. What belongs to no case is left alone. */
export const present = () => cases.getStore();

/** Something has happened. Returns whether the case stands still now. */
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

/** The same for a function that returns a promise: it is done, and nobody hears of it. */
export async function taking(one, label, work) {
  if (one.isStill) return never;
  const result = await work();
  return take(one, label) ? never : result;
}

/** What differs from case to case, and from process to process, is no part of a label. */
export const plain = (name) =>
  name
    .replace(/\d+@.+?\.\d+\.(tmp|lock)$/, '*.$1')
    .replace(/source-\d+/g, 'source')
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '*')
    .replace(/(^|\.)\d{5}-\*\.metadata/, '$1*.metadata')
    .replace(/snap-\d+/, 'snap-*')
    .replace(/=\d+(-\d+)*/g, '=*');
