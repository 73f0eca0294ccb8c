import { h } from '../dom/h.js';

/**
 * Only where something is wrong: a page full of badges has none. The sign says it to those who do not see the colour.
 * @param {string} text
 * @param {'warn' | 'bad'} [weight]
 */
export const badge = (text, weight = 'bad') =>
  h('span', { class: `badge ${weight}` }, h('span', { 'aria-hidden': 'true' }, weight === 'bad' ? '▲' : '●'), text);
