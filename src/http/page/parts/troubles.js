/** @import { Trouble } from '../../api-types.ts' */
import { href } from '../app/address.js';
import { h } from '../dom/h.js';
import { fromNow } from '../words/time.js';
import { badge } from './badge.js';

/** What is wrong and needs a person; nothing at all where nothing is. @param {readonly Trouble[]} troubles */
export function troubleList(troubles) {
  if (troubles.length === 0) return [];
  return [
    h(
      'ul',
      { class: 'troubles', 'aria-label': 'What needs you' },
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
