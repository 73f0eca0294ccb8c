/** @import { DayRun, DayState, TrackCoverage } from '../../api-types.ts' */
import { h } from './dom.js';
import {
  addMonths,
  counted,
  DAY_MS,
  dayOf,
  daysIn,
  monthOf,
  shortFigure,
  shortMonth,
  spokenDay,
  spokenMonth,
} from './words.js';

/**
 * Three views of a track's days: month, year, all. Each draws one grid of at most a year's cells.
 * @typedef {{ days: ReadonlyMap<string, DayState>, rows: ReadonlyMap<string, number | null>, at: string, chosen: string | undefined, toDay(day: string): string, toMonth(month: string): string }} Look
 */

const WEEK = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

/** Monday is 0. @param {string} day */
const weekdayOf = (day) => (new Date(day).getUTCDay() + 6) % 7;

/** @param {number} days */
const onBy = (days) => (/** @type {string} */ day) => dayOf(Date.parse(day) + days * DAY_MS);

/** @param {number} months */
const onByMonths = (months) => (/** @type {string} */ month) => addMonths(month, months);

/** @param {Look} look @param {string} day @param {DayState} state @returns {Omit<Cell, 'column'>} */
function dayCell(look, day, state) {
  const rows = rowsIn(look, day, state);
  return { at: day, state, label: `${spokenDay(day)}: ${state}${said(rows)}`, to: look.toDay(day), rows };
}

/** @param {number | null} rows */
const said = (rows) => (rows === null ? '' : `, ${counted(rows, 'row')}`);

/** Null where it is not known. @param {Look} look @param {string} day @param {DayState} state */
const rowsIn = ({ rows }, day, state) => rows.get(day) ?? (!rows.has(day) && state === 'certified' ? 0 : null);

/** Weeks from left to right, weekdays from top to bottom. @param {Look} look */
export function yearGrid(look) {
  const first = Date.parse(`${look.at}-01-01`);
  const lead = weekdayOf(dayOf(first));
  const cells = [...look.days]
    .filter(([day]) => day.startsWith(look.at))
    .map(([day, state]) => dayCell(look, day, state));
  const rows = WEEK.map((name, row) => ({
    name,
    cells: cells
      .filter(({ at }) => weekdayOf(at) === row)
      .map((cell) => ({ ...cell, column: Math.floor(((Date.parse(cell.at) - first) / DAY_MS + lead) / 7) + 2 })),
  }));
  const steps = { ArrowLeft: onBy(-7), ArrowRight: onBy(7), ArrowUp: onBy(-1), ArrowDown: onBy(1) };
  return grid({
    kind: 'year',
    label: `Days of ${look.at}`,
    heads: monthHeads(look.at, lead),
    rows,
    chosen: look.chosen,
    steps,
  });
}

/** Month names, each above the week that it starts in. @param {string} year @param {number} lead */
const monthHeads = (year, lead) =>
  Array.from({ length: 12 }, (_, i) => {
    const days = (Date.UTC(Number(year), i, 1) - Date.UTC(Number(year), 0, 1)) / DAY_MS;
    return { text: shortMonth(addMonths(`${year}-01`, i)), column: Math.floor((days + lead) / 7) + 2 };
  });

/** A page of a calendar. @param {Look} look */
export function monthGrid(look) {
  const cells = Array.from({ length: daysIn(look.at) }, (_, i) => `${look.at}-${String(i + 1).padStart(2, '0')}`)
    .flatMap((day) => {
      const state = look.days.get(day);
      return state ? [dayCell(look, day, state)] : [];
    })
    .map((cell) => ({ ...cell, text: String(Number(cell.at.slice(8))), column: weekdayOf(cell.at) + 2 }));
  const heads = WEEK.map((text, i) => ({ text, column: i + 2 }));
  const lead = weekdayOf(`${look.at}-01`);
  const weeks = Array.from({ length: Math.ceil((lead + daysIn(look.at)) / 7) }, (_, week) => ({
    name: `Week ${week + 1}`,
    cells: cells.filter(({ at }) => Math.floor((lead + Number(at.slice(8)) - 1) / 7) === week),
  })).filter((week) => week.cells.length > 0);
  const steps = { ArrowLeft: onBy(-1), ArrowRight: onBy(1), ArrowUp: onBy(-7), ArrowDown: onBy(7) };
  return grid({
    kind: 'month',
    label: `Days of ${spokenMonth(look.at)}`,
    heads,
    rows: weeks,
    chosen: look.chosen,
    steps,
  });
}

/** All years, a cell for each month. @param {Look} look */
export function allGrid(look) {
  /** @type {Map<string, { states: DayState[], rows: number | null }>} */
  const months = new Map();
  for (const [day, state] of look.days) {
    const month = months.get(monthOf(day)) ?? { states: [], rows: 0 };
    const rows = rowsIn(look, day, state);
    month.states.push(state);
    month.rows = rows === null || month.rows === null ? null : month.rows + rows;
    months.set(monthOf(day), month);
  }
  const years = [...new Set([...months.keys()].map((month) => month.slice(0, 4)))];
  const rows = years.map((name) => ({
    name,
    cells: [...months]
      .filter(([month]) => month.startsWith(name))
      .map(([month, { states, rows }]) => ({
        at: month,
        state: worstOf(states) ?? /** @type {const} */ ('open'),
        label: `${shortMonth(month)} ${name}: ${tallyOf(states)}${said(rows)}`,
        to: look.toMonth(month),
        rows,
        column: Number(month.slice(5)) + 1,
      })),
  }));
  const heads = Array.from({ length: 12 }, (_, i) => ({ text: shortMonth(addMonths('2026-01', i)), column: i + 2 }));
  const chosen = look.chosen && monthOf(look.chosen);
  const steps = {
    ArrowLeft: onByMonths(-1),
    ArrowRight: onByMonths(1),
    ArrowUp: onByMonths(-12),
    ArrowDown: onByMonths(12),
  };
  return grid({ kind: 'all', label: 'All months', heads, rows, chosen, steps });
}

