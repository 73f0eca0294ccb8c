/** @import { DayRun, DayState, FeedCoverage } from '../../api-types.ts' */
/** @import { Address } from '../app/screen.js' */
import { here } from '../app/screen.js';
import { html } from './dom.js';
import { choice, empty } from './elements.js';
import { counted, DAY_MS, dayOf, monthOf, shortFigure, shortMonth, spokenDay, spokenMonth } from './words.js';

/**
 * @typedef {object} Model What to draw: every day with its state, and with its rows if they are known.
 * @property {ReadonlyMap<string, DayState>} days
 * @property {ReadonlyMap<string, number | null>} rows
 * @property {string} at The year or month.
 * @property {string | undefined} chosen The selected day.
 * @property {(at: string) => string} to The address of a day or month.
 *
 * @typedef {object} Layout How days are laid out. Column 1 is the row's name.
 * @property {(at: string) => string} label
 * @property {(at: string) => { text: string, column: number }[]} heads The headings of the columns.
 * @property {(at: string) => { row: number, name: string, column: number }} place
 * @property {[across: number, down: number]} steps How far the arrow keys move, in days or months.
 *
 * @typedef {keyof typeof LAYOUTS} Zoom
 */

const WEEK = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

/** The month `by` months later. @param {string} at @param {number} by */
const addMonths = (at, by) => monthOf(Date.UTC(Number(at.slice(0, 4)), Number(at.slice(5, 7)) - 1 + by, 1));
const MONTHS = Array.from({ length: 12 }, (_, i) => addMonths('2026-01', i));

/** Monday is 0. @param {string} day */
const weekdayOf = (day) => (new Date(day).getUTCDay() + 6) % 7;

/** The number of a day's week since a first day, where that week is 0. @param {string} day @param {string} first */
const weekOf = (day, first) => Math.floor(((Date.parse(day) - Date.parse(first)) / DAY_MS + weekdayOf(first)) / 7);

const LAYOUTS = {
  /** Weeks from left to right, weekdays from top to bottom. @type {Layout} */
  year: {
    label: (at) => `Days of ${at}`,
    // Each month is above the week in which it starts.
    heads: (at) =>
      MONTHS.map((month) => ({
        text: shortMonth(month),
        column: weekOf(`${at}${month.slice(4)}-01`, `${at}-01-01`) + 2,
      })),
    place(day) {
      const row = weekdayOf(day);
      return { row, name: WEEK[row] ?? '', column: weekOf(day, `${day.slice(0, 4)}-01-01`) + 2 };
    },
    steps: [7, 1],
  },
  /** A page of a calendar. @type {Layout} */
  month: {
    label: (at) => `Days of ${spokenMonth(at)}`,
    heads: () => WEEK.map((text, i) => ({ text, column: i + 2 })),
    place(day) {
      const row = weekOf(day, `${monthOf(day)}-01`);
      return { row, name: `Week ${row + 1}`, column: weekdayOf(day) + 2 };
    },
    steps: [1, 7],
  },
  /** One row per year, one cell per month. @type {Layout} */
  all: {
    label: () => 'All months',
    heads: () => MONTHS.map((month, i) => ({ text: shortMonth(month), column: i + 2 })),
    place: (month) => ({ row: Number(month.slice(0, 4)), name: month.slice(0, 4), column: Number(month.slice(5)) + 1 }),
    steps: [1, 12],
  },
};

/**
 * A grid that arrow keys move through; it is a single tab stop, however many days there are.
 * @param {Zoom} zoom
 * @param {Model} model
 */
function dayGrid(zoom, model) {
  const { label, heads, place, steps } = LAYOUTS[zoom];
  const cells = cellsOf(zoom, model);
  const most = cells.reduce((n, { rows }) => Math.max(n, rows ?? 0), 1);
  const chosen = zoom === 'all' ? model.chosen?.slice(0, 7) : model.chosen;
  const entry = cells.find(({ at }) => at === chosen) ?? cells.at(-1);
  /** @type {{ name: string, cells: HTMLElement[] }[]} */
  const rows = [];
  for (const cell of cells) {
    const { row, name, column } = place(cell.at);
    rows[row] ??= { name, cells: [] };
    rows[row].cells.push(cellButton(cell, { column, most, isChosen: cell.at === chosen, isEntry: cell === entry }));
  }
  return html`<div class="days ${zoom}" role="grid" aria-label=${label(model.at)} onkeydown=${walk(zoom, steps)}>
    <div class="days-row" role="row" data-key="heads">
      ${heads(model.at).map(
        ({ text, column }) =>
          html`<span class="days-name" role="columnheader" vars=${{ '--column': column }}>${text}</span>`,
      )}
    </div>
    ${rows.filter(Boolean).map(
      ({ name, cells }) =>
        html`<div class="days-row" role="row" data-key=${name}>
            <span class="days-name" role="rowheader">${name}</span>${cells}
          </div>`,
    )}
  </div>`;
}

