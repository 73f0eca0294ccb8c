/** @import { TrackCoverage } from '../../api-types.ts' */
/** @import { Zoom } from './calendar.js' */
/** @import { Address } from '../app/screen.js' */
import { here } from '../app/screen.js';
import { dayGrid, daysOf, legend, rowsOf } from './calendar.js';
import { html } from './dom.js';
import { choice, empty } from './elements.js';
import { addMonths, DAY_MS, monthOf, spokenMonth } from './words.js';

const SHORT_HISTORY_MS = 62 * DAY_MS;

/**
 * The days of a track: a month, a year or everything, by the address (`zoom`, `at`, `day`).
 * @param {TrackCoverage} track
 * @param {Address} address
 */
export function timeline(track, address) {
  const days = daysOf(track);
  const known = [...days.keys()];
  const [first, last] = [known[0], known.at(-1)];
  if (!first || !last) return empty('Nothing was read yet.');
  const zoom = zoomOf(address.query.zoom, first, last);
  const asked = address.query.at ?? address.query.day ?? last;
  const at = zoom === 'year' ? asked.slice(0, 4) : inMonth(asked.slice(0, 7), last);
  const name = { all: 'All years', year: at, month: zoom === 'month' ? spokenMonth(at) : '' }[zoom];
  const look = {
    days,
    rows: rowsOf(track),
    at,
    chosen: address.query.day,
    /** @param {string} at A day, or a month. */
    to: (at) => here(address, zoom === 'all' ? { zoom: 'month', at, day: null } : { zoom, at: look.at, day: at }),
  };
  const choices = choice('Zoom', address, 'zoom', zoom, { month: 'Month', year: 'Year', all: 'All' });
  return html`<div class="timeline">
    <div class="panel-head">
      <div class="row">${zoom !== 'all' && pager(zoom, at, [first, last], address)}<h3>${name}</h3></div>
      ${choices}
    </div>
    ${dayGrid(zoom, look)}
    ${legend('The stronger, the more rows.')}
  </div>`;
}

/** @param {string | undefined} asked @param {string} first @param {string} last @returns {Zoom} */
function zoomOf(asked, first, last) {
  if (asked === 'all' || asked === 'year' || asked === 'month') return asked;
  // At phone width the days of a year are too small to tap.
  const isNarrow = matchMedia('(width < 40rem)').matches;
  return isNarrow || Date.parse(last) - Date.parse(first) < SHORT_HISTORY_MS ? 'month' : 'year';
}

/** The month to show when zooming in from a year: the newest with data. @param {string} at @param {string} last */
const inMonth = (at, last) => (at.length > 4 ? at : last.startsWith(at) ? monthOf(last) : `${at}-12`);

/** @param {'year' | 'month'} zoom @param {string} at @param {[string, string]} ends @param {Address} address */
function pager(zoom, at, [first, last], address) {
  /** @param {number} by */
  const moved = (by) => (zoom === 'year' ? String(Number(at) + by) : addMonths(at, by));
  /** @param {number} by @param {string} label @param {string} sign */
  const link = (by, label, sign) => {
    const to = moved(by);
    const isThere = to >= first.slice(0, at.length) && to <= last.slice(0, at.length);
    return isThere
      ? html`<a class="button quiet" href=${here(address, { zoom, at: to })} aria-label=${label}>${sign}</a>`
      : html`<span class="button quiet off" aria-hidden="true">${sign}</span>`;
  };
  return html`<span class="row">${link(-1, `Earlier ${zoom}`, '‹')}${link(1, `Later ${zoom}`, '›')}</span>`;
}
