/** @import { RunRow, Trouble } from '../../api-types.ts' */
/** @import { Address } from '../app/screen.js' */
/** @import { Child } from './dom.js' */
import { here, href } from '../app/screen.js';
import { h } from './dom.js';
import { badge } from './elements.js';
import { duration, figure, fromNow, time } from './words.js';

/**
 * @template R
 * @typedef {{ name: string, kind?: string, cell(row: R): Child | Child[] }} Column
 */

/**
 * A table; at phone width each row is a card with labelled figures. Roles are explicit, because a row that is not laid out
 * as a row is not announced as one by screen readers.
 * @template R
 * @param {{ label: string, columns: Column<R>[], rows: readonly R[], keyOf(row: R): string | number, isDense?: boolean }} options
 */
export const table = ({ label, columns, rows, keyOf, isDense = false }) =>
  h(
    'table',
    { class: isDense ? 'cards dense' : 'cards', role: 'table', 'aria-label': label },
    h(
      'thead',
      { role: 'rowgroup' },
      h(
        'tr',
        { role: 'row' },
        columns.map(({ name, kind }) =>
          h(
            'th',
            { role: 'columnheader', scope: 'col', class: kind },
            name || h('span', { class: 'spoken' }, 'Actions'),
          ),
        ),
      ),
    ),
    h(
      'tbody',
      { role: 'rowgroup' },
      rows.map((row) =>
        h(
          'tr',
          { role: 'row', 'data-key': keyOf(row) },
          columns.map(({ name, kind, cell }) =>
            h('td', { role: 'cell', class: kind, 'data-label': name || null }, cell(row)),
          ),
        ),
      ),
    ),
  );

/** @param {readonly RunRow[]} runs @param {{ isOneStream?: boolean }} [options] Whose they are goes without saying. */
export const runsTable = (runs, { isOneStream = false } = {}) =>
  runs.length === 0
    ? h('p', { class: 'empty' }, 'No run yet.')
    : table({
        label: 'Runs',
        isDense: true,
        rows: runs,
        keyOf: ({ id }) => id,
        columns: [
          {
            name: 'Started',
            kind: 'lead fit',
            cell: ({ id, startedAt }) => h('a', { href: href(['run', id]) }, time(startedAt)),
          },
          ...(isOneStream ? [] : [streamColumn]),
          { name: 'Kind', kind: 'fit', cell: ({ kind }) => kind },
          {
            name: 'Took',
            kind: 'right fit',
            cell: ({ durationSeconds }) => durationSeconds !== null && duration(durationSeconds),
          },
          { name: 'Read', kind: 'right fit', cell: (run) => ended(run, run.read) },
          { name: 'New', kind: 'right fit', cell: (run) => ended(run, run.new) },
          { name: 'Changed', kind: 'right fit', cell: (run) => ended(run, run.changed) },
          { name: 'Requests', kind: 'right fit', cell: (run) => ended(run, run.requests) },
          { name: 'Outcome', kind: 'wide', cell: outcome },
        ],
      });

/** Of a run that goes on, what is not counted yet is not known to be zero. @param {RunRow} run @param {number} n */
export const ended = ({ state }, n) => (state !== 'running' || n > 0) && figure(n);

/** @type {Column<RunRow>} */
const streamColumn = { name: 'Stream', kind: 'fit', cell: ({ source, stream }) => `${source}/${stream}` };

/** `done` is the normal case and needs no badge. @param {RunRow} run */
export const outcome = ({ state, message, quarantined, tooManyRequests }) =>
  h(
    'span',
    { class: 'row' },
    state === 'done' || state === 'running' ? state : badge(state, state === 'interrupted' ? 'warn' : 'bad'),
    quarantined > 0 && badge(`${figure(quarantined)} set aside`, 'warn'),
    tooManyRequests > 0 && badge(`${figure(tooManyRequests)} × 429`, 'warn'),
    message && message !== state && h('span', { class: 'small' }, message),
  );

/**
 * Filters of a list; the choice is part of the address.
 * @param {Address} address
 * @param {{ name: string, label: string, values: readonly string[] }[]} fields
 */
export const filters = (address, fields) =>
  h(
    'div',
    { class: 'fields', role: 'group', 'aria-label': 'Filters' },
    fields.map(({ name, label, values }) => {
      const chosen = address.query[name] ?? '';
      const id = `filter-${name}`;
      const select = h(
        'select',
        {
          id,
          onchange: (/** @type {Event} */ { target }) => {
            const { value } = /** @type {HTMLSelectElement} */ (target);
            location.hash = here(address, { [name]: value, before: null });
          },
        },
        h('option', { value: '', selected: chosen === '' }, 'all'),
        values.map((value) => h('option', { value, selected: value === chosen }, value)),
      );
      return h('div', { class: 'field' }, h('label', { for: id }, label), select);
    }),
  );

/** Links to older entries and back. @param {Address} address @param {string | null} next @param {string} noun */
export const older = (address, next, noun) =>
  (next || address.query.before) &&
  h(
    'nav',
    { class: 'row', 'aria-label': `Pages of ${noun}` },
    address.query.before && h('a', { class: 'button', href: here(address, { before: null }) }, `Newest ${noun}`),
    next && h('a', { class: 'button', href: here(address, { before: next }) }, `Older ${noun}`),
  );

/** Warnings about filters, if any. @param {readonly string[]} warnings */
export const doubtList = (warnings) =>
  warnings.length === 0
    ? []
    : [
        h(
          'ul',
          { class: 'troubles', 'aria-label': 'Doubtful filters' },
          warnings.map((text) => h('li', { 'data-key': text }, badge('filter', 'warn'), h('span', {}, text))),
        ),
      ];

/** Problems that need a person, if any. @param {readonly Trouble[]} troubles */
export function troubleList(troubles) {
  if (troubles.length === 0) return [];
  return [
    h(
      'ul',
      { class: 'troubles', 'aria-label': 'Action needed' },
      troubles.map(({ kind, source, stream, message, since }) =>
        h(
          'li',
          { 'data-key': `${kind}/${source}/${stream}` },
          badge(kind, kind === 'uncertified' ? 'warn' : 'bad'),
          h(
            'span',
            { class: 'trouble-text' },
            stream === '*'
              ? h('b', {}, source)
              : h('a', { href: href(['stream', source, stream]) }, `${source}/${stream}`),
            ` ${message} `,
            h('span', { class: 'muted' }, fromNow(since)),
          ),
        ),
      ),
    ),
  ];
}
