/** @import { StreamName } from '../../../model/streams.ts' */
/** @import { RepairReport, VerifyReport, Verification } from '../../api-types.ts' */
import { post } from '../app/session.js';
import { actionButton, announce } from './actions.js';
import { h } from './dom.js';
import { badge, dateField, field, progressBar } from './elements.js';
import { table } from './tables.js';
import { counted, DAY_MS, dayOf, figure, fromNow, percent, range } from './words.js';

const FORMATS = { csv: 'CSV', ndjson: 'NDJSON', parquet: 'Parquet' };

/**
 * The panel for a range of days of a stream: compare sinks with the service, and export.
 * @param {{ source: string, stream: StreamName }} of
 * @param {Verification | null} verification The last one of this stream.
 */
export const rangePanel = (of, verification) =>
  h(
    'section',
    { class: 'panel', 'aria-labelledby': 'range-title' },
    h(
      'div',
      { class: 'panel-head' },
      h('h2', { id: 'range-title' }, 'Verify or export'),
      h('span', { class: 'small muted' }, 'Both read from the service; syncs go first.'),
    ),
    form(of),
    verification && comparison(of, verification),
  );

/** Not redrawn by live updates, so that they do not discard what somebody is typing. @param {{ source: string, stream: StreamName }} of */
function form({ source, stream }) {
  const form = /** @type {HTMLFormElement} */ (
    h(
      'form',
      { 'data-keep': true, 'data-key': `range ${source}/${stream}` },
      h(
        'div',
        { class: 'fields' },
        dateField('from', 'From (UTC)', dayOf(Date.now() - 7 * DAY_MS)),
        dateField('to', 'To, exclusive (UTC)', dayOf(Date.now() + DAY_MS)),
        h('button', { value: 'verify' }, 'Verify'),
        field(
          'format',
          'File',
          h(
            'select',
            { id: 'format', name: 'format' },
            Object.entries(FORMATS).map(([value, name]) => h('option', { value }, name)),
          ),
        ),
        h('button', { value: 'export' }, 'Export'),
      ),
    )
  );
  form.onsubmit = (event) => {
    event.preventDefault();
    const [from, to, format] = ['from', 'to', 'format'].map((name) => String(new FormData(form).get(name)));
    const isExport = /** @type {HTMLButtonElement} */ (event.submitter).value === 'export';
    void announce(isExport ? 'The export has started.' : `${source}/${stream} is being verified.`, async () => {
      if (!from || !to || from >= to) throw new Error('From must be before To.');
      if (isExport) download(`api/export/${stream}?${new URLSearchParams({ source, from, to, format: format ?? '' })}`);
      else await post('/api/verifications', { source, streams: [stream], from, to });
    });
  };
  return form;
}

/** The browser downloads it, as with any link to a file. @param {string} href */
function download(href) {
  const link = /** @type {HTMLAnchorElement} */ (h('a', { href, download: true }));
  link.click();
}

/**
 * The result of a comparison, or its progress.
 * @param {{ source: string, stream: StreamName }} of
 * @param {Verification} verification
 */
export function comparison(of, verification) {
  const { state, from, to, finishedAt, message, results } = verification;
  const report = results.find(({ source, stream }) => source === of.source && stream === of.stream);
  return h(
    'div',
    { class: 'comparison', 'data-key': 'comparison' },
    h(
      'p',
      { class: 'row' },
      h('b', {}, range(from, to)),
      outcome(verification, report),
      finishedAt && h('span', { class: 'muted small' }, fromNow(finishedAt)),
      state === 'running' && action('Cancel', 'The verification ends.', `/api/verifications/${verification.id}/cancel`),
      isRepairable(verification, report) &&
        action('Repair', `${of.source}/${of.stream} is being repaired.`, '/api/verifications', {
          source: of.source,
          streams: [of.stream],
          from,
          to,
          repair: true,
        }),
    ),
    state === 'running' && progressBar(`Verification of ${of.source}/${of.stream}`, verification.progress),
    message && h('p', { class: 'small' }, message),
    report && differences(report.repaired ?? report),
  );
}

/** @param {Verification} verification @param {RepairReport | undefined} report */
function outcome({ state, progress, repair }, report) {
  if (state === 'running') return `${repair ? 'being repaired' : 'being verified'}, ${percent(progress)}`;
  if (state === 'cancelled') return 'cancelled';
  if (!report || report.sinks.length === 0) return badge('failed');
  const { events, sinks, notComparable } = report.repaired ?? report;
  const all = counted(events, 'event');
  if (sinks.some(isOff)) return badge('not as it should be', 'warn');
  if (notComparable.length > 0) return badge(`${all}; not all of it could be compared`, 'warn');
  return `${all}: ${report.repaired ? 'repaired, and ' : ''}as it should be in ${sinks.map(({ sink }) => sink).join(', ')}`;
}

/** The counts of a sink, or of one of its days. @param {{ missing: number, extra: number, different: number }} counts */
const isOff = ({ missing, extra, different }) => missing + extra + different > 0;

/** @param {Verification} verification @param {RepairReport | undefined} report */
const isRepairable = ({ state, repair }, report) => state === 'done' && !repair && report?.sinks.some(isOff);

/** A table of differences, or nothing if there are none. @param {VerifyReport} report */
const differences = ({ sinks }) =>
  sinks.some(isOff) &&
  table({
    label: 'What differs',
    isDense: true,
    rows: sinks.filter(isOff),
    keyOf: ({ sink }) => sink,
    columns: [
      { name: 'Sink', kind: 'lead fit', cell: ({ sink }) => sink },
      { name: 'Missing', kind: 'right fit', cell: ({ missing }) => figure(missing) },
      { name: 'Extra', kind: 'right fit', cell: ({ extra }) => figure(extra) },
      { name: 'Different', kind: 'right fit', cell: ({ different }) => figure(different) },
      {
        name: 'Days',
        kind: 'wide',
        cell: ({ days }) =>
          days
            .filter(isOff)
            .map(({ day }) => day)
            .join(', '),
      },
    ],
  });

/** @param {string} name @param {string} done @param {string} path @param {object} [body] */
const action = (name, done, path, body) =>
  actionButton({ class: 'quiet', 'data-key': name }, name, () => announce(done, () => post(path, body)));
