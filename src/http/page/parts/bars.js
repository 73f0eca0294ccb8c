/** @import { Layer, Model, Slot } from './chart.js' */
import { slotFigures, slotTime } from './chart.js';
import { h } from './dom.js';
import { zoneName } from './words.js';

/**
 * A chart with its legend; screen readers and those who want the numbers get a table below.
 * @param {Model & { label: string, note?: string }} options
 */
export function bars({ label, note, ...model }) {
  const { layers, mark } = model;
  const swatches = mark ? [...layers, { name: mark, kind: 'mark' }] : layers;
  return h(
    'figure',
    { class: 'bars' },
    note && h('p', { class: 'small muted' }, note),
    h('time-chart', { role: 'img', 'aria-label': label, model: JSON.stringify(model), zone: zoneName() }),
    h(
      'figcaption',
      { class: 'row' },
      key(swatches),
      h('span', { class: 'small muted' }, 'Drag to zoom.'),
      h('details', {}, h('summary', {}, 'As a table'), numbers(label, model)),
    ),
  );
}

/** @param {string} label @param {Model} model */
const numbers = (label, model) =>
  h(
    'div',
    { class: 'scroll numbers', tabindex: 0, role: 'region', 'aria-label': `${label}, as a table` },
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          [
            `Time (${model.stepMs >= 86_400_000 ? 'UTC' : zoneName()})`,
            ...model.layers.map(({ name }) => name),
            model.mark,
          ].map((name) => name && h('th', { scope: 'col' }, name)),
        ),
      ),
      h(
        'tbody',
        {},
        model.slots
          .filter(({ values }) => values)
          .toReversed()
          .map((slot) =>
            h(
              'tr',
              {},
              [slotTime(model, slot.at), ...slotFigures(model, slot).map(([, n]) => n)].map((text) =>
                h('td', {}, text),
              ),
            ),
          ),
      ),
    ),
  );

/** @param {Layer[]} layers */
const key = (layers) =>
  h(
    'ul',
    { class: 'legend' },
    layers.map(({ name, kind }) => h('li', {}, h('i', { class: `swatch ${kind}`, 'aria-hidden': 'true' }), name)),
  );

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
