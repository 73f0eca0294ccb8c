import { h } from '../dom/h.js';

/**
 * A few words of which one holds, as links: the choice is part of the address.
 * @param {string} label
 * @param {{ name: string, to: string, isChosen: boolean }[]} choices
 */
export const choice = (label, choices) =>
  h(
    'div',
    { class: 'choice', role: 'group', 'aria-label': label },
    choices.map(({ name, to, isChosen }) => h('a', { href: to, 'aria-current': isChosen && 'true' }, name)),
  );
