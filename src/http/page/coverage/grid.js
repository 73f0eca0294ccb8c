/** @import { DayState } from '../../api-types.ts' */
import { h } from '../dom/h.js';

/**
 * @typedef {object} Cell
 * @property {string} at Its day or month.
 * @property {DayState} state
 * @property {string} label What it is, in words.
 * @property {string} to The address it leads to.
 * @property {string} [text] What stands in it.
 * @property {number} column Where it stands in its row; 1 is the row's name.
 */

/** What stands above a column. @typedef {{ text: string, column: number }} Head */

/**
 * Cells that arrow keys walk through: one stop on the way of the tab key, however many days there are.
 * @param {{ kind: string, label: string, heads: Head[], rows: { name: string, cells: Cell[] }[], chosen: string | undefined, steps: Record<string, (at: string) => string> }} options
 */
export function grid({ kind, label, heads, rows, chosen, steps }) {
  const all = rows.flatMap(({ cells }) => cells);
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
        cells.map((each) => cellOf(each, each.at === chosen, each === entry)),
      ),
    ),
  );
}

/** @param {Cell} cell @param {boolean} isChosen @param {boolean} isEntry */
const cellOf = ({ at, state, label, to, text, column }, isChosen, isEntry) =>
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
      vars: { '--column': String(column) },
      onclick: () => {
        location.hash = to;
      },
    },
    text && h('span', {}, text),
  );

/** @param {Record<string, (at: string) => string>} steps */
const walk = (steps) => (/** @type {KeyboardEvent} */ event) => {
  const from = /** @type {HTMLElement} */ (event.target).dataset.key;
  const step = steps[event.key];
  if (!from || !step || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault(); // Otherwise the page scrolls under the walker.
  const board = /** @type {HTMLElement} */ (event.currentTarget);
  const cell = board.querySelector(`[role=gridcell][data-key="${CSS.escape(step(from))}"]`);
  if (cell instanceof HTMLElement) cell.focus();
};
