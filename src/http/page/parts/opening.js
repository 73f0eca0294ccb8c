/** @import { Child } from '../dom/h.js' */
import { h } from '../dom/h.js';

/**
 * How a view begins: what it is, or how things stand, in one line; and one more for those who want it.
 * @param {string} title
 * @param {Child | Child[]} [more]
 * @param {Child} [crumb]
 */
export const opening = (title, more, crumb) =>
  h(
    'div',
    { class: 'opening' },
    crumb && h('p', { class: 'crumb' }, crumb),
    h('h1', {}, title),
    more && h('p', { class: 'muted' }, more),
  );
