/** @import { SchemaChanges } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
import { href } from '../app/screen.js';
import { get } from '../app/session.js';
import { h } from '../parts/dom.js';
import { opening } from '../parts/elements.js';
import { filters, table } from '../parts/tables.js';
import { time } from '../parts/words.js';

/** Columns that were added for new fields of the service. @type {View} */
export const schema = {
  title: () => 'Schema',
  news: ['schema'],
  load: ({ query: { stream } }, signal) => get('/api/schema-changes', { stream }, signal),
  draw(/** @type {SchemaChanges} */ { changes }, address) {
    return [
      opening('Schema changes', 'New fields of the service become columns by themselves. Nothing is ever dropped.'),
      filters(address, [{ name: 'stream', label: 'Stream', values: ['clicks', 'leads', 'sales'] }]),
      h(
        'section',
        { class: 'panel', 'aria-label': 'Schema changes' },
        changes.length === 0
          ? h('p', { class: 'empty' }, 'No new field so far.')
          : table({
              label: 'Schema changes',
              rows: changes,
              keyOf: ({ source, stream, column, kind }) => [source, stream, column, kind].join('/'),
              columns: [
                { name: 'Seen', kind: 'fit', cell: ({ at }) => time(at) },
                { name: 'Stream', kind: 'fit', cell: ({ source, stream }) => `${source}/${stream}` },
                { name: 'Column', cell: ({ column }) => h('code', {}, column) },
                { name: 'From field', cell: ({ path }) => h('code', {}, path) },
                { name: 'Change', kind: 'wide', cell: changeOf },
                { name: 'Run', kind: 'fit', cell: ({ runId }) => h('a', { href: href(['run', runId]) }, 'Run') },
              ],
            }),
      ),
    ];
  },
};

/** @param {SchemaChanges['changes'][number]} change */
const changeOf = ({ kind, previousKind }) =>
  previousKind === null ? `new, ${kind}` : `${previousKind} became ${kind}`;
