/** @import { AuditTrail, RunDetail, RunLog, Runs } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
import { sourceNames } from '../app/live.js';
import { href } from '../app/screen.js';
import { get, getIfThere } from '../app/session.js';
import { h } from '../parts/dom.js';
import { badge, facts, notThere, opening, progressBar } from '../parts/elements.js';
import { runLog } from '../parts/run-log.js';
import { ended, filters, older, outcome, runsTable, table } from '../parts/tables.js';
import { counted, dayOrMinute, duration, figure, range, time, titled, zoneName } from '../parts/words.js';

/** One run, with its requests and log, errors, contradictions and schema changes. @type {View} */
export const run = {
  title: ({ parts }) => `Run ${parts[0]}`,
  news: ['runs', 'log'],
  async load({ parts }, signal) {
    const path = `/api/runs/${encodeURIComponent(parts[0] ?? '')}`;
    const [one, log] = await Promise.all([getIfThere(path, signal), getIfThere(`${path}/log`, signal)]);
    return { one, log };
  },
  draw(/** @type {{ one: RunDetail | null, log: RunLog | null }} */ { one, log }, { parts }) {
    if (!one || !log)
      return notThere(
        `There is no run ${parts[0]}`,
        'It may have been deleted by the retention of the history.',
        '#/runs',
        'Runs',
      );
    const {
      id,
      kind,
      source,
      stream,
      startedAt,
      finishedAt,
      durationSeconds,
      contradictions,
      typeMismatches,
      schemaChanges,
    } = one;
    return [
      opening(`${titled(kind)} of ${source}/${stream}`, `Run ${id}`, h('a', { href: '#/runs' }, '‹ Runs')),
      h(
        'div',
        { class: 'panel' },
        facts([
          ['Outcome', outcome(one)],
          ['Stream', h('a', { href: href(['stream', source, stream]) }, `${source}/${stream}`)],
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
          ['Range', covered(one)],
        ]),
        one.state === 'running' && h('p', { class: 'muted' }, 'New and changed rows are counted when it has ended.'),
      ),
      ...windows(one),
      ...runLog(log, one.state === 'running'),
      ...counts('Fields that contradicted their alias', contradictions),
      ...counts('Values that did not fit their column', typeMismatches),
      ...(schemaChanges.length === 0
        ? []
        : [
            h(
              'section',
              { class: 'panel', 'data-key': 'schema', 'aria-label': 'Schema changes' },
              h('h2', {}, 'Schema changes'),
              h(
                'ul',
                { class: 'plain' },
                schemaChanges.map((change) => h('li', {}, change)),
              ),
            ),
          ]),
    ];
  },
};

/** What each sink got, where they differ. @param {NonNullable<RunDetail['sinks']>} sinks */
const bySink = (sinks) =>
  Object.entries(sinks)
    .map(([sink, { new: added, changed }]) => `${sink}: ${figure(added)} new, ${figure(changed)} changed`)
    .join(' · ');

/** What it covered, from its first window to its last. @param {RunDetail} run */
const covered = ({ windows: read }) => {
  const [first, last] = [read[0], read.at(-1)];
  return first && last && h('span', {}, range(first.start, last.end));
};

/** The windows of the run in order, with their results. @param {RunDetail} run */
function windows({ windows: read }) {
  if (read.length === 0) return [];
  const most = Math.max(1, ...read.map(({ rows }) => rows));
  const sinks = [...new Set(read.map(({ sink }) => sink))];
  return [
    h(
      'section',
      { class: 'panel', 'data-key': 'windows', 'aria-label': 'Windows' },
      h('h2', {}, counted(read.length, 'window')),
      sinks.map((sink) =>
        runStrip(
          sinks.length > 1 && sink,
          read.filter((window) => window.sink === sink),
        ),
      ),
      h(
        'details',
        { open: read.length <= SHOWN_WINDOWS },
        h('summary', {}, 'As a table'),
        table({
          label: 'Windows of this run',
          rows: read,
          keyOf: ({ sink, start }) => `${sink} ${start}`,
          columns: [
            { name: 'From', kind: 'fit line', cell: ({ start }) => time(start, dayOrMinute(start)) },
            { name: 'To', kind: 'fit line', cell: ({ end }) => time(end, dayOrMinute(end)) },
            { name: 'Sink', kind: 'fit', cell: ({ sink }) => sink },
            { name: 'Rows', kind: 'right fit', cell: ({ rows }) => figure(rows) },
            { name: '', kind: 'wide', cell: ({ rows, start }) => progressBar(`rows from ${start}`, rows / most) },
            { name: 'Proof', cell: ({ certified, tries, note }) => proof(certified, tries, note) },
          ],
        }),
      ),
    ),
  ];
}

const SHOWN_WINDOWS = 10;
const HOUR_MS = 3_600_000;

/**
 * The windows of one sink as a bar of time, with one element for each stretch of one state.
 * @param {string | false} sink Its name, where there are several.
 * @param {RunDetail['windows']} read
 */
