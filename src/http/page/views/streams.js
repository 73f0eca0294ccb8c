/** @import { Activity, Coverage, Overview, StreamOverview, FeedCoverage } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
/** @import { RowsFound } from '../parts/rows.js' */

import { latestOverview } from '../app/live.js';
import { href } from '../app/screen.js';
import { get } from '../app/session.js';
import { syncNow } from '../parts/actions.js';
import { legend, strip } from '../parts/calendar.js';
import { html } from '../parts/dom.js';
import { aside, badge, lag, opening, panel } from '../parts/elements.js';
import { loadRows, rowsChart } from '../parts/rows.js';
import { lastRunCell, table, troubleList } from '../parts/tables.js';
import { counted, daysAgo, dayTime, duration, figure, fromNow, shortFigure, time, zoneName } from '../parts/words.js';

const STRIP_DAYS = 90;
const DAY_SECONDS = 86_400;

/** @typedef {{ overview: () => Overview, coverage: Coverage, rows: RowsFound }} Data */

/** The state of all streams. @type {View} */
export const streams = {
  title: () => 'Overview',
  updates: ['overview', 'coverage', 'runs'],
  async load({ query }, signal) {
    const from = daysAgo(STRIP_DAYS - 1);
    const [overview, coverage, rows] = await Promise.all([
      latestOverview(signal),
      get('/api/coverage', { from }, signal),
      loadRows({}, query, signal),
    ]);
    return { overview, coverage, rows };
  },
  draw(/** @type {Data} */ { overview: current, coverage, rows }, address) {
    const overview = current();
    const sources = [...new Set(overview.streams.map(({ source }) => source))];
    const first = overview.streams.some(({ firstSync }) => firstSync);
    return [
      opening(headline(overview), standing(overview)),
      troubleList(overview.troubles),
      ...sources.map((source) => sourcePanel(source, overview, coverage)),
      legend(),
      rowsChart(rows, address, first),
    ];
  },
};

/** @param {Overview} overview */
function headline({ streams, troubles, activities }) {
  if (troubles.length > 0) return `Action needed: ${counted(troubles.length, 'problem')}`;
  if (streams.length === 0) return 'The config defines no stream yet';
  const first = streams.filter(({ configured, firstSync }) => configured && firstSync);
  if (first.length > 0) return firstSyncLine(first, activities);
  const unproven = streams.reduce((sum, { uncertifiedWindows }) => sum + uncertifiedWindows, 0);
  const setAside = streams.reduce((sum, { quarantined }) => sum + quarantined, 0);
  const failing = streams.filter(({ lastRun }) => lastRun && !['done', 'running'].includes(lastRun.state)).length;
  const late = streams.filter(isFarBehind).length;
  const open = [
    late > 0 && `${counted(late, 'stream')} more than a day behind`,
    unproven > 0 && `${counted(unproven, 'window')} not proven yet`,
    setAside > 0 && `${counted(setAside, 'record')} set aside`,
    failing > 0 && `${counted(failing, 'stream')} failed in the last run`,
  ].filter(Boolean);
  return open.length > 0 ? open.join(', ') : 'Everything is on time';
}

/** `First sync: 41,603 of about 60,000 rows, 12 min left`. @param {StreamOverview[]} first @param {Activity[]} activities */
function firstSyncLine(first, activities) {
  const each = first.map((stream) => {
    const own = activities.find(
      ({ kind, ...of }) => kind === 'sync' && of.source === stream.source && of.stream === stream.stream,
    );
    const rows = Math.max(stream.rows ?? 0, own?.rows ?? 0);
    return { rows, share: own?.progress ?? 0, left: own?.etaSeconds ?? null, own };
  });
  if (each.every(({ own, rows }) => !own && rows === 0)) return 'First sync: waiting for its first run';
  const rows = each.reduce((sum, one) => sum + one.rows, 0);
  // A stream that has just begun has no estimate, so there is none for the total either.
  const all = each.every(({ share }) => share > LEAST_SHARE)
    ? each.reduce((sum, one) => sum + one.rows / one.share, 0)
    : null;
  const left = each.every((one) => one.left !== null) ? Math.max(...each.map((one) => one.left ?? 0)) : null;
  const about = all === null ? '' : ` of about ${rounded.format(Math.round(all))}`;
  return `First sync: ${figure(rows)}${about} rows${left === null ? '' : `, ${duration(left)} left`}`;
}

const LEAST_SHARE = 0.02;

/** Two digits, because it is an estimate. */
const rounded = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 });

