/** @import { Child } from '../dom/h.js' */
import { h } from '../dom/h.js';

/** Names and what is known of them; what is unknown has no name either. @param {[string, Child][]} pairs */
export const facts = (pairs) =>
  h(
    'dl',
    { class: 'facts' },
    pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
      .map(([name, value]) => h('div', { 'data-key': name }, h('dt', {}, name), h('dd', {}, value))),
  );
