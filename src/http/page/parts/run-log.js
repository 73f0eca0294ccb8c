/** @import { RunLog } from '../../api-types.ts' */
import { html } from './dom.js';
import { badge, empty, panel, scrolled } from './elements.js';
import { table } from './tables.js';
import { counted, figure, range, second, time } from './words.js';

/** What a run asked the service and what it said, the newest first. @param {RunLog} log @param {boolean} isRunning */
export const runLog = ({ requests, lines }, isRunning) => [
  panel(
    requests.length === 0 ? 'Requests' : `Last ${counted(requests.length, 'request')}`,
    requests.length === 0 ? nothing('request', isRunning) : scrolled('Requests of this run', requestsTable(requests)),
    { key: 'requests' },
  ),
  panel('Log', lines.length === 0 ? nothing('line', isRunning) : logLines(lines), { key: 'log' }),
];

/** @param {string} noun @param {boolean} isRunning */
const nothing = (noun, isRunning) => empty(isRunning ? `No ${noun}s yet.` : `No ${noun}s. They are kept for 7 days.`);

/** @param {RunLog['requests']} requests */
const requestsTable = (requests) =>
  table(
    'Requests',
    requests.map((request, i) => ({ ...request, i })).toReversed(),
    [
      ['Sent', 'lead fit', ({ at }) => time(at, second(at))],
      ['Range', 'wide', ({ from, to }) => from && to && range(from, to)],
      ['Order', 'fit', ({ order }) => (order === 'asc' ? 'oldest first' : 'newest first')],
      ['Page', 'right fit', ({ page }) => figure(page)],
      ['Limit', 'right fit', ({ limit }) => figure(limit)],
      ['Rows', 'right fit', ({ rows }) => rows !== null && figure(rows)],
      ['ms', 'right fit', ({ ms }) => figure(ms)],
      ['Status', 'fit', ({ status, rows }) => (rows === null ? badge(String(status ?? 'no answer'), 'warn') : status)],
    ],
    { keyOf: ({ at, i }) => `${at} ${i}`, kind: 'dense' },
  );

/** @param {RunLog['lines']} lines */
const logLines = (lines) =>
  html`<ol class="log scroll" tabindex="0" aria-label="Log of this run, the newest first">
    ${lines.toReversed().map(
      ({ at, level, message, details }) =>
        html`<li>
          ${time(at, second(at))}
          ${['warn', 'error'].includes(level) && badge(level, level === 'error' ? 'bad' : 'warn')}
          <span>${message}</span>
          <span class="muted">${detailsOf(details)}</span>
        </li>`,
    )}
  </ol>`;

/** @param {Record<string, string>} details */
const detailsOf = (details) =>
  Object.entries(details)
    .map(([name, value]) => `${name}: ${/^\d{4}-\d\d-\d\dT.*Z$/.test(value) ? second(value) : value}`)
    .join(' · ');
