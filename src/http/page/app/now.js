/** @import { Activity, Overview } from '../../api-types.ts' */

import { announce } from '../parts/actions.js';
import { h, morphChildren } from '../parts/dom.js';
import { progressBar } from '../parts/elements.js';
import { duration, figure, percent } from '../parts/words.js';
import { href } from './screen.js';
import { post } from './session.js';

/** The view itself must stay in sight, however many backfills wait. */
const SHOWN = 4;

/** What is being read at this moment, above every view. @param {HTMLElement} place @param {Overview} overview */
export function drawNow(place, { activities, now }) {
  if (activities.length === 0) return clearNow(place);
  place.hidden = false;
  const rows = activities.slice(0, SHOWN).map((activity) => row(activity, Date.parse(now)));
  const more = activities.length - rows.length;
  if (more > 0) rows.push(h('li', { 'data-key': 'more' }, h('a', { href: '#/backfills' }, `and ${more} more`)));
  morphChildren(place, [h('h2', { class: 'small' }, 'Now'), h('ul', { class: 'plain' }, rows)]);
}

/** Nothing of it stays behind for whoever is not signed in. @param {HTMLElement} place */
export function clearNow(place) {
  place.hidden = true;
  place.replaceChildren();
}

/** @param {Activity} activity @param {number} now */
function row(activity, now) {
  const { kind, id, source, stream, startedAt, progress, rows, rowsPerSecond, etaSeconds, paused } = activity;
  const name = `${source}/${stream}`;
  const to = kind === 'backfill' ? '#/backfills' : href(['run', id]);
  const figures = [
    progress === null ? `for ${duration(Math.max(0, (now - Date.parse(startedAt)) / 1000))}` : `${percent(progress)}`,
    rows !== null && rows > 0 && `${figure(rows)} rows`,
    rowsPerSecond !== null && rowsPerSecond > 0 && !paused && `${figure(rowsPerSecond)} rows/s`,
    etaSeconds !== null && !paused && `about ${duration(etaSeconds)} left`,
  ].filter(Boolean);
  return h(
    'li',
    { class: 'row', 'data-key': id },
    h('a', { href: to }, `${paused ? 'Paused: ' : ''}${kind === 'sync' ? 'Sync' : 'Backfill'} of ${name}`),
    progress !== null && progressBar(`${kind} of ${name}`, progress),
    h('span', { class: 'muted small' }, figures.join(' · ')),
    kind === 'backfill' && toggle(id, name, paused),
  );
}

/** @param {string} id @param {string} name @param {boolean} paused */
const toggle = (id, name, paused) =>
  h(
    'button',
    {
      type: 'button',
      class: 'quiet',
      'aria-label': `${paused ? 'Resume' : 'Pause'} the backfill of ${name}`,
      onclick: () =>
        announce(`The backfill of ${name} ${paused ? 'goes on' : 'is paused'}.`, () =>
          post(`/api/backfills/${encodeURIComponent(id)}/${paused ? 'resume' : 'pause'}`),
        ),
    },
    paused ? 'Resume' : 'Pause',
  );