/**
 * @typedef {object} Cell
 * @property {string} at Its day or month.
 * @property {DayState} state
 * @property {string} label What it is, in words.
 * @property {string} to The address it leads to.
 * @property {number | null} rows How many it has; null where that is not known.
 * @property {string} [text] What stands in it.
 * @property {number} column Where it stands in its row; 1 is the row's name.
 */

/** The heading of a column. @typedef {{ text: string, column: number }} Head */

/**
 * A grid that arrow keys move through; it is a single tab stop, however many days there are.
 * @param {{ kind: string, label: string, heads: Head[], rows: { name: string, cells: Cell[] }[], chosen: string | undefined, steps: Record<string, (at: string) => string> }} options
 */
export function grid({ kind, label, heads, rows, chosen, steps }) {
  const all = rows.flatMap(({ cells }) => cells);
  const most = all.reduce((n, { rows }) => Math.max(n, rows ?? 0), 1);
  const entry = all.find(({ at }) => at === chosen) ?? all.toSorted((a, b) => (a.at < b.at ? -1 : 1)).at(-1);
  return h(
    'div',
    { class: `days ${kind}`, role: 'grid', 'aria-label': label, onkeydown: walk(steps) },
    h(
      'div',
      { class: 'days-row', role: 'row', 'data-key': 'heads' },
      heads.map(({ text, column }) =>
        h('span', { class: 'days-name', role: 'columnheader', vars: { '--column': String(column) } }, text),
      ),
    ),
    rows.map(({ name, cells }) =>
      h(
        'div',
        { class: 'days-row', role: 'row', 'data-key': name },
        h('span', { class: 'days-name', role: 'rowheader' }, name),
        cells.map((each) => cellOf(each, most, each.at === chosen, each === entry)),
      ),
    ),
  );
}

/** @param {Cell} cell @param {number} most The rows of the fullest cell. @param {boolean} isChosen @param {boolean} isEntry */
const cellOf = ({ at, state, label, to, text, rows, column }, most, isChosen, isEntry) =>
  h(
    'button',
    {
      type: 'button',
      role: 'gridcell',
      class: `state ${state}`,
      'data-key': at,
      'aria-label': label,
      'aria-selected': String(isChosen),
      title: label,
      tabindex: isEntry ? 0 : -1,
      // By the root, so that one busy day does not make all others look empty.
      vars: { '--column': String(column), '--share': rows === null ? '1' : Math.sqrt(rows / most).toFixed(2) },
      onclick: () => {
        location.hash = to;
      },
    },
    text && h('span', { 'data-rows': rows !== null && shortFigure(rows) }, text),
  );

/** @param {Record<string, (at: string) => string>} steps */
const walk = (steps) => (/** @type {KeyboardEvent} */ event) => {
  const from = /** @type {HTMLElement} */ (event.target).dataset.key;
  const step = steps[event.key];
  if (!from || !step || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault(); // Otherwise arrow keys also scroll the page.
  const board = /** @type {HTMLElement} */ (event.currentTarget);
  const cell = board.querySelector(`[role=gridcell][data-key="${CSS.escape(step(from))}"]`);
  if (cell instanceof HTMLElement) cell.focus();
};

/** @type {Readonly<Record<DayState, string>>} */
export const STATE_WORDS = {
  certified: 'proven complete',
  open: 'not reached yet',
  quarantined: 'complete, but records were set aside',
  uncertified: 'read, not proven',
  gap: 'never read, though later days were',
};

/** From best to worst: a span of days has the worst state in it. */
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

/** The rows of each day with rows; null where they are not known. @param {TrackCoverage} track @returns {Map<string, number | null>} */
export const rowsOf = ({ rows }) => new Map(rows.map((day) => [day.date, day.rows]));

/** The number of days by state, worst first: `2 gap, 30 certified`. @param {Iterable<DayState>} states */
export function tallyOf(states) {
  /** @type {Partial<Record<DayState, number>>} */
  const tally = {};
  for (const state of states) tally[state] = (tally[state] ?? 0) + 1;
  return ORDER.toReversed()
    .filter((state) => tally[state])
    .map((state) => `${tally[state]} ${state}`)
    .join(', ');
}

/** A bar of days, with one element for each run of equal days: years of a healthy stream are one element. */
/** @param {readonly DayRun[]} runs @param {number} days How many the strip is wide; a younger track leaves room at its left. */
export function strip(runs, days) {
  // Days that were never requested lie between a backfill and the beginning, so positions come from dates, not from counting.
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

/** @param {string} [more] What else the colour of a day says. */
export const legend = (more) =>
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
    more && h('li', {}, more),
  );
