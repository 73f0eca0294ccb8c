/** @import { DayRun, DayState } from '../../api-types.ts' */
import { h } from '../dom/h.js';
import { STATE_WORDS } from './days.js';

/** A stretch of days at a glance, one element for each run of like days: years of a calm stream are one. */
/** @param {readonly DayRun[]} runs @param {number} days How many the strip is wide; a younger track leaves room at its left. */
export function strip(runs, days) {
  const known = runs.reduce((sum, { count }) => sum + count, 0);
  const said = runs.map(({ date, count, state }) => `${count} ${state} from ${date}`).join(', ');
  return h(
    'span',
    { class: 'strip', role: 'img', 'aria-label': `Coverage by days: ${said}` },
    known < days && h('i', { class: 'before', vars: { '--days': String(days - known) } }),
    runs.map(({ count, state }) => h('i', { class: `state ${state}`, vars: { '--days': String(count) } })),
  );
}

export const legend = () =>
  h(
    'ul',
    { class: 'legend' },
    /** @type {[DayState, string][]} */ (Object.entries(STATE_WORDS)).map(([state, words]) =>
      h(
        'li',
        {},
        h('i', { class: `state ${state}`, 'aria-hidden': 'true' }),
        h('span', {}, h('b', {}, state), ` ${words}`),
      ),
    ),
  );