function runStrip(sink, read) {
  /** @type {{ start: string, end: string, certified: boolean, rows: number }[]} */
  const stretches = [];
  for (const { start, end, certified, rows } of read) {
    const last = stretches.at(-1);
    if (last?.end === start && last.certified === certified) Object.assign(last, { end, rows: last.rows + rows });
    else stretches.push({ start, end, certified, rows });
  }
  const parts = stretches.flatMap(({ start, end, certified, rows }, i) => {
    const gap = i > 0 ? hours(stretches[i - 1]?.end ?? start, start) : 0;
    const title = `${range(start, end)}: ${certified ? 'proven' : 'not proven'}, ${counted(rows, 'row')}`;
    return [
      gap > 0 && h('i', { class: 'before', vars: { '--days': String(gap) } }),
      h('i', {
        class: `state ${certified ? 'certified' : 'uncertified'}`,
        title,
        vars: { '--days': String(hours(start, end)) },
      }),
    ];
  });
  const [first, last] = [stretches[0], stretches.at(-1)];
  return h(
    'div',
    { class: 'run-strip', 'data-key': sink || 'strip' },
    sink && h('span', { class: 'small muted' }, sink),
    h('span', { class: 'strip', role: 'img', 'aria-label': 'What it read, over time' }, parts),
    h(
      'div',
      { class: 'bars-foot small muted' },
      first && time(first.start, dayOrMinute(first.start)),
      last && time(last.end, dayOrMinute(last.end)),
    ),
  );
}

/** @param {string} from @param {string} to */
const hours = (from, to) => (Date.parse(to) - Date.parse(from)) / HOUR_MS;

/** @param {boolean} certified @param {number} tries @param {string | null} note */
const proof = (certified, tries, note) =>
  h(
    'span',
    { class: 'row' },
    certified ? 'proven' : badge('not proven', 'warn'),
    tries > 0 && h('span', { class: 'muted small' }, `tried ${counted(tries, 'time')}`),
    note && h('span', { class: 'muted small' }, note),
  );

/** A section of counts, or nothing if there are none. @param {string} title @param {Record<string, number>} byColumn */
function counts(title, byColumn) {
  const rows = Object.entries(byColumn);
  if (rows.length === 0) return [];
  return [
    h(
      'section',
      { class: 'panel', 'data-key': title, 'aria-label': title },
      h('h2', {}, title),
      table({
        label: title,
        rows,
        keyOf: ([column]) => column,
        columns: [
          { name: 'Column', cell: ([column]) => h('code', {}, column) },
          { name: 'Times', kind: 'right fit', cell: ([, n]) => figure(n) },
        ],
      }),
    ),
  ];
}

const LIMIT = 50;

/** The list of runs. @type {View} */
export const runs = {
  title: () => 'Runs',
  news: ['runs'],
  async load({ query: { source, stream, state, kind, before } }, signal) {
    const [found, sources] = await Promise.all([
      get('/api/runs', { source, stream, state, kind, before, limit: LIMIT }, signal),
      sourceNames(),
    ]);
    return { found, sources };
  },
  draw(/** @type {{ found: Runs, sources: string[] }} */ { found, sources }, address) {
    return [
      opening('Runs', `The newest first. Times are ${zoneName()}.`),
      filters(address, [
        { name: 'source', label: 'Source', values: sources },
        { name: 'stream', label: 'Stream', values: ['clicks', 'leads', 'sales'] },
        {
          name: 'state',
          label: 'Outcome',
          values: ['running', 'done', 'incomplete', 'refused', 'interrupted', 'failed'],
        },
        { name: 'kind', label: 'Kind', values: ['sync', 're-sweep', 'backfill', 'repair', 'retry'] },
      ]),
      h('section', { class: 'panel', 'aria-label': 'Runs' }, runsTable(found.runs), older(address, found.next, 'runs')),
    ];
  },
};

/** The audit trail. @type {View} */
export const audit = {
  title: () => 'Audit',
  news: [],
  load: ({ query: { before } }, signal) => get('/api/audit', { before }, signal),
  draw(/** @type {AuditTrail} */ { entries, next }, address) {
    return [
      opening('Audit', `Every change that somebody asked for, the newest first. Times are ${zoneName()}.`),
      h(
        'section',
        { class: 'panel', 'aria-label': 'Audit' },
        entries.length === 0
          ? h('p', { class: 'empty' }, 'Nobody has changed anything yet.')
          : table({
              label: 'Audit',
              rows: entries,
              keyOf: ({ id }) => id,
              columns: [
                { name: 'When', kind: 'fit line', cell: ({ at }) => time(at) },
                { name: 'Who', kind: 'fit', cell: ({ actor }) => actor },
                { name: 'What', kind: 'fit', cell: ({ action }) => h('code', {}, action) },
                { name: 'Of what', cell: ({ target }) => target },
                { name: 'Details', kind: 'wide', cell: ({ detail }) => details(detail) },
                { name: 'From', kind: 'fit', cell: ({ from }) => from },
              ],
            }),
        older(address, next, 'entries'),
      ),
    ];
  },
};

/** @param {Record<string, unknown>} detail */
const details = (detail) =>
  Object.entries(detail)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