/** @typedef {{ at: string, state: DayState, label: string, to: string, text: string, rows: number | null }} Cell `rows`: null if unknown. */

/** The days or months that are shown, in order. @param {Zoom} zoom @param {Model} model @returns {Cell[]} */
function cellsOf(zoom, model) {
  /** @type {Map<string, { states: DayState[], rows: number | null }>} */
  const units = new Map();
  for (const [day, state] of model.days) {
    if (zoom !== 'all' && !day.startsWith(model.at)) continue;
    const at = zoom === 'all' ? monthOf(day) : day;
    const unit = units.get(at) ?? { states: [], rows: 0 };
    const rows = model.rows.get(day) ?? (!model.rows.has(day) && state === 'certified' ? 0 : null);
    unit.states.push(state);
    unit.rows = rows === null || unit.rows === null ? null : unit.rows + rows;
    units.set(at, unit);
  }
  return [...units].map(([at, { states, rows }]) => {
    const state = worstOf(states);
    const what =
      zoom === 'all' ? `${shortMonth(at)} ${at.slice(0, 4)}: ${tallyOf(states)}` : `${spokenDay(at)}: ${state}`;
    const label = `${what}${rows === null ? '' : `, ${counted(rows, 'row')}`}`;
    return { at, state, rows, label, to: model.to(at), text: zoom === 'month' ? String(Number(at.slice(8))) : '' };
  });
}

/**
 * @param {Cell} cell
 * @param {{ column: number, most: number, isChosen: boolean, isEntry: boolean }} place `most`: the rows of the largest cell.
 */
function cellButton({ at, state, label, to, text, rows }, { column, most, isChosen, isEntry }) {
  const onclick = () => location.assign(to);
  // The square root keeps one busy day from making all others look empty.
  const vars = { '--column': column, '--share': rows === null ? '1' : Math.sqrt(rows / most).toFixed(2) };
  return html`<button type="button" role="gridcell" class="state ${state}" data-key=${at} aria-label=${label}
    aria-selected=${String(isChosen)} title=${label} tabindex=${isEntry ? 0 : -1} vars=${vars} onclick=${onclick}>
    ${text && html`<span data-rows=${rows !== null && shortFigure(rows)}>${text}</span>`}
  </button>`;
}

