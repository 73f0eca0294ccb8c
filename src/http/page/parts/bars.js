/** @import { Model, Slot } from './chart.js' */
import { slotFigures, slotTime } from './chart.js';
import { html } from './dom.js';
import { aside, scrolled } from './elements.js';
import { DAY_MS, zoneName } from './words.js';

/**
 * A chart with its legend; screen readers and those who want the numbers get a table below.
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
  const time = `Time (${model.stepMs >= DAY_MS ? 'UTC' : zoneName()})`;
  const rows = model.slots.filter(({ values }) => values).toReversed();
  const heads = [time, ...namesOf(model)].map((name) => html`<th scope="col">${name}</th>`);
  const lines = rows.map(
    (slot) =>
      html`<tr>
        <td>${slotTime(model, slot.at)}</td>${slotFigures(model, slot).map(([, n]) => html`<td>${n}</td>`)}
      </tr>`,
  );
  return scrolled(`${label}, as a table`, html`<table><thead><tr>${heads}</tr></thead><tbody>${lines}</tbody></table>`);
}

/** @param {Model} model */
const namesOf = ({ layers, mark }) => [...layers.map(({ name }) => name), ...(mark ? [mark] : [])];

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
