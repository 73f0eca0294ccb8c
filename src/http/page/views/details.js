/** @import { QuarantineRecord, RunDetail, RunLog } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
import { href } from '../app/screen.js';
import { getIfThere } from '../app/session.js';
import { recordActions } from '../parts/actions.js';
import { html } from '../parts/dom.js';
import { aside, badge, empty, facts, notThere, opening, panel, progressBar, scrolled } from '../parts/elements.js';
import { ended, nameOf, outcome, runLink, streamLink, table } from '../parts/tables.js';
import { counted, dayTime, duration, figure, range, second, time, titled } from '../parts/words.js';

/** One record in quarantine. @type {View} */
export const record = {
  title: ({ parts }) => `Record ${parts[0]}`,
  updates: ['quarantine'],
  load: async ({ parts: [id = ''] }, signal) => ({
    found: await getIfThere(`/api/quarantine/${encodeURIComponent(id)}`, signal),
  }),
  draw(/** @type {{ found: QuarantineRecord | null }} */ { found }, { parts }) {
    if (!found)
      return notThere(
        `There is no record ${parts[0]}`,
        'It was written by a retry, was dropped, or never existed.',
        '#/quarantine',
        'Quarantine',
      );
    const { id, reason, runId, firstAt, lastAt } = found;
    const onGone = () => location.assign(href(['quarantine']));
    const seen = facts([
      ['Stream', streamLink(found)],
      ['First seen', time(firstAt)],
      ['Last seen', time(lastAt)],
      ['By run', runLink(runId)],
    ]);
    return [
      opening(`Record ${id}`, reason, html`<a href=${href(['quarantine'])}>‹ Quarantine</a>`),
      html`<div class="panel">${seen}</div>`,
      panel('As the service sent it', [html`<pre>${found.record}</pre>`, recordActions(found, onGone)], {
        side: aside('Personal data is masked.'),
      }),
    ];
  },
};

/** One run, with its requests, log, errors, contradictions and schema changes. @type {View} */
export const run = {
  title: ({ parts }) => `Run ${parts[0]}`,
  updates: ['runs', 'log'],
  async load({ parts }, signal) {
    const path = `/api/runs/${encodeURIComponent(parts[0] ?? '')}`;
    const [one, log] = await Promise.all([getIfThere(path, signal), getIfThere(`${path}/log`, signal)]);
    return { one, log };
  },
  draw(/** @type {{ one: RunDetail | null, log: RunLog | null }} */ { one, log }, { parts }) {
    if (!one || !log)
      return notThere(
        `There is no run ${parts[0]}`,
        'It may be older than the retention of the history (state.retention).',
        '#/runs',
        'Runs',
      );
    const { id, kind, startedAt, finishedAt, durationSeconds, schemaChanges: changes, windows } = one;
    const [first, last] = [windows[0], windows.at(-1)];
    const isRunning = one.state === 'running';
    const summary = facts([
      ['Outcome', outcome(one)],
      ['Stream', streamLink(one)],
      ['Started', time(startedAt)],
      ['Finished', finishedAt && time(finishedAt)],
      ['Took', durationSeconds !== null && duration(durationSeconds)],
      ['Rows read', ended(one, one.read)],
      ['New', ended(one, one.new)],
      ['Changed', ended(one, one.changed)],
      ['Unchanged', ended(one, one.unchanged)],
      ['Rows by sink', one.sinks && bySink(one.sinks)],
      ['Requests', ended(one, one.requests)],
      ['429s', one.tooManyRequests > 0 && figure(one.tooManyRequests)],
      ['Set aside', one.quarantined > 0 && figure(one.quarantined)],
      ['Range', first && last && range(first.start, last.end)],
    ]);
    return [
      opening(`${titled(kind)} of ${nameOf(one)}`, `Run ${id}`, html`<a href="#/runs">‹ Runs</a>`),
      html`<div class="panel">
        ${summary}
        ${isRunning && html`<p class="muted">New and changed rows are counted when the run ends.</p>`}
      </div>`,
      windows.length > 0 && windowsPanel(windows),
      runLog(log, isRunning),
      countsPanel('Fields that contradicted their alias', one.contradictions),
      countsPanel('Values that did not fit their column', one.typeMismatches),
      changes.length > 0 &&
        panel('Schema changes', html`<ul>${changes.map((change) => html`<li>${change}</li>`)}</ul>`, { key: 'schema' }),
    ].flat();
  },
};

/** The counts of each sink, if they differ. @param {NonNullable<RunDetail['sinks']>} sinks */
const bySink = (sinks) =>
  Object.entries(sinks)
    .map(([sink, { new: added, changed }]) => `${sink}: ${figure(added)} new, ${figure(changed)} changed`)
    .join(' · ');

/** The windows of the run in order, with their results. @param {RunDetail['windows']} read */
function windowsPanel(read) {
  const most = Math.max(1, ...read.map(({ rows }) => rows));
  const list = table(
    'Windows of this run',
    read,
    [
      ['From', 'fit line', ({ start }) => dayTime(start)],
      ['To', 'fit line', ({ end }) => dayTime(end)],
      ['Sink', 'fit', ({ sink }) => sink],
      ['Rows', 'right fit', ({ rows }) => figure(rows)],
      ['', 'wide', ({ rows, start }) => progressBar(`rows from ${start}`, rows / most)],
      ['Proof', '', proof],
    ],
    { keyOf: ({ sink, start }) => `${sink} ${start}` },
  );
  return panel(counted(read.length, 'window'), scrolled('Windows as a table', list), {
    key: 'windows',
    label: 'Windows',
  });
}

/** @param {RunDetail['windows'][number]} window */
const proof = ({ certified, tries, note }) =>
  html`<span class="row">
    ${certified ? 'proven' : badge('not proven', 'warn')}
    ${tries > 0 && aside(`tried ${counted(tries, 'time')}`)}
    ${note && aside(note)}
  </span>`;

/** A section of counts, or nothing if there are none. @param {string} title @param {Record<string, number>} byColumn */
function countsPanel(title, byColumn) {
  const rows = Object.entries(byColumn);
  if (rows.length === 0) return false;
  const list = table(
    title,
    rows,
    [
      ['Column', '', ([column]) => html`<code>${column}</code>`],
      ['Times', 'right fit', ([, n]) => figure(n)],
    ],
    { keyOf: ([column]) => column },
  );
  return panel(title, list, { key: title });
}

/** The requests and log lines of a run, newest first. @param {RunLog} log @param {boolean} isRunning */
const runLog = ({ requests, lines }, isRunning) => [
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
