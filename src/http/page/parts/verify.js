/** @import { RepairReport, VerifyReport, Verification } from '../../api-types.ts' */
import { post } from '../app/session.js';
import { actionButton, announce } from './actions.js';
import { html } from './dom.js';
import { aside, badge, dateFields, panel, progressBar, selectField } from './elements.js';
import { nameOf, table } from './tables.js';
import { counted, daysAgo, figure, fromNow, percent, range } from './words.js';

/** @typedef {{ source: string, stream: string }} Of */

/**
 * The panel for a range of days of a stream: compare sinks with the service, and export.
 * @param {Of} of
 * @param {Verification | null} verification The last one of this stream.
 */
export const rangePanel = (of, verification) =>
  panel('Verify or export', [rangeForm(of), verification && comparison(of, verification)], {
    side: aside('Both read from the service; syncs go first.'),
    key: 'range',
  });

/** Live updates do not redraw this form, so that they do not discard what somebody is typing. @param {Of} of */
function rangeForm({ source, stream }) {
  const form = html`<form data-keep data-key="range ${source}/${stream}" id="range">
    <div class="fields">
      ${dateFields({ to: daysAgo(-1) })}
      <button value="verify">Verify</button>
      ${selectField('format', 'File', [
        ['csv', 'CSV'],
        ['ndjson', 'NDJSON'],
        ['parquet', 'Parquet'],
      ])}
      <button value="export">Export</button>
    </div>
  </form>`;
  form.onsubmit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const [from = '', to = '', format = ''] = ['from', 'to', 'format'].map((name) => form.elements[name].value);
    const isExport = /** @type {HTMLButtonElement} */ (event.submitter).value === 'export';
    void announce(isExport ? 'The export has started.' : `${source}/${stream} is being verified.`, async () => {
      if (!from || !to || from >= to) throw new Error('From must be before To.');
      // The browser downloads it, as with any link to a file.
      const query = new URLSearchParams({ source, from, to, format });
      if (isExport) html`<a href="api/export/${stream}?${query}" download>File</a>`.click();
      else await post('/api/verifications', { source, streams: [stream], from, to });
    });
  };
  return form;
}

/** The result of a comparison, or its progress. @param {Of} of @param {Verification} verification */
function comparison(of, verification) {
  const { id, state, from, to, finishedAt, message, results, progress } = verification;
  const report = results.find(({ source, stream }) => source === of.source && stream === of.stream);
  const isRunning = state === 'running';
  const cancel = () => post(`/api/verifications/${id}/cancel`);
  const repair = () => post('/api/verifications', { source: of.source, streams: [of.stream], from, to, repair: true });
  return html`<div class="windows" data-key="comparison">
    <p class="row">
      <b>${range(from, to)}</b>
      ${outcome(verification, report)}
      ${finishedAt && aside(fromNow(finishedAt))}
      ${isRunning && actionButton({ name: 'Cancel', done: 'The verification is being cancelled.', act: cancel })}
      ${
        isRepairable(verification, report) &&
        actionButton({ name: 'Repair', done: `${nameOf(of)} is being repaired.`, act: repair })
      }
    </p>
    ${isRunning && progressBar(`Verification of ${nameOf(of)}`, progress)}
    ${message && html`<p class="small">${message}</p>`}
    ${report && differences(report.repaired ?? report)}
  </div>`;
}

/** @param {Verification} verification @param {RepairReport | undefined} report */
function outcome({ state, progress, repair }, report) {
  if (state === 'running') return `${repair ? 'being repaired' : 'being verified'}, ${percent(progress)}`;
  if (state === 'cancelled') return 'cancelled';
  if (!report || report.sinks.length === 0) return badge('failed');
  const { events, sinks, notComparable } = report.repaired ?? report;
  const all = counted(events, 'event');
  if (sinks.some(differs)) return badge('differences found', 'warn');
  if (notComparable.length > 0) return badge(`${all}; not everything could be compared`, 'warn');
  return `${all}: no differences in ${sinks.map(({ sink }) => sink).join(', ')}${report.repaired ? ' after the repair' : ''}`;
}

/** Whether a sink, or one of its days, differs from the service. @param {{ missing: number, extra: number, different: number }} counts */
const differs = ({ missing, extra, different }) => missing + extra + different > 0;

/** @param {Verification} verification @param {RepairReport | undefined} report */
const isRepairable = ({ state, repair }, report) => state === 'done' && !repair && report?.sinks.some(differs);

/** A table of differences, or nothing if there are none. @param {VerifyReport} report */
const differences = ({ sinks }) =>
  sinks.some(differs) &&
  table(
    'What differs',
    sinks.filter(differs),
    [
      ['Sink', 'lead fit', ({ sink }) => sink],
      ['Missing', 'right fit', ({ missing }) => figure(missing)],
      ['Extra', 'right fit', ({ extra }) => figure(extra)],
      ['Different', 'right fit', ({ different }) => figure(different)],
      ['Days', 'wide', ({ days }) => days.flatMap((day) => (differs(day) ? day.day : [])).join(', ')],
    ],
    { keyOf: ({ sink }) => sink, kind: 'dense' },
  );
