/** @import { Rows, RowsPoint } from '../../api-types.ts' */
/** @import { Address } from '../app/address.js' */
import { here } from '../app/address.js';
import { h } from '../dom/h.js';
import { counted, figure, shortFigure } from '../words/figures.js';
import { DAY_MS, dayOf, minute } from '../words/time.js';
import { bars, slotsOf } from './bars.js';
import { choice } from './choice.js';

const STREAMS = ['clicks', 'leads', 'sales'];

/** New rows per hour or per day, by when they were brought. @param {Rows} rows @param {Address} address */
export function rowsChart({ per, from, to, series }, address) {
  const streams = STREAMS.filter((name) => series.some(({ stream }) => stream === name));
  const points = series.flatMap(({ stream, points }) => points.map((point) => ({ stream, point })));
  const slots = slotsOf({
    from,
    to,
    stepMs: per === 'hour' ? DAY_MS / 24 : DAY_MS,
    points,
    atOf: ({ point }) => point.at,
    slot: (found) => ({ values: streams.map((name) => newOf(found.filter(({ stream }) => stream === name))) }),
  });
  const top = Math.max(1, ...slots.map(({ values }) => sum(values ?? [])));
  const total = newOf(points);
  return h(
    'section',
    { class: 'panel', 'aria-labelledby': 'rows-title' },
    h(
      'div',
      { class: 'panel-head' },
      h('h2', { id: 'rows-title' }, per === 'hour' ? 'New rows per hour' : 'New rows per day'),
      choice('Rows per', [
        { name: 'Hour', to: here(address, { per: null }), isChosen: per === 'hour' },
        { name: 'Day', to: here(address, { per: 'day' }), isChosen: per === 'day' },
      ]),
    ),
    points.length === 0
      ? h('p', { class: 'empty' }, `No run in this time (${span(per)}).`)
      : bars({
          label: `${counted(total, 'new row')} in ${span(per)}; the most in one ${per} was ${figure(top)}`,
          layers: streams.map((name) => ({ name, kind: name })),
          slots,
          top,
          topText: shortFigure(top),
          say: figure,
          when: per === 'hour' ? minute : dayOf,
        }),
  );
}

/** @param {Rows['per']} per */
const span = (per) => (per === 'hour' ? 'the last 48 hours' : 'the last 30 days');

/** @param {readonly { point: RowsPoint }[]} points */
const newOf = (points) => sum(points.map(({ point }) => point.new));

/** @param {readonly number[]} values */
const sum = (values) => values.reduce((a, b) => a + b, 0);
