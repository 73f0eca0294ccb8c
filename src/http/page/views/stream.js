/** @import { Coverage, CoverageWindows, Overview, Runs, StreamOverview, TrackCoverage, Verification, Verifications, WindowDetail } from '../../api-types.ts' */
/** @import { Address } from '../app/screen.js' */
/** @import { View } from '../app/screen.js' */
/** @import { RowsFound } from '../parts/rows.js' */

import { latestOverview } from '../app/live.js';
import { here, href } from '../app/screen.js';
import { get } from '../app/session.js';
import { syncNow } from '../parts/actions.js';
import { h } from '../parts/dom.js';
import { choice, facts, lag, notThere, opening } from '../parts/elements.js';
import { loadRows, rowsChart } from '../parts/rows.js';
import { doubtList, runsTable, table, troubleList } from '../parts/tables.js';
import { timeline } from '../parts/timeline.js';
import { rangePanel } from '../parts/verify.js';
import { counted, DAY_MS, dayOf, dayOrMinute, figure, fromNow, range, spokenDay, time } from '../parts/words.js';

const RUNS = 5;

/** @typedef {{ overview: () => Overview, coverage: Coverage, windows: CoverageWindows | null, rows: RowsFound, runs: Runs, verified: Verification | null }} Data */

/** One stream, day by day. @type {View} */
export const stream = {
  title: ({ parts }) => parts.join('/'),
  news: ['overview', 'coverage', 'runs', 'quarantine', 'verifications'],
  async load({ parts: [source, stream], query }, signal) {
    const of = { source, stream };
    const overview = await latestOverview(signal);
    // For an unknown stream nothing more is loaded, and the view says so.
    if (!find(overview(), source, stream)) return { overview };
    const [coverage, rows, runs, verified] = await Promise.all([
      get('/api/coverage', of, signal),
      loadRows(of, query, signal),
      get('/api/runs', { ...of, limit: RUNS }, signal),
      lastVerification(source, stream, signal),
    ]);
    const { sink } = trackOf(coverage, query.sink) ?? {};
    const to = query.day && dayOf(Date.parse(query.day) + DAY_MS);
    const windows =
      to && sink ? await get('/api/coverage/windows', { ...of, sink, from: query.day, to }, signal) : null;
    return { overview, coverage, windows, rows, runs, verified };
  },
  draw(/** @type {Data} */ { overview, coverage, windows, rows, runs, verified }, address) {
    const [source = '', name = ''] = address.parts;
    const known = overview();
    const one = find(known, source, name);
    const crumb = h('a', { href: '#/' }, '‹ Overview');
    if (!one)
      return notThere(
        `There is no stream ${source}/${name}`,
        'Neither the config nor the state knows it.',
        '#/',
        'Overview',
      );
    const troubles = known.troubles.filter((each) => each.source === source && ['*', name].includes(each.stream));
    return [
      opening(`${source}/${name}`, troubles.length === 0 && one.parked?.nextStep, crumb),
      ...troubleList(troubles),
      ...doubtList(one.warnings),
      standing(one),
      coveragePanel(coverage, windows, address),
      rowsChart(rows, address, one.firstSync),
      h(
        'section',
        { class: 'panel', 'aria-labelledby': 'runs-title' },
        h(
          'div',
          { class: 'panel-head' },
          h('h2', { id: 'runs-title' }, 'Last runs'),
          h('a', { class: 'small', href: href(['runs'], { source, stream: name }) }, 'All runs'),
        ),
        runsTable(runs.runs, { isOneStream: true }),
      ),
      ...(one.configured ? [rangePanel(/** @type {StreamOfEvents} */ (one), verified)] : []),
    ];
  },
};

/**
 * @param {string | undefined} source
 * @param {string | undefined} stream
 * @param {AbortSignal} signal
 * @returns {Promise<Verification | null>}
 */
async function lastVerification(source, stream, signal) {
  const { verifications } = /** @type {Verifications} */ (await get('/api/verifications', {}, signal));
  const last = verifications.find(({ streams }) => streams.some((of) => of.source === source && of.stream === stream));
  return last ? get(`/api/verifications/${last.id}`, {}, signal) : null;
}

/** The track of the sink in the address, or the first. @param {Coverage} coverage @param {string | undefined} sink */
const trackOf = ({ tracks }, sink) => tracks.find((track) => track.sink === sink) ?? tracks[0];

