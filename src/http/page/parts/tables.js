/** @import { RunRow, StreamOverview, Trouble } from '../../api-types.ts' */
import { href } from '../app/screen.js';
import { html } from './dom.js';
import { aside, badge, empty } from './elements.js';
import { duration, figure, fromNow, since, time } from './words.js';

/**
 * `kind` has words for the position and width of its cells: `lead`, `fit`, `wide`, `right`, `line`.
 * @template R
 * @typedef {readonly [name: string, kind: string, cell: (row: R) => unknown]} Column
 */

/**
 * A table; at phone width each row is a card with labelled figures. Roles are explicit, because screen readers do not announce a row
 * that is not laid out as a row.
 * @template R
 * @param {string} label
 * @param {readonly R[]} rows
 * @param {readonly Column<R>[]} columns
 * @param {{ keyOf?: (row: R) => string | number, kind?: string, nothing?: unknown }} [options] `nothing`: the text if there are no rows.
 */
export const table = (label, rows, columns, { keyOf = idOf, kind = '', nothing } = {}) =>
  rows.length === 0 && nothing
    ? empty(nothing)
    : html`<table class="cards ${kind}" role="table" aria-label=${label}>
        <thead role="rowgroup">
          <tr role="row">
            ${columns.map(
              ([name, kind]) =>
                html`<th role="columnheader" scope="col" class=${kind}>${name || html`<span class="spoken">Actions</span>`}</th>`,
            )}
          </tr>
        </thead>
        <tbody role="rowgroup">
          ${rows.map(
            (row) =>
              html`<tr role="row" data-key=${keyOf(row)}>
                ${columns.map(
                  ([name, kind, cell]) =>
                    html`<td role="cell" class=${kind} data-label=${name || null}>${cell(row)}</td>`,
                )}
              </tr>`,
          )}
        </tbody>
      </table>`;

/** @param {any} row */
const idOf = ({ id }) => id;

/** @param {{ source: string, stream: string }} of */
export const nameOf = ({ source, stream }) => `${source}/${stream}`;

/** @param {{ source: string, stream: string }} of */
export const streamLink = (of) => html`<a href=${href(['stream', of.source, of.stream])}>${nameOf(of)}</a>`;

/** @param {string} id @param {unknown} [text] */
export const runLink = (id, text = id) => html`<a href=${href(['run', id])}>${text}</a>`;

/** @param {readonly RunRow[]} runs @param {{ isOneStream?: boolean }} [options] `isOneStream`: without the column `Stream`. */
export const runsTable = (runs, { isOneStream = false } = {}) =>
  table(
    'Runs',
    runs,
    [
      ['Started', 'lead fit', ({ id, startedAt }) => runLink(id, time(startedAt))],
      ...(isOneStream ? [] : [/** @type {Column<RunRow>} */ (['Stream', 'fit', nameOf])]),
      ['Kind', 'fit', ({ kind }) => kind],
      ['Took', 'right fit', ({ durationSeconds }) => durationSeconds !== null && duration(durationSeconds)],
      ['Read', 'right fit', (run) => ended(run, run.read)],
      ['New', 'right fit', (run) => ended(run, run.new)],
      ['Changed', 'right fit', (run) => ended(run, run.changed)],
      ['Requests', 'right fit', (run) => ended(run, run.requests)],
      ['Outcome', 'wide', outcome],
    ],
    { kind: 'dense', nothing: 'No run yet.' },
  );

/** A figure of a run. While the run is in progress, 0 means "not counted yet" and is not shown. @param {RunRow} run @param {number} n */
export const ended = ({ state }, n) => (state !== 'running' || n > 0) && figure(n);

/** `done` is the normal case and needs no badge. @param {RunRow['state']} state */
const stateBadge = (state) =>
  !['done', 'running'].includes(state) && badge(state, state === 'interrupted' ? 'warn' : 'bad');

/** When a stream was last read, and whether that failed. @param {StreamOverview} stream */
export const lastRunCell = ({ lastRun }) =>
  lastRun &&
  html`<span class="row">
    ${
      lastRun.state === 'running'
        ? runLink(lastRun.id, `running ${since(lastRun.startedAt)}`)
        : fromNow(lastRun.finishedAt ?? lastRun.startedAt)
    }
    ${stateBadge(lastRun.state)}
  </span>`;

/** @param {RunRow} run */
export const outcome = ({ state, message, quarantined, tooManyRequests }) =>
  html`<span class="row">
    ${stateBadge(state) || state}
    ${quarantined > 0 && badge(`${figure(quarantined)} set aside`, 'warn')}
    ${tooManyRequests > 0 && badge(`${figure(tooManyRequests)} × 429`, 'warn')}
    ${message && message !== state && html`<span class="small">${message}</span>`}
  </span>`;

/** Warnings about filters, if any. @param {readonly string[]} warnings */
export const doubtList = (warnings) =>
  warnings.length > 0 &&
  html`<ul class="troubles" aria-label="Doubtful filters">
    ${warnings.map((text) => html`<li data-key=${text}>${badge('filter', 'warn')}<span>${text}</span></li>`)}
  </ul>`;

/** Problems that need a person, if any. @param {readonly Trouble[]} troubles */
export const troubleList = (troubles) =>
  troubles.length > 0 &&
  html`<ul class="troubles" aria-label="Action needed">
    ${troubles.map(
      ({ kind, source, stream, message, since }) =>
        html`<li data-key="${kind}/${source}/${stream}">
          ${badge(kind, kind === 'uncertified' ? 'warn' : 'bad')}
          <span class="trouble-text">
            ${stream === '*' ? html`<b>${source}</b>` : streamLink({ source, stream })} ${message} ${aside(fromNow(since))}
          </span>
        </li>`,
    )}
  </ul>`;
