/** @import { Coverage, CoverageWindows, Overview, Runs, StreamOverview, Verification, Verifications } from '../../api-types.ts' */
/** @import { Address, View } from '../app/screen.js' */
/** @import { RowsFound } from '../parts/rows.js' */
import { latestOverview } from '../app/live.js';
import { here, href } from '../app/screen.js';
import { get } from '../app/session.js';
import { syncNow } from '../parts/actions.js';
import { timeline } from '../parts/calendar.js';
import { html } from '../parts/dom.js';
import { choice, empty, facts, lag, notThere, opening, panel } from '../parts/elements.js';
import { loadRows, rowsChart } from '../parts/rows.js';
import { doubtList, nameOf, runLink, runsTable, table, troubleList } from '../parts/tables.js';
import { rangePanel } from '../parts/verify.js';
import { counted, DAY_MS, dayOf, dayTime, figure, fromNow, range, spokenDay, time } from '../parts/words.js';

const RUNS = 5;

/** @typedef {{ overview: () => Overview, coverage: Coverage, windows: CoverageWindows | null, rows: RowsFound, runs: Runs, verified: Verification | null }} Data */

/** One stream, day by day. @type {View} */
export const stream = {
  title: ({ parts }) => parts.join('/'),
  updates: ['overview', 'coverage', 'runs', 'quarantine', 'verifications'],
  async load({ parts: [source, stream], query }, signal) {
    const of = { source, stream };
    const overview = await latestOverview(signal);
    // For an unknown stream, the view only says that there is none.
    if (!find(overview(), source, stream)) return { overview };
    const [coverage, rows, runs, verified] = await Promise.all([
      get('/api/coverage', of, signal),
      loadRows(of, query, signal),
      get('/api/runs', { ...of, limit: RUNS }, signal),
      lastVerification(source, stream, signal),
    ]);
    const { sink } = feedOf(coverage, query.sink) ?? {};
    const to = query.day && dayOf(Date.parse(query.day) + DAY_MS);
    const windows =
      to && sink ? await get('/api/coverage/windows', { ...of, sink, from: query.day, to }, signal) : null;
    return { overview, coverage, windows, rows, runs, verified };
  },
  draw(/** @type {Data} */ { overview, coverage, windows, rows, runs, verified }, address) {
    const [source = '', name = ''] = address.parts;
    const known = overview();
    const one = find(known, source, name);
    if (!one)
      return notThere(
        `There is no stream ${source}/${name}`,
        'It is neither in the config nor in the state.',
        '#/',
        'Overview',
      );
    const troubles = known.troubles.filter((each) => each.source === source && ['*', name].includes(each.stream));
    const allRuns = html`<a class="small" href=${href(['runs'], { source, stream: name })}>All runs</a>`;
    return [
      opening(nameOf(one), troubles.length === 0 && one.parked?.nextStep, html`<a href="#/">‹ Overview</a>`),
      troubleList(troubles),
      doubtList(one.warnings),
      standing(one),
      coveragePanel(coverage, windows, address),
      rowsChart(rows, address, one.firstSync),
      panel('Last runs', runsTable(runs.runs, { isOneStream: true }), { side: allRuns }),
      one.configured && rangePanel(one, verified),
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

/** The feed of the sink in the address, or the first. @param {Coverage} coverage @param {string | undefined} sink */
const feedOf = ({ feeds }, sink) => feeds.find((feed) => feed.sink === sink) ?? feeds[0];

/** @param {StreamOverview} stream */
function standing(stream) {
  const { source, stream: name, since, completeThrough, filters, newestSeen, lastSuccessAt, nextRunAt } = stream;
  const { lastRun, parked, quarantined, uncertifiedWindows } = stream;
  // A parked stream has a next try instead of a next run.
  const isWaiting = lastRun?.state !== 'running' && !parked;
  const toRange = () => {
    const form = document.querySelector('#range');
    form?.scrollIntoView({ block: 'center' });
    form?.querySelector('input')?.focus();
  };
  return html`<div class="panel standing">
    ${facts([
      ['Complete from', completeThrough && since && dayTime(since)],
      ['Complete through', completeThrough && time(completeThrough)],
      ['Filters', filters && html`<code>${filters}</code>`],
      ['Also complete', alsoComplete(stream)],
      ['Behind', lag(stream)],
      ['Newest event', newestSeen && time(newestSeen)],
      ['Last success', lastSuccessAt && fromNow(lastSuccessAt)],
      ['Next run', isWaiting && nextRunAt && fromNow(nextRunAt)],
      ['Next try', parked?.nextProbeAt && fromNow(parked.nextProbeAt)],
      [
        'Set aside',
        quarantined > 0 && html`<a href=${href(['quarantine'], { source, stream: name })}>${figure(quarantined)}</a>`,
      ],
      ['Unproven windows', uncertifiedWindows > 0 && figure(uncertifiedWindows)],
    ])}
    ${
      stream.configured &&
      html`<div class="row actions" role="group" aria-label="Actions for ${nameOf(stream)}">
      ${syncNow(stream)}
      <a class="button" href=${href(['backfills'], { source, stream: name })}>Backfill…</a>
      <button type="button" onclick=${toRange}>Verify…</button>
      <button type="button" onclick=${toRange}>Export…</button>
    </div>`
    }
  </div>`;
}

const MOST_RANGES = 3;

/** Other windows that backfills proved; the sink is named if there are several. @param {StreamOverview} stream */
const alsoComplete = ({ sinks }) => {
  const lines = sinks.flatMap(({ sink, alsoComplete: ranges }) =>
    ranges.map(({ start, end }) => `${range(start, end)}${sinks.length > 1 ? `, ${sink}` : ''}`),
  );
  const newest = lines.slice(-MOST_RANGES);
  const more = lines.length - newest.length;
  if (more > 0) newest.push(`and ${counted(more, 'range')} before`);
  return lines.length > 0 && html`<span>${newest.map((line) => html`<div data-key=${line}>${line}</div>`)}</span>`;
};

/** @param {Coverage} coverage @param {CoverageWindows | null} windows @param {Address} address */
function coveragePanel({ feeds, ...coverage }, windows, address) {
  const feed = feedOf({ feeds, ...coverage }, address.query.sink);
  const sinks = Object.fromEntries(feeds.map(({ sink }) => [sink, sink]));
  const days = feed
    ? timeline(feed, address)
    : empty('The first sync has not finished a window yet. Rows appear here when it does.');
  return panel('Coverage', [days, windows && windowsPanel(windows, address)], {
    side: feeds.length > 1 && choice('Sink', address, 'sink', feed?.sink, sinks),
  });
}

/** The windows of the day that was clicked. @param {CoverageWindows} windows @param {Address} address */
function windowsPanel({ source, stream, from, to, windows, quarantined }, address) {
  const [day, next] = [from.slice(0, 10), to.slice(0, 10)];
  const backfill = href(['backfills'], { source, stream, from: day, to: next });
  return html`<section class="windows" aria-labelledby="windows-title">
    <div class="panel-head">
      <h3 id="windows-title">Windows of ${spokenDay(day)}</h3>
      <span class="row">
        <a class="button quiet" href=${backfill}>Backfill this day</a>
        <a class="button quiet" href=${here(address, { day: null })}>Close</a>
      </span>
    </div>
    ${table(
      `Windows of ${day}`,
      windows,
      [
        ['From', 'fit', ({ start }) => time(start)],
        ['To', 'fit', ({ end }) => time(end)],
        ['State', 'fit', stateCell],
        ['Rows', 'right fit', ({ rows }) => rows !== null && figure(rows)],
        ['Read', 'fit', ({ readAt, runId }) => readAt && (runId ? runLink(runId, time(readAt)) : time(readAt))],
        ['Proven', 'fit', ({ provenAt }) => provenAt && time(provenAt)],
        ['Note', 'wide', noteOf],
      ],
      { keyOf: ({ start }) => start },
    )}
    ${
      quarantined.length > 0 &&
      html`<p class="small">
      Set aside on this day: ${quarantined.map((id, i) => [
        i > 0 && ', ',
        html`<a href=${href(['quarantine', id])}>record ${id}</a>`,
      ])}
    </p>`
    }
  </section>`;
}

/** @param {CoverageWindows['windows'][number]} window */
const stateCell = ({ state }) =>
  html`<span class="row"><i class="state swatch ${state}" aria-hidden="true"></i>${state}</span>`;

/** @param {CoverageWindows['windows'][number]} window */
const noteOf = ({ note, tries }) =>
  [note, tries && `${counted(tries, 'run')} could not prove it`].filter(Boolean).join('; ');

/** @param {Overview} overview @param {string | undefined} source @param {string | undefined} stream */
const find = ({ streams }, source, stream) => streams.find((each) => each.source === source && each.stream === stream);
