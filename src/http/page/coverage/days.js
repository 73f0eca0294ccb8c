/** @import { DayRun, DayState, TrackCoverage } from '../../api-types.ts' */
import { h } from '../parts/dom.js';
import { DAY_MS, dayOf } from '../parts/words.js';

/** @type {Readonly<Record<DayState, string>>} */
export const STATE_WORDS = {
  certified: 'proven complete',
  open: 'not reached yet',
  quarantined: 'complete, but records were set aside',
  uncertified: 'read, not proven',
  gap: 'never read, though later days were',
};

/** From calm to worst: a span of days is as bad as the worst of them. */
const ORDER = /** @type {const} */ (['certified', 'open', 'quarantined', 'uncertified', 'gap']);

/** @param {Iterable<DayState>} states @returns {DayState | undefined} */
export function worstOf(states) {
  const found = new Set(states);
  return ORDER.toReversed().find((state) => found.has(state));
}

/** Every day of a track with its state, in order. @param {TrackCoverage} track @returns {Map<string, DayState>} */
export function daysOf({ days }) {
  const each = new Map();
  for (const { date, count, state } of days) {
    const start = Date.parse(date);
    for (let i = 0; i < count; i++) each.set(dayOf(start + i * DAY_MS), state);
  }
  return each;
}

/** How many days of each state, the worst first: `2 gap, 30 certified`. @param {Iterable<DayState>} states */
export function tallyOf(states) {
  /** @type {Partial<Record<DayState, number>>} */
  const tally = {};
  for (const state of states) tally[state] = (tally[state] ?? 0) + 1;
  return ORDER.toReversed()
    .filter((state) => tally[state])
    .map((state) => `${tally[state]} ${state}`)
    .join(', ');
}

/** A stretch of days at a glance, one element for each run of like days: years of a calm stream are one. */
/** @param {readonly DayRun[]} runs @param {number} days How many the strip is wide; a younger track leaves room at its left. */
export function strip(runs, days) {
  // Days that nobody asked for lie between a backfill and the beginning too: places are told by dates, not by counting.
  let at = Date.parse(runs.at(-1)?.date ?? '') + ((runs.at(-1)?.count ?? 0) - days) * DAY_MS;
  const parts = runs.flatMap(({ date, count, state }) => {
    const before = Math.round((Date.parse(date) - at) / DAY_MS);
    at = Date.parse(date) + count * DAY_MS;
    return [
      before > 0 && h('i', { class: 'before', vars: { '--days': String(before) } }),
      h('i', { class: `state ${state}`, vars: { '--days': String(count) } }),
    ];
  });
  const said = runs.map(({ date, count, state }) => `${count} ${state} from ${date}`).join(', ');
  return h('span', { class: 'strip', role: 'img', 'aria-label': `Coverage by days: ${said}` }, parts);
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
