import { h } from '../dom/h.js';

/** @param {string} label @param {number} share From 0 to 1. */
export const progressBar = (label, share) =>
  h('span', {
    class: 'bar',
    role: 'progressbar',
    'aria-label': label,
    'aria-valuemin': 0,
    'aria-valuemax': 100,
    'aria-valuenow': Math.floor(share * 100),
    vars: { '--share': String(share) },
  });