/** @param {Zoom} zoom @param {Layout['steps']} steps */
const walk =
  (zoom, [across, down]) =>
  (/** @type {KeyboardEvent} */ event) => {
    const from = /** @type {HTMLElement} */ (event.target).dataset.key;
    const keys = { ArrowLeft: -across, ArrowRight: across, ArrowUp: -down, ArrowDown: down };
    const step = keys[/** @type {keyof typeof keys} */ (event.key)];
    if (!from || !step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault(); // Otherwise arrow keys also scroll the page.
    const to = zoom === 'all' ? addMonths(from, step) : dayOf(Date.parse(from) + step * DAY_MS);
    const cell = /** @type {HTMLElement} */ (event.currentTarget).querySelector(`[role=gridcell][data-key="${to}"]`);
    if (cell instanceof HTMLElement) cell.focus();
  };

/** From best to worst: a month has the worst state of its days. @type {Readonly<Record<DayState, string>>} */
const STATE_WORDS = {
  certified: 'proven complete',
  open: 'not reached yet',
  quarantined: 'complete, but records were set aside',
  uncertified: 'read, not proven',
  gap: 'never read, although later days were',
};

const ORDER = /** @type {DayState[]} */ (Object.keys(STATE_WORDS));

/** @param {readonly DayState[]} states */
const worstOf = (states) => ORDER.findLast((state) => states.includes(state)) ?? 'open';

/** Every day of a feed with its state, in order. @param {FeedCoverage} feed @returns {Map<string, DayState>} */
function daysOf({ days }) {
  const each = new Map();
  for (const { date, count, state } of days) {
    const start = Date.parse(date);
    for (let i = 0; i < count; i++) each.set(dayOf(start + i * DAY_MS), state);
  }
  return each;
}

/** The number of days by state, worst first: `2 gap, 30 certified`. @param {readonly DayState[]} states */
const tallyOf = (states) =>
  ORDER.toReversed()
    .map((state) => [states.filter((each) => each === state).length, state])
    .filter(([n]) => n)
    .map((each) => each.join(' '))
    .join(', ');

/** A bar with one element for each run of equal days, so that years of a healthy stream are one element. */
/** @param {readonly DayRun[]} runs @param {number} days The width of the strip in days; a younger feed leaves space at its left. */
export function strip(runs, days) {
  // Positions come from dates, not from counts: days between a backfill and the beginning may be missing.
  let at = Date.parse(runs.at(-1)?.date ?? '') + ((runs.at(-1)?.count ?? 0) - days) * DAY_MS;
  const parts = runs.flatMap(({ date, count, state }) => {
    const before = Math.round((Date.parse(date) - at) / DAY_MS);
    at = Date.parse(date) + count * DAY_MS;
    return [
      before > 0 && html`<i vars=${{ '--days': before }}></i>`,
      html`<i class="state ${state}" vars=${{ '--days': count }}></i>`,
    ];
  });
  const said = runs.map(({ date, count, state }) => `${count} ${state} from ${date}`).join(', ');
  return html`<span class="strip" role="img" aria-label="Coverage by days: ${said}">${parts}</span>`;
}

/** @param {string} [more] An additional line. */
export const legend = (more) =>
  html`<ul class="legend">
    ${Object.entries(STATE_WORDS).map(
      ([state, words]) =>
        html`<li><i class="state ${state}" aria-hidden="true"></i><span><b>${state}</b> ${words}</span></li>`,
    )}
    ${more && html`<li>${more}</li>`}
  </ul>`;

const SHORT_HISTORY_MS = 62 * DAY_MS;

/**
 * The days of a feed: a month, a year or everything, depending on the address (`zoom`, `at`, `day`).
 * @param {FeedCoverage} feed
 * @param {Address} address
 */
export function timeline(feed, address) {
  const days = daysOf(feed);
  const known = [...days.keys()];
  const [first, last] = [known[0], known.at(-1)];
  if (!first || !last) return empty('Nothing has been read yet.');
  const zoom = zoomOf(address.query.zoom, first, last);
  const asked = address.query.at ?? address.query.day ?? last;
  const at = zoom === 'year' ? asked.slice(0, 4) : inMonth(asked.slice(0, 7), last);
  const name = { all: 'All years', year: at, month: zoom === 'month' ? spokenMonth(at) : '' }[zoom];
  const model = {
    days,
    rows: new Map(feed.rows.map((day) => [day.date, day.rows])),
    at,
    chosen: address.query.day,
    /** @param {string} at A day, or a month. */
    to: (at) => here(address, zoom === 'all' ? { zoom: 'month', at, day: null } : { zoom, at: model.at, day: at }),
  };
  return html`<div class="timeline">
    <div class="panel-head">
      <div class="row">${zoom !== 'all' && pager(zoom, at, [first, last], address)}<h3>${name}</h3></div>
      ${choice('Zoom', address, 'zoom', zoom, { month: 'Month', year: 'Year', all: 'All' })}
    </div>
    ${dayGrid(zoom, model)}
    ${legend('Stronger colours mean more rows.')}
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
  /** @param {number} by @param {string} label @param {string} sign */
  const link = (by, label, sign) => {
    const to = zoom === 'year' ? String(Number(at) + by) : addMonths(at, by);
    const isThere = to >= first.slice(0, at.length) && to <= last.slice(0, at.length);
    return isThere
      ? html`<a class="button quiet" href=${here(address, { zoom, at: to })} aria-label=${label}>${sign}</a>`
      : html`<span class="button quiet off" aria-hidden="true">${sign}</span>`;
  };
  return html`<span class="row">${link(-1, `Earlier ${zoom}`, '‹')}${link(1, `Later ${zoom}`, '›')}</span>`;
}
