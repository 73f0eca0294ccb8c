/** @import { Address } from '../app/address.js' */
import { here } from '../app/address.js';
import { h } from '../dom/h.js';

/**
 * Fields that narrow a list; what is chosen goes into the address.
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

/** The way to older entries and back. @param {Address} address @param {string | null} next @param {string} noun */
export const older = (address, next, noun) =>
  (next || address.query.before) &&
  h(
    'nav',
    { class: 'row', 'aria-label': `Pages of ${noun}` },
    address.query.before && h('a', { class: 'button', href: here(address, { before: null }) }, `Newest ${noun}`),
    next && h('a', { class: 'button', href: here(address, { before: next }) }, `Older ${noun}`),
  );
