/** @import { Quarantine, QuarantineRecord } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */

import { sourceNames } from '../app/live.js';
import { href } from '../app/screen.js';
import { get, getIfThere } from '../app/session.js';
import { recordActions } from '../parts/actions.js';
import { h } from '../parts/dom.js';
import { facts, notThere, opening } from '../parts/elements.js';
import { filters, older, table } from '../parts/tables.js';
import { counted, time } from '../parts/words.js';

/** Records that could not be used. @type {View} */
export const quarantine = {
  title: ({ parts }) => (parts[0] ? `Record ${parts[0]}` : 'Quarantine'),
  news: ['quarantine'],
  async load({ parts: [id], query: { source, stream, before } }, signal) {
    if (id) return { record: await getIfThere(`/api/quarantine/${encodeURIComponent(id)}`, signal) };
    const [found, sources] = await Promise.all([
      get('/api/quarantine', { source, stream, before }, signal),
      sourceNames(),
    ]);
    return { found, sources };
  },
  draw(
    /** @type {{ record?: QuarantineRecord | null, found: Quarantine, sources: string[] }} */ {
      record,
      found,
      sources,
    },
    address,
  ) {
    if (record) return drawRecord(record);
    if (record === null)
      return notThere(
        `There is no record ${address.parts[0]}`,
        'It was written by a retry, dropped, or never there.',
        '#/quarantine',
        'Quarantine',
      );
    return [
      opening(
        'Quarantine',
        found.total === 0
          ? 'Records that could not be used are kept here, each with its reason.'
          : `${counted(found.total, 'record')} that could not be used, each kept with its reason. Everything else of its page was stored.`,
      ),
      filters(address, [
        { name: 'source', label: 'Source', values: sources },
        { name: 'stream', label: 'Stream', values: ['clicks', 'leads', 'sales'] },
      ]),
      h(
        'section',
        { class: 'panel', 'aria-label': 'Records set aside' },
        list(found),
        older(address, found.next, 'records'),
      ),
    ];
  },
};

/** @param {Quarantine} found */
const list = ({ records }) =>
  records.length === 0
    ? h('p', { class: 'empty' }, 'Nothing was set aside.')
    : table({
        label: 'Records set aside',
        rows: records,
        keyOf: ({ id }) => id,
        columns: [
          { name: 'Record', kind: 'fit', cell: ({ id }) => h('a', { href: href(['quarantine', id]) }, `Record ${id}`) },
          { name: 'Stream', kind: 'fit', cell: ({ source, stream }) => `${source}/${stream}` },
          { name: 'Last seen', kind: 'fit', cell: ({ lastAt }) => time(lastAt) },
          { name: 'Reason', kind: 'wide', cell: ({ reason }) => reason },
          { name: '', kind: 'fit', cell: (record) => recordActions(record) },
        ],
      });

/** @param {QuarantineRecord} record */
const drawRecord = ({ id, source, stream, reason, runId, firstAt, lastAt, record }) => [
  opening(`Record ${id}`, reason, h('a', { href: href(['quarantine']) }, '‹ Quarantine')),
  h(
    'div',
    { class: 'panel' },
    facts([
      ['Stream', h('a', { href: href(['stream', source, stream]) }, `${source}/${stream}`)],
      ['First seen', time(firstAt)],
      ['Last seen', time(lastAt)],
      ['By run', h('a', { href: href(['run', runId]) }, runId)],
    ]),
  ),
  h(
    'section',
    { class: 'panel', 'aria-labelledby': 'record-title' },
    h(
      'div',
      { class: 'panel-head' },
      h('h2', { id: 'record-title' }, 'As the service sent it'),
      h('span', { class: 'small muted' }, 'Personal data is masked.'),
    ),
    h('pre', {}, record),
    recordActions({ id }, () => {
      location.hash = href(['quarantine']);
    }),
  ),
];
