/** @import { Child } from '../dom/h.js' */
import { h } from '../dom/h.js';

/**
 * @template R
 * @typedef {{ name: string, kind?: string, cell(row: R): Child | Child[] }} Column
 */

/**
 * A table; at phone width each row is a card with its figures named. The roles are said outright, because a row that is not laid out
 * as a row is none to a screen reader.
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
