/** @import { Column } from './tables.js' */
import uPlot from '../uPlot.js';
import { html } from './dom.js';
import { aside, scrolled } from './elements.js';
import { table } from './tables.js';
import { DAY_MS, dayOf, figure, minute, shortFigure, zoneName } from './words.js';

/**
 * A stacked bar chart over time; the only user of uPlot. It draws its attribute `model`, so that a view can be redrawn without losing the
 * chart, its zoom or its tooltip.
 * @typedef {{ name: string, kind: string }} Layer A kind of bar; it has the colour of the swatch of that class.
 * @typedef {{ at: string, values: number[] | null, mark?: number }} Slot An interval; `values` is null without data.
 * @typedef {{ layers: Layer[], slots: Slot[], stepMs: number, top?: number, mark?: string }} Model
 */

const HEIGHT = 180;
const DAY_S = 86_400;

/** The time of a slot: days are UTC days, whatever the clock on the page. @param {Model} model @param {string} at */
const slotTime = ({ stepMs }, at) => (stepMs >= DAY_S * 1000 ? dayOf(at) : minute(at));

/** @param {Model} model @param {Slot} slot */
const slotFigures = ({ layers, mark }, { values, mark: n }) => [
  ...layers.map(({ name }, i) => /** @type {const} */ ([name, figure(values?.[i] ?? 0)])),
  ...(mark && n ? [/** @type {const} */ ([mark, figure(n)])] : []),
];

class TimeChart extends HTMLElement {
  static observedAttributes = ['model', 'zone'];
  /** @type {uPlot | undefined} */
  #plot;
  #tip = html`<div class="chart-tip" hidden></div>`;
  #back = html`<button class="chart-back quiet" type="button" hidden>Whole range</button>`;
  #size = new ResizeObserver(() => this.#plot?.setSize(this.#room()));
  #redraw = () => this.#plot?.redraw();
  #theme = new MutationObserver(this.#redraw);
  #dark = matchMedia('(prefers-color-scheme: dark)');

  connectedCallback() {
    this.append(this.#tip, this.#back);
    this.#back.onclick = () => this.#show();
    this.#size.observe(this);
    this.#theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    this.#dark.addEventListener('change', this.#redraw);
    this.#show();
  }

  disconnectedCallback() {
    this.#size.disconnect();
    this.#theme.disconnect();
    this.#dark.removeEventListener('change', this.#redraw);
    this.#plot?.destroy();
    this.#plot = undefined;
  }

  /** @param {string} name @param {string | null} old @param {string | null} now */
  attributeChangedCallback(name, old, now) {
    if (!this.isConnected || old === now) return;
    const { min, max } = this.#plot?.scales.x ?? {};
    const wasZoomed = !this.#back.hidden && name === 'model';
    this.#show();
    if (wasZoomed && min !== undefined && max !== undefined) this.#plot?.setScale('x', { min, max });
  }

  /** @returns {Model} */
  get #model() {
    return JSON.parse(this.getAttribute('model') ?? '{"layers":[],"slots":[],"stepMs":1}');
  }

  #room = () => ({ width: Math.max(200, this.clientWidth), height: HEIGHT });