/** @param {StreamOverview} stream */
const standing = (stream) =>
  h(
    'div',
    { class: 'panel standing' },
    facts([
      ['Complete from', stream.completeThrough && stream.since && time(stream.since, dayOrMinute(stream.since))],
      ['Complete through', stream.completeThrough && time(stream.completeThrough)],
      ['Filters', stream.filters && h('code', {}, stream.filters)],
      ['Also complete', alsoComplete(stream)],
      ['Behind', lag(stream)],
      ['Newest event', stream.newestSeen && time(stream.newestSeen)],
      ['Last success', stream.lastSuccessAt && fromNow(stream.lastSuccessAt)],
      ['Next run', isWaiting(stream) && stream.nextRunAt && fromNow(stream.nextRunAt)],
      ['Next try', stream.parked?.nextProbeAt && fromNow(stream.parked.nextProbeAt)],
      [
        'Set aside',
        stream.quarantined > 0 && h('a', { href: href(['quarantine'], namesOf(stream)) }, figure(stream.quarantined)),
      ],
      ['Unproven windows', stream.uncertifiedWindows > 0 && figure(stream.uncertifiedWindows)],
    ]),
    stream.configured && actionBar(stream),
  );

/** A stream that is parked has a next try instead. @param {StreamOverview} stream */
const isWaiting = ({ lastRun, parked }) => lastRun?.state !== 'running' && !parked;

const MOST_RANGES = 3;

/** Windows that backfills proved besides; the sink is named if there are several. @param {StreamOverview} stream */
const alsoComplete = ({ sinks }) => {
  const lines = sinks.flatMap(({ sink, alsoComplete: ranges }) =>
    ranges.map(({ start, end }) => `${range(start, end)}${sinks.length > 1 ? `, ${sink}` : ''}`),
  );
  const newest = lines.slice(-MOST_RANGES);
  const more = lines.length - newest.length;
  if (more > 0) newest.push(`and ${counted(more, 'range')} before`);
  return lines.length > 0 && h('span', {}, ...newest.map((line) => h('div', { 'data-key': line }, line)));
};

/** A listing has no page of its own. @typedef {{ source: string, stream: import('../../../model/streams.ts').StreamName }} StreamOfEvents */

/** The actions on a stream. @param {StreamOverview} stream */
const actionBar = (stream) =>
  h(
    'div',
    { class: 'row actions', role: 'group', 'aria-label': `Actions for ${stream.source}/${stream.stream}` },
    syncNow(/** @type {StreamOfEvents} */ (stream)),
    h('a', { class: 'button', href: href(['backfills'], namesOf(stream)) }, 'Backfill…'),
    h('button', { type: 'button', onclick: toRange }, 'Verify…'),
    h('button', { type: 'button', onclick: toRange }, 'Export…'),
  );

function toRange() {
  document.getElementById('range-title')?.scrollIntoView({ block: 'center' });
  /** @type {HTMLElement | null} */ (document.querySelector('form[data-key^="range"] input'))?.focus();
}

/** @param {StreamOverview} stream */
const namesOf = ({ source, stream }) => ({ source, stream });

/** @param {Coverage} coverage @param {CoverageWindows | null} windows @param {Address} address */
function coveragePanel(coverage, windows, address) {
  const track = trackOf(coverage, address.query.sink);
  return h(
    'section',
    { class: 'panel', 'aria-labelledby': 'coverage-title' },
    h(
      'div',
      { class: 'panel-head' },
      h('h2', { id: 'coverage-title' }, 'Coverage'),
      coverage.tracks.length > 1 && sinks(coverage.tracks, track, address),
    ),
    track
      ? timeline(track, address)
      : h('p', { class: 'empty' }, 'The first sync has not ended a window yet. Rows appear here as soon as it does.'),
    windows && windowsPanel(windows, address),
  );
}

/** @param {TrackCoverage[]} tracks @param {TrackCoverage | undefined} chosen @param {Address} address */
const sinks = (tracks, chosen, address) =>
  choice(
    'Sink',
    tracks.map((track) => ({ name: track.sink, to: here(address, { sink: track.sink }), isChosen: track === chosen })),
  );

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

/** @param {Overview} overview @param {string | undefined} source @param {string | undefined} stream */
const find = ({ streams }, source, stream) => streams.find((each) => each.source === source && each.stream === stream);
