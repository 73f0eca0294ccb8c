/** @import { Child } from './dom.js' */
import { h } from './dom.js';
import { duration } from './words.js';

/**
 * A badge, only if something is wrong. The sign is for those who do not see the colour.
 * @param {string} text
 * @param {'warn' | 'bad'} [weight]
 */
export const badge = (text, weight = 'bad') =>
  h('span', { class: `badge ${weight}` }, h('span', { 'aria-hidden': 'true' }, weight === 'bad' ? '▲' : '●'), text);

/**
 * A choice between a few words, as links: the choice is part of the address.
 * @param {string} label
 * @param {{ name: string, to: string, isChosen: boolean }[]} choices
 */
export const choice = (label, choices) =>
  h(
    'div',
    { class: 'choice', role: 'group', 'aria-label': label },
    choices.map(({ name, to, isChosen }) => h('a', { href: to, 'aria-current': isChosen && 'true' }, name)),
  );

/** Pairs of name and value; pairs without a value are left out. @param {[string, Child][]} pairs */
export const facts = (pairs) =>
  h(
    'dl',
    { class: 'facts' },
    pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
      .map(([name, value]) => h('div', { 'data-key': name }, h('dt', {}, name), h('dd', {}, value))),
  );

/** An input with its name above it. @param {string} id @param {string} label @param {HTMLElement} input */
export const field = (id, label, input) => h('div', { class: 'field' }, h('label', { for: id }, label), input);

/** @param {string} id @param {string} label @param {string} value `2026-11-15` */
export const dateField = (id, label, value) =>
  field(id, label, h('input', { id, name: id, type: 'date', value, required: true }));

/**
 * The heading of a view: its title or state in one line, and an optional second line.
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

/** @param {string} label @param {number} share From 0 to 1. */
export const progressBar = (label, share) =>
  h('span', {
    class: 'bar',
    role: 'progressbar',
    'aria-label': label,
    'aria-valuemin': 0,
    'aria-valuemax': 100,
    'aria-valuenow': Math.floor(share * 100),
    vars: { '--share': String(share) },
  });

/**
 * A stream's lag against its target. Without a target there is no bar.
 * @param {{ lagSeconds: number | null, maxLagSeconds: number | null, firstSync: boolean }} stream
 */
export function lag({ lagSeconds, maxLagSeconds, firstSync }) {
  if (firstSync) return h('span', { class: 'muted' }, 'first sync');
  if (lagSeconds === null) return null;
  const isLate = maxLagSeconds !== null && lagSeconds > maxLagSeconds;
  return h(
    'span',
    { class: 'stack' },
    h(
      'span',
      { class: 'row' },
      h('b', {}, duration(lagSeconds)),
      maxLagSeconds !== null && h('span', { class: 'muted small' }, `of ${duration(maxLagSeconds)}`),
      isLate && badge('late'),
    ),
    maxLagSeconds !== null &&
      h('span', {
        class: isLate ? 'bar over' : 'bar',
        'aria-hidden': 'true',
        vars: { '--share': String(Math.min(1, lagSeconds / maxLagSeconds)) },
      }),
  );
}

/** @param {string} title @param {string} text @param {string} to @param {string} where @returns {Node[]} */
export const notThere = (title, text, to, where) => [
  opening(title, text),
  h('p', { class: 'panel' }, h('a', { href: to }, `Go to ${where}`)),
];
