/** @import { RunRow } from '../../api-types.ts' */
/** @import { Column } from './table.js' */
import { href } from '../app/address.js';
import { h } from '../dom/h.js';
import { duration, figure } from '../words/figures.js';
import { time } from '../words/time.js';
import { badge } from './badge.js';
import { table } from './table.js';

/** @param {readonly RunRow[]} runs @param {{ isOneStream?: boolean }} [options] Whose they are goes without saying. */
export const runsTable = (runs, { isOneStream = false } = {}) =>
  runs.length === 0
    ? h('p', { class: 'empty' }, 'No run yet.')
    : table({
        label: 'Runs',
        isDense: true,
        rows: runs,
        keyOf: ({ id }) => id,
        columns: [
          {
            name: 'Started',
            kind: 'lead fit',
            cell: ({ id, startedAt }) => h('a', { href: href(['run', id]) }, time(startedAt)),
          },
          ...(isOneStream ? [] : [streamColumn]),
          { name: 'Kind', kind: 'fit', cell: ({ kind }) => kind },
          {
            name: 'Took',
            kind: 'right fit',
            cell: ({ durationSeconds }) => durationSeconds !== null && duration(durationSeconds),
          },
          { name: 'Read', kind: 'right fit', cell: ({ read }) => figure(read) },
          { name: 'New', kind: 'right fit', cell: (run) => figure(run.new) },
          { name: 'Changed', kind: 'right fit', cell: ({ changed }) => figure(changed) },
          { name: 'Requests', kind: 'right fit', cell: ({ requests }) => figure(requests) },
          { name: 'Outcome', kind: 'wide', cell: outcome },
        ],
      });

/** @type {Column<RunRow>} */
const streamColumn = { name: 'Stream', kind: 'fit', cell: ({ source, stream }) => `${source}/${stream}` };

/** Done is what is expected, and needs no colour. @param {RunRow} run */
export const outcome = ({ state, message, quarantined, tooManyRequests }) =>
  h(
    'span',
    { class: 'row' },
    state === 'done' || state === 'running' ? state : badge(state, state === 'interrupted' ? 'warn' : 'bad'),
    quarantined > 0 && badge(`${figure(quarantined)} set aside`, 'warn'),
    tooManyRequests > 0 && badge(`${figure(tooManyRequests)} × 429`, 'warn'),
    message && h('span', { class: 'small' }, message),
  );
