/** @import { CoverageWindows, WindowDetail } from '../../api-types.ts' */
/** @import { Address } from '../app/address.js' */
import { here, href } from '../app/address.js';
import { h } from '../dom/h.js';
import { table } from '../parts/tables.js';
import { counted, figure } from '../words/figures.js';
import { spokenDay, time } from '../words/time.js';

/** The windows of the day that was clicked. @param {CoverageWindows} windows @param {Address} address */
export const windowsPanel = ({ source, stream, from, to, windows, quarantined }, address) =>
  h(
    'section',
    { class: 'windows', 'aria-labelledby': 'windows-title' },
    h(
      'div',
      { class: 'panel-head' },
      h('h3', { id: 'windows-title' }, `Windows of ${spokenDay(from.slice(0, 10))}`),
      h(
        'span',
        { class: 'row' },
        h(
          'a',
          {
            class: 'button quiet',
            href: href(['backfills'], { source, stream, from: from.slice(0, 10), to: to.slice(0, 10) }),
          },
          'Backfill this day',
        ),
        h('a', { class: 'button quiet', href: here(address, { day: null }) }, 'Close'),
      ),
    ),
    table({
      label: `Windows of ${from.slice(0, 10)}`,
      rows: windows,
      keyOf: ({ start }) => start,
      columns: [
        { name: 'From', kind: 'fit', cell: ({ start }) => time(start) },
        { name: 'To', kind: 'fit', cell: ({ end }) => time(end) },
        { name: 'State', kind: 'fit', cell: stateCell },
        { name: 'Rows', kind: 'right fit', cell: ({ rows }) => rows !== null && figure(rows) },
        {
          name: 'Read',
          kind: 'fit',
          cell: ({ readAt, runId }) =>
            readAt && (runId ? h('a', { href: href(['run', runId]) }, time(readAt)) : time(readAt)),
        },
        { name: 'Proven', kind: 'fit', cell: ({ provenAt }) => provenAt && time(provenAt) },
        {
          name: 'Note',
          kind: 'wide',
          cell: ({ note, tries }) =>
            [note, tries && `${counted(tries, 'run')} could not prove it`].filter(Boolean).join('; '),
        },
      ],
    }),
    quarantined.length > 0 &&
      h(
        'p',
        { class: 'small' },
        'Set aside on this day: ',
        quarantined.flatMap((id, i) => [i > 0 && ', ', h('a', { href: href(['quarantine', id]) }, `record ${id}`)]),
      ),
  );

/** @param {WindowDetail} window */
const stateCell = ({ state }) =>
  h('span', { class: 'row' }, h('i', { class: `state swatch ${state}`, 'aria-hidden': 'true' }), state);
