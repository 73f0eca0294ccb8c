/** @import { EventRows, Rows } from '../../api-types.ts' */
/** @import { Address } from '../app/screen.js' */
import { get } from '../app/session.js';
import { bars, slotsOf } from './chart.js';
import { html } from './dom.js';
import { choice, empty, panel } from './elements.js';
import { counted, DAY_MS, figure, STREAMS } from './words.js';

/** How far back the chart goes. Up to a week, arrivals are counted by the hour. */
const SPANS = { days: '48 hours', week: '7 days', month: '30 days', year: '1 year' };
const DAYS = { days: 2, week: 7, month: 30, year: 365 };
/** By event time there are only days, and two of them make no chart. */
const { days: _, ...LONG_SPANS } = SPANS;

/** @typedef {{ by: 'event', rows: EventRows } | { by: 'arrival', rows: Rows }} RowsFound */

/** @param {Address['query']} query @returns {{ by: 'event' | 'arrival', span: keyof typeof SPANS }} */
function asked({ by, span }) {
  const isArrival = by === 'arrival';
  const chosen = /** @type {keyof typeof SPANS} */ (span && span in SPANS ? span : 'month');
  return { by: isArrival ? 'arrival' : 'event', span: !isArrival && chosen === 'days' ? 'week' : chosen };
}

/** @param {{ source?: string | undefined, stream?: string | undefined }} of @param {Address['query']} query @param {AbortSignal} signal @returns {Promise<RowsFound>} */
export async function loadRows(of, query, signal) {
  const { by, span } = asked(query);
  const days = DAYS[span];
  const per = days <= 7 ? 'hour' : 'day';
  const step = per === 'hour' && by === 'arrival' ? DAY_MS / 24 : DAY_MS;
  const from = new Date(Math.floor(Date.now() / step) * step + step - days * DAY_MS).toISOString();
  return by === 'event'
    ? { by, rows: await get('/api/rows/events', { ...of, from }, signal) }
    : { by, rows: await get('/api/rows', { ...of, from, per }, signal) };
}

/**
 * A chart of rows by the time of their events, or by their arrival.
 * @param {RowsFound} found
 * @param {Address} address
 * @param {boolean} isFirstSync A run counts its new rows when it ends, and a first sync takes long.
 */
export function rowsChart({ by, rows }, address, isFirstSync) {
  const { span } = asked(address.query);
  const hourly = by === 'arrival' && rows.per === 'hour';
  const stepMs = hourly ? DAY_MS / 24 : DAY_MS;
  const points = rows.series.flatMap(({ stream, points }) =>
    points.map((point) => ({
      stream,
      at: point.at,
      rows: 'new' in point ? point.new - point.firstSync : point.rows,
      first: 'new' in point ? point.firstSync : 0,
    })),
  );
  const streams = STREAMS.filter((name) => points.some(({ stream }) => stream === name));
  const slots = slotsOf({
    from: rows.from,
    to: rows.to,
    stepMs,
    points,
    atOf: ({ at }) => at,
    slot: (of) => ({ values: streams.map((name) => sum(of.filter(({ stream }) => stream === name))) }),
  });
  const total = sum(points);
  const first = points.reduce((n, point) => n + point.first, 0);
  const where = `the last ${SPANS[span]}`;
  // Not drawn: a first sync adds a hundred times the rows of a day, which would flatten all other bars.
  const note = first > 0 && `First syncs added ${counted(first, 'more row')}, which the chart omits.`;
  const choices = html`<div class="row">
    ${choice('Rows by', address, 'by', by, { event: 'Event time', arrival: 'Arrival' })}
    ${choice('How far back', address, 'span', span, by === 'arrival' ? SPANS : LONG_SPANS)}
  </div>`;
  const nothing =
    isFirstSync && by === 'arrival'
      ? 'The first sync counts its rows when it ends; by event time they are shown as they arrive.'
      : `No ${by === 'event' ? 'rows' : 'new rows'} in ${where}. ${note || ''}`;
  const chart = () =>
    bars({
      label: `${counted(total, 'row')} in ${where}; the most in one ${hourly ? 'hour' : 'day'} was ${figure(most(slots))}`,
      layers: streams.map((name) => ({ name, kind: name })),
      slots,
      stepMs,
      ...(note && { note }),
    });
  return panel(by === 'event' ? 'Rows by event time' : 'New rows by arrival', total === 0 ? empty(nothing) : chart(), {
    side: choices,
  });
}

/** @param {readonly { rows: number }[]} points */
const sum = (points) => points.reduce((n, { rows }) => n + rows, 0);

/** @param {readonly { values: number[] | null }[]} slots */
const most = (slots) => Math.max(0, ...slots.map(({ values }) => (values ?? []).reduce((a, b) => a + b, 0)));
