/** @import { RunLog } from '../../api-types.ts' */
import { h } from './dom.js';
import { badge } from './elements.js';
import { table } from './tables.js';
import { counted, figure, range, second, time } from './words.js';

/** What a run asked the service and what it said, the newest first. @param {RunLog} log @param {boolean} isRunning */
export const runLog = ({ requests, lines }, isRunning) => [
  h(
    'section',
    { class: 'panel', 'data-key': 'requests', 'aria-labelledby': 'requests-title' },
    h(
      'h2',
      { id: 'requests-title' },
      requests.length === 0 ? 'Requests' : `Last ${counted(requests.length, 'request')}`,
    ),
    requests.length === 0 ? nothing('request', isRunning) : requestsTable(requests),
  ),
  h(
    'section',
    { class: 'panel', 'data-key': 'log', 'aria-labelledby': 'log-title' },
    h('h2', { id: 'log-title' }, 'Log'),
    lines.length === 0 ? nothing('line', isRunning) : logLines(lines),
  ),
];

/** @param {string} noun @param {boolean} isRunning */
const nothing = (noun, isRunning) =>
  h('p', { class: 'empty' }, isRunning ? `No ${noun}s yet.` : `No ${noun}s. They are kept for 7 days.`);

/** @param {RunLog['requests']} requests */
const requestsTable = (requests) =>
  h(
    'div',
    { class: 'scroll numbers', tabindex: 0, role: 'region', 'aria-label': 'Requests of this run' },
    table({
      label: 'Requests',
      isDense: true,
      rows: requests.map((request, i) => ({ ...request, i })).toReversed(),
      keyOf: ({ at, i }) => `${at} ${i}`,
      columns: [
        { name: 'Sent', kind: 'lead fit', cell: ({ at }) => time(at, second(at)) },
        { name: 'Range', kind: 'wide', cell: ({ from, to }) => (from && to ? range(from, to) : '') },
        { name: 'Order', kind: 'fit', cell: ({ order }) => (order === 'asc' ? 'oldest first' : 'newest first') },
        { name: 'Page', kind: 'right fit', cell: ({ page }) => figure(page) },
        { name: 'Limit', kind: 'right fit', cell: ({ limit }) => figure(limit) },
        { name: 'Rows', kind: 'right fit', cell: ({ rows }) => rows !== null && figure(rows) },
        { name: 'ms', kind: 'right fit', cell: ({ ms }) => figure(ms) },
        {
          name: 'Status',
          kind: 'fit',
          cell: ({ status, rows }) => (rows === null ? badge(String(status ?? 'no answer'), 'warn') : String(status)),
        },
      ],
    }),
  );

/** @param {RunLog['lines']} lines */
const logLines = (lines) =>
  h(
    'ol',
    { class: 'log scroll', tabindex: 0, 'aria-label': 'Log of this run, the newest first' },
    lines.toReversed().map(({ at, level, message, details }) =>
      h(
        'li',
        { class: level },
        time(at, second(at)),
        ['warn', 'error'].includes(level) ? badge(level, level === 'error' ? 'bad' : 'warn') : '',
        h('span', {}, message),
        h(
          'span',
          { class: 'muted' },
          Object.entries(details)
            .map(([name, value]) => `${name}: ${/^\d{4}-\d\d-\d\dT.*Z$/.test(value) ? second(value) : value}`)
            .join(' · '),
        ),
      ),
    ),
  );
