/** @import { AuditTrail } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
import { get } from '../app/session.js';
import { h } from '../parts/dom.js';
import { opening } from '../parts/elements.js';
import { older, table } from '../parts/tables.js';
import { time } from '../parts/words.js';

/** Who changed what. @type {View} */
export const audit = {
  title: () => 'Audit',
  news: [],
  load: ({ query: { before } }, signal) => get('/api/audit', { before }, signal),
  draw(/** @type {AuditTrail} */ { entries, next }, address) {
    return [
      opening('Audit', 'Every change that somebody asked for, the newest first. Times are UTC.'),
      h(
        'section',
        { class: 'panel', 'aria-label': 'Audit' },
        entries.length === 0
          ? h('p', { class: 'empty' }, 'Nobody has changed anything yet.')
          : table({
              label: 'Audit',
              rows: entries,
              keyOf: ({ id }) => id,
              columns: [
                { name: 'When', kind: 'fit line', cell: ({ at }) => time(at) },
                { name: 'Who', kind: 'fit', cell: ({ actor }) => actor },
                { name: 'What', kind: 'fit', cell: ({ action }) => h('code', {}, action) },
                { name: 'Of what', cell: ({ target }) => target },
                { name: 'Details', kind: 'wide', cell: ({ detail }) => details(detail) },
                { name: 'From', kind: 'fit', cell: ({ from }) => from },
              ],
            }),
        older(address, next, 'entries'),
      ),
    ];
  },
};

/** @param {Record<string, unknown>} detail */
const details = (detail) =>
  Object.entries(detail)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
