/** @import { Address } from '../app/screen.js' */
import { here } from '../app/screen.js';
import { html } from './dom.js';
import { daysAgo, duration } from './words.js';

/**
 * A badge marks a problem. Its sign is for people who do not see the colour.
 * @param {string} text
 * @param {'warn' | 'bad'} [weight]
 */
export const badge = (text, weight = 'bad') =>
  html`<span class="badge ${weight}"><span aria-hidden="true">${weight === 'bad' ? '▲' : '●'}</span>${text}</span>`;

/** @param {unknown} text */
export const aside = (text) => html`<span class="muted small">${text}</span>`;

/** @param {unknown} text */
export const empty = (text) => html`<p class="empty">${text}</p>`;

/**
 * A section with its heading, and with `side` next to the heading.
 * @param {string} title
 * @param {unknown} content
 * @param {{ side?: unknown, key?: string, label?: string, kind?: string }} [options] `key` distinguishes it from its siblings.
 */
export const panel = (title, content, { side, key, label = title, kind = '' } = {}) =>
  html`<section class="panel ${kind}" aria-label=${label} data-key=${key}>
    <div class="panel-head"><h2>${title}</h2>${side}</div>
    ${content}
  </section>`;

/** Long content in a scrollable box. @param {string} label @param {unknown} content */
export const scrolled = (label, content) =>
  html`<div class="scroll numbers" tabindex="0" role="region" aria-label=${label}>${content}</div>`;

/**
 * A choice between a few values, as links, because the choice is part of the address.
 * @param {string} label
 * @param {Address} address
 * @param {string} param
 * @param {string | undefined} chosen
 * @param {Record<string, string>} options Names by value.
 */
export const choice = (label, address, param, chosen, options) =>
  html`<div class="choice" role="group" aria-label=${label}>
    ${Object.entries(options).map(
      ([value, name]) =>
        html`<a href=${here(address, { [param]: value })} aria-current=${value === chosen && 'true'}>${name}</a>`,
    )}
  </div>`;

/** Pairs of name and value; pairs without a value are omitted. @param {[string, unknown][]} pairs */
export const facts = (pairs) =>
  html`<dl class="facts">
    ${pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
      .map(([name, value]) => html`<div data-key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;

/** An input with its name above it. @param {string} id @param {string} label @param {HTMLElement} input */
const field = (id, label, input) => html`<div class="field"><label for=${id}>${label}</label>${input}</div>`;

/** The days of a range, by default the last week. @param {{ from?: string | undefined, to: string }} days */
export const dateFields = ({ from = daysAgo(7), to }) => [
  field('from', 'From (UTC)', html`<input id="from" name="from" type="date" value=${from} required>`),
  field('to', 'To, exclusive (UTC)', html`<input id="to" name="to" type="date" value=${to} required>`),
];

/**
 * @param {string} id
 * @param {string} label
 * @param {readonly (readonly [value: string, name: string])[]} options
 * @param {{ chosen?: string | undefined, onchange?: (event: any) => void }} [more]
 */
export const selectField = (id, label, options, { chosen = '', onchange } = {}) => {
  const each = options.map(
    ([value, name]) => html`<option value=${value} selected=${value === chosen}>${name}</option>`,
  );
  return field(id, label, html`<select id=${id} name=${id} onchange=${onchange}>${each}</select>`);
};

/** The names as options, after `all`, the default. @param {readonly string[]} names @returns {[value: string, name: string][]} */
export const orAll = (names) => [['', 'all'], ...names.map((name) => /** @type {[string, string]} */ ([name, name]))];

/**
 * The heading of a view: its title or state in one line, and an optional second line.
 * @param {string} title
 * @param {unknown} [more]
 * @param {unknown} [crumb]
 */
export const opening = (title, more, crumb) =>
  html`<div class="opening">
    ${crumb && html`<p class="small">${crumb}</p>`}
    <h1>${title}</h1>
    ${more && html`<p class="muted">${more}</p>`}
  </div>`;

/** @param {string} label @param {number} share From 0 to 1. */
export const progressBar = (label, share) =>
  html`<span class="bar" role="progressbar" aria-label=${label} aria-valuemin="0" aria-valuemax="100"
    aria-valuenow=${Math.floor(share * 100)} vars=${{ '--share': share }}></span>`;

/**
 * A stream's lag against its target. Without a target there is no bar.
 * @param {{ lagSeconds: number | null, maxLagSeconds: number | null, firstSync: boolean }} stream
 */
export function lag({ lagSeconds, maxLagSeconds, firstSync }) {
  if (firstSync) return html`<span class="muted">first sync</span>`;
  if (lagSeconds === null) return null;
  const isLate = maxLagSeconds !== null && lagSeconds > maxLagSeconds;
  const share = Math.min(1, lagSeconds / (maxLagSeconds ?? 1));
  return html`<span class="stack">
    <span class="row">
      <b>${duration(lagSeconds)}</b>
      ${maxLagSeconds !== null && aside(`of ${duration(maxLagSeconds)}`)}
      ${isLate && badge('late')}
    </span>
    ${
      maxLagSeconds !== null &&
      html`<span class="bar ${isLate ? 'over' : ''}" aria-hidden="true" vars=${{ '--share': share }}></span>`
    }
  </span>`;
}

/** @param {string} title @param {string} text @param {string} to @param {string} where */
export const notThere = (title, text, to, where) => [
  opening(title, text),
  html`<p class="panel"><a href=${to}>Go to ${where}</a></p>`,
];
