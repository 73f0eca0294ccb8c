/** @import { Rows, RowsPoint } from '../../api-types.ts' */
/** @import { Address } from '../app/screen.js' */
import { here } from '../app/screen.js';
import { h, s } from './dom.js';
import { choice } from './elements.js';
import { counted, DAY_MS, dayOf, figure, minute, shortFigure, time } from './words.js';

/**
 * @typedef {{ name: string, kind: string }} Layer A kind of bar; its colour is the class of that name.
 * @typedef {{ at: string, values: number[] | null, mark?: number }} Slot A stretch of time; without values nothing is known of it.
 */

/**
 * A stacked bar chart over time. The drawing stretches with the page, so labels are placed around it; screen readers and
 * those who want the numbers get a table below.
 * @param {{ label: string, layers: Layer[], slots: Slot[], top: number, topText: string, mark?: string, say(n: number): string, when(at: string): string }} options
 */
export function bars({ label, layers, slots, top, topText, mark, say, when }) {
  const ends = [slots[0], slots[Math.floor(slots.length / 2)], slots.at(-1)].filter((slot) => slot !== undefined);
  return h(
    'figure',
    { class: 'bars' },
    h('p', { class: 'bars-top small muted' }, topText),
    s(
      'svg',
      { viewBox: `0 0 ${slots.length} 100`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
      slots.map((slot, i) => slot.values && column(slot.values, { layers, top, x: i, title: titleOf(slot) })),
    ),
    mark &&
      s(
        'svg',
        { class: 'marks', viewBox: `0 0 ${slots.length} 1`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
        slots.map(({ mark: n }, i) =>
          n ? s('rect', { class: 'mark', x: i + 0.1, y: 0, width: 0.8, height: 1 }) : null,
        ),
      ),
    h(
      'div',
      { class: 'bars-foot small muted' },
      // Without the year: at phone width there is no room for it.
      ends.map(({ at }) => time(at, when(at).slice(5))),
    ),
    h(
      'figcaption',
      { class: 'row' },
      (layers.length > 1 || mark) && key(mark ? [...layers, { name: mark, kind: 'mark' }] : layers),
      h('details', {}, h('summary', {}, 'As a table'), numbers()),
    ),
  );

  /** @param {Slot} slot */
  function titleOf({ at, values, mark: n }) {
    const parts = layers.map(({ name }, i) => `${name} ${say(values?.[i] ?? 0)}`);
    return `${when(at)}: ${[...parts, ...(n ? [`${mark} ${n}`] : [])].join(', ')}`;
  }

  function numbers() {
    const rows = slots.filter(({ values }) => values).toReversed();
    return h(
      'div',
      { class: 'scroll numbers', tabindex: 0, role: 'region', 'aria-label': `${label}, as a table` },
      h(
        'table',
        {},
        h(
          'thead',
          {},
          h('tr', {}, ['Time (UTC)', ...layers.map(({ name }) => name), ...(mark ? [mark] : [])].map(head)),
        ),
        h(
          'tbody',
          {},
          rows.map((slot) =>
            h(
              'tr',
              {},
              cells(slot).map((text) => h('td', {}, text)),
            ),
          ),
        ),
      ),
    );
  }

  /** @param {Slot} slot */
  function cells({ at, values, mark: n }) {
    return [when(at), ...(values ?? []).map(say), ...(mark ? [n ? String(n) : ''] : [])];
  }
}

/** @param {string} name */
const head = (name) => h('th', { scope: 'col' }, name);

/** @param {Layer[]} layers */
const key = (layers) =>
  h(
    'ul',
    { class: 'legend' },
    layers.map(({ name, kind }) => h('li', {}, h('i', { class: `swatch ${kind}`, 'aria-hidden': 'true' }), name)),
  );

/** @param {number[]} values @param {{ layers: Layer[], top: number, x: number, title: string }} options */
function column(values, { layers, top, x, title }) {
  let y = 100;
  const parts = values.map((value, i) => {
    const height = Math.min(y, (value / top) * 100);
    y -= height;
    return height > 0 && s('rect', { class: layers[i]?.kind, x: x + 0.1, y, width: 0.8, height });
  });
  return s('g', {}, s('title', {}, title), s('rect', { class: 'hit', x, y: 0, width: 1, height: 100 }), parts);
}

/**
 * Every interval between two times, with data or not.
 * @template P
 * @param {{ from: string, to: string, stepMs: number, points: readonly P[], atOf(point: P): string, slot(points: P[]): Omit<Slot, 'at'> }} options
 * @returns {Slot[]}
 */
export function slotsOf({ from, to, stepMs, points, atOf, slot }) {
  /** @type {Map<number, P[]>} */
  const byStep = new Map();
  for (const point of points) {
    const index = Math.floor(Date.parse(atOf(point)) / stepMs);
    byStep.set(index, [...(byStep.get(index) ?? []), point]);
  }
  const [first, last] = [Math.floor(Date.parse(from) / stepMs), Math.ceil(Date.parse(to) / stepMs)];
  return Array.from({ length: Math.max(1, last - first) }, (_, i) => {
    const found = byStep.get(first + i);
    return { at: new Date((first + i) * stepMs).toISOString(), ...(found ? slot(found) : { values: null }) };
  });
}

const STREAMS = ['clicks', 'leads', 'sales'];

/**
 * New rows per hour or day of their sync.
 * @param {Rows} rows
 * @param {Address} address
 * @param {boolean} isFirstSync Runs count their new rows at their end, and a first sync takes long.
 */
export function rowsChart({ per, from, to, series }, address, isFirstSync) {
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
  const most = Math.max(1, ...slots.map(({ values }) => sum(values ?? [])));
  const top = scaleOf(slots.map(({ values }) => sum(values ?? [])));
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
    total === 0
      ? h(
          'p',
          { class: 'empty' },
          isFirstSync ? 'The first sync counts its rows when it has ended.' : `No new rows in ${span(per)}.`,
        )
      : bars({
          label: `${counted(total, 'new row')} in ${span(per)}; the most in one ${per} was ${figure(most)}`,
          layers: streams.map((name) => ({ name, kind: name })),
          slots,
          top,
          topText:
            most > top
              ? `${shortFigure(top)}; the highest bars end here, up to ${shortFigure(most)}`
              : shortFigure(top),
          say: figure,
          when: per === 'hour' ? minute : dayOf,
        }),
  );
}

/**
 * The top of the scale: a first sync brings a hundred times the rows of a day, and must not flatten all other bars. Bars
 * beyond it are cut off and marked.
 * @param {readonly number[]} totals
 */
function scaleOf(totals) {
  const known = totals.filter((total) => total > 0).toSorted((a, b) => a - b);
  const most = known.at(-1) ?? 1;
  const usual = known[Math.floor((known.length - 1) * 0.9)] ?? most;
  return known.length > 4 && most > 4 * usual ? usual * 1.5 : most;
}

/** @param {Rows['per']} per */
const span = (per) => (per === 'hour' ? 'the last 48 hours' : 'the last 30 days');

/** @param {readonly { point: RowsPoint }[]} points */
const newOf = (points) => sum(points.map(({ point }) => point.new));

/** @param {readonly number[]} values */
const sum = (values) => values.reduce((a, b) => a + b, 0);