  #show() {
    const model = this.#model;
    this.#plot?.destroy();
    this.#tip.hidden = true;
    this.#back.hidden = true;
    this.#plot = new uPlot(this.#options(model), dataOf(model), this);
  }

  /** @param {Model} model @returns {uPlot.Options} */
  #options(model) {
    const { layers, slots, stepMs, top, mark } = model;
    const [first, step] = [Date.parse(slots[0]?.at ?? '') / 1000, stepMs / 1000];
    const whole = /** @type {[number, number]} */ ([first, first + step * slots.length]);
    const ink = () => getComputedStyle(this).color;
    const line = () => getComputedStyle(this).borderTopColor;
    const axis = { stroke: ink, font: '12px system-ui, sans-serif', ticks: { show: false } };
    const bars = /** @type {uPlot.Series.PathBuilder} */ (uPlot.paths.bars?.({ size: [0.85, 64], align: 1 }));
    return {
      ...this.#room(),
      legend: { show: false },
      padding: [10, 18, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, dist: 8 } },
      scales: {
        x: {
          time: true,
          range: (_, min, max) => (min > max || min === null ? whole : [min, max]),
          min: whole[0],
          max: whole[1],
        },
        y: { range: (_, __, max) => [0, top ?? Math.max(1, max * 1.05)] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          space: 70,
          size: 28,
          values: (_, at, __, ___, incr) => at.map((second) => tick(second, incr)),
        },
        {
          ...axis,
          size: 48,
          grid: { stroke: line, width: 1 },
          values: (_, at) => at.map((n) => (n % 1 === 0 ? shortFigure(n) : '')),
        },
      ],
      series: [
        {},
        ...layers
          .map(({ kind }) => ({ fill: () => this.#colour(kind), width: 0, paths: bars, points: { show: false } }))
          .toReversed(),
        ...(mark
          ? [{ paths: () => null, points: { show: true, size: 7, width: 0, fill: () => this.#colour('mark') } }]
          : []),
      ],
      hooks: {
        setCursor: [(plot) => this.#point(plot, model)],
        setScale: [
          ({ scales: { x: { min, max } = {} } }, key) => {
            if (key === 'x') this.#back.hidden = min === undefined || (min <= whole[0] && (max ?? 0) >= whole[1]);
          },
        ],
      },
    };
  }

  /** The colour in the style sheet, light or dark. @param {string} kind */
  #colour(kind) {
    const swatch = this.parentElement?.querySelector(`.swatch.${kind}`);
    return swatch ? getComputedStyle(swatch).backgroundColor : '';
  }

  /** @param {uPlot} plot @param {Model} model */
  #point(plot, model) {
    const { left = -1 } = plot.cursor;
    const first = Date.parse(model.slots[0]?.at ?? '');
    const slot =
      left < 0 ? undefined : model.slots[Math.floor((plot.posToVal(left, 'x') * 1000 - first) / model.stepMs)];
    this.#tip.hidden = !slot;
    if (!slot) return;
    const lines = slot.values ? slotFigures(model, slot).map((each) => each.join(' ')) : ['nothing'];
    const spans = lines.map((text) => html`<span>${text}</span>`);
    this.#tip.replaceChildren(html`<b>${slotTime(model, slot.at)}</b>`, ...spans);
    const at = plot.over.offsetLeft + left;
    const room = this.clientWidth - this.#tip.offsetWidth;
    const x = at + 12 > room ? at - this.#tip.offsetWidth - 12 : at + 12;
    this.#tip.style.setProperty('--x', `${Math.max(0, Math.min(room, x))}px`);
  }
}

customElements.define('time-chart', TimeChart);

/** uPlot draws series over each other: the whole stack first, the lowest layer last. @param {Model} model @returns {uPlot.AlignedData} */
function dataOf({ layers, slots, mark }) {
  const stacks = layers.map((_, i) =>
    slots.map(({ values }) => values?.slice(0, i + 1).reduce((a, b) => a + b, 0) ?? null),
  );
  const marks = mark ? [slots.map(({ mark: n }) => (n ? 0 : null))] : [];
  return [slots.map(({ at }) => Date.parse(at) / 1000), ...stacks.toReversed(), ...marks];
}

/** `11-15` for a day, `04:20` within one. @param {number} second @param {number} incr */
function tick(second, incr) {
  const text = minute(new Date(second * 1000).toISOString());
  return incr >= DAY_S || text.endsWith('00:00') ? text.slice(5, 10) : text.slice(11);
}

/**
 * A chart with its legend, and a table for screen readers and for people who want the numbers.
 * @param {Model & { label: string, note?: string }} options
 */
export function bars({ label, note, ...model }) {
  const { layers, mark } = model;
  const swatches = mark ? [...layers, { name: mark, kind: 'mark' }] : layers;
  return html`<figure class="bars">
    ${note && html`<p class="small muted">${note}</p>`}
    <time-chart role="img" aria-label=${label} model=${JSON.stringify(model)} zone=${zoneName()}></time-chart>
    <figcaption class="row">
      <ul class="legend">
        ${swatches.map(({ name, kind }) => html`<li><i class="swatch ${kind}" aria-hidden="true"></i>${name}</li>`)}
      </ul>
      ${aside('Drag to zoom.')}
      <details><summary>As a table</summary>${numbers(label, model)}</details>
    </figcaption>
  </figure>`;
}

/** @param {string} label @param {Model} model */
function numbers(label, model) {
  const { layers, mark, slots, stepMs } = model;
  const time = `Time (${stepMs >= DAY_MS ? 'UTC' : zoneName()})`;
  const names = [...layers.map(({ name }) => name), ...(mark ? [mark] : [])];
  /** @type {Column<Slot>[]} */
  const columns = [
    [time, 'lead', ({ at }) => slotTime(model, at)],
    ...names.map((name, i) => /** @type {Column<Slot>} */ ([name, '', (slot) => slotFigures(model, slot)[i]?.[1]])),
  ];
  const known = slots.filter(({ values }) => values).toReversed();
  return scrolled(`${label}, as a table`, table(label, known, columns, { keyOf: ({ at }) => at, kind: 'dense' }));
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