/** Only for streams without a target: the others raise an alert. @param {StreamOverview} stream */
const isFarBehind = ({ configured, firstSync, lagSeconds, maxLagSeconds }) =>
  configured && !firstSync && maxLagSeconds === null && lagSeconds !== null && lagSeconds > DAY_SECONDS;

/** @param {Overview} overview */
function standing({ streams }) {
  const sources = new Set(streams.map(({ source }) => source)).size;
  const [last] = streams
    // The age of a listing depends on how often it is due.
    .filter((one) => one.stream !== 'links' && one.configured && !one.firstSync && one.lagSeconds !== null)
    .toSorted((a, b) => (b.lagSeconds ?? 0) - (a.lagSeconds ?? 0));
  const behind = last ? `, at most ${duration(last.lagSeconds ?? 0)} behind (${last.source}/${last.stream})` : '';
  return `${counted(streams.length, 'stream')} of ${counted(sources, 'source')}${behind}. Times are ${zoneName()}.`;
}

/** @param {string} source @param {Overview} overview @param {Coverage} coverage */
function sourcePanel(source, overview, coverage) {
  const streams = overview.streams.filter((stream) => stream.source === source);
  const feeds = coverage.feeds.filter((feed) => feed.source === source);
  const actions =
    streams.some(({ configured }) => configured) &&
    html`<div class="row" role="group" aria-label="Actions for ${source}">
      ${syncNow({ source }, 'quiet')}
      <a class="button quiet" href=${href(['backfills'], { source })}>Backfill…</a>
    </div>`;
  const list = table(
    `Streams of ${source}`,
    streams,
    [
      ['Stream', 'lead stream-name', nameCell],
      ['Complete through', '', completeCell],
      ['Behind', '', lag],
      [`Last ${STRIP_DAYS} days`, 'wide', ({ stream }) => strips(feeds.filter((feed) => feed.stream === stream))],
      ['Rows', 'right', rowsCell],
      ['Last run', '', lastRunCell],
      // While a run is in progress, the time of the next one is not shown.
      ['Next run', '', ({ nextRunAt, lastRun }) => lastRun?.state !== 'running' && nextRunAt && fromNow(nextRunAt)],
    ],
    { keyOf: ({ stream }) => stream },
  );
  return panel(source, list, { side: actions, key: `source-${source}`, label: `Source ${source}`, kind: 'streams' });
}

/** @param {StreamOverview} stream */
const nameCell = ({ source, stream, configured, parked, quarantined, uncertifiedWindows }) =>
  html`<span class="row">
    <a href=${stream === 'links' ? href(['runs'], { source, stream }) : href(['stream', source, stream])}>${stream}</a>
    ${parked && badge('parked')}
    ${uncertifiedWindows > 0 && badge(`${uncertifiedWindows} unproven`, 'warn')}
    ${
      quarantined > 0 &&
      html`<a href=${href(['quarantine'], { source, stream })}>${badge(`${quarantined} set aside`, 'warn')}</a>`
    }
    ${!configured && aside('not in the config')}
  </span>`;

/** The range in which a stream is complete, and its filters. @param {StreamOverview} stream */
const completeCell = ({ completeThrough, since: from, filters, lastRun }) =>
  !completeThrough || !from
    ? html`<span class="muted">${lastRun?.state === 'running' ? 'being read' : 'nothing proven yet'}</span>`
    : html`<span class="stack">
        ${time(completeThrough)}
        <span class="muted small">
          since ${dayTime(from)}${filters && html`<span title=${filters}>, filtered</span>`}
        </span>
      </span>`;

/** The ledger counts the rows of finished windows, so it lacks those of the newest minutes. @param {StreamOverview} stream */
const rowsCell = ({ rows: read, rowsToday }) => {
  if (read === null) return null;
  const rows = Math.max(read, rowsToday);
  return html`<span class="stack" title="${figure(rows)} rows in all, ${figure(rowsToday)} new today (UTC)">
    ${shortFigure(rows)}${aside(`+${shortFigure(rowsToday)} today`)}
  </span>`;
};

/** The sink is named only if there are several. @param {FeedCoverage[]} feeds */
const strips = (feeds) =>
  feeds.map(
    ({ source, stream, sink, days }) =>
      html`<a class="strip-link" href=${href(['stream', source, stream], { sink })} data-key=${sink}>
        ${feeds.length > 1 && aside(sink)}${strip(days, STRIP_DAYS)}
      </a>`,
  );
