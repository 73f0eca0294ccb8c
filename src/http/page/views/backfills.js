/** @import { Backfill, BackfillAction, Backfills } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
/** @import { BackfillPrice, BackfillRequest, SourcePrice, StreamPrice } from '../../api-types.ts' */

import { sourceNames } from '../app/live.js';
import { href } from '../app/screen.js';
import { get, post } from '../app/session.js';
import { announce, confirmed } from '../parts/actions.js';
import { h } from '../parts/dom.js';
import { badge, dateField, field, opening, progressBar } from '../parts/elements.js';
import { doubtList, table } from '../parts/tables.js';
import { counted, DAY_MS, dayOf, duration, figure, fromNow, percent, range } from '../parts/words.js';

/** Backfills: the form, the running ones and the finished ones. @type {View} */
export const backfills = {
  title: () => 'Backfills',
  news: ['backfills'],
  async load(_address, signal) {
    const [found, sources] = await Promise.all([get('/api/backfills', {}, signal), sourceNames()]);
    return { found, sources };
  },
  draw(/** @type {{ found: Backfills, sources: string[] }} */ { found, sources }, address) {
    return [
      opening('Backfills', 'Reads a range of dates. What is proven already is skipped, and syncs go first.'),
      backfillForm(sources, address.query),
      h(
        'section',
        { class: 'panel', 'aria-labelledby': 'backfills-title' },
        h('h2', { id: 'backfills-title' }, 'Under way and done'),
        list(found.backfills),
      ),
    ];
  },
};

/** @param {Backfill[]} rows */
const list = (rows) =>
  rows.length === 0
    ? h('p', { class: 'empty' }, 'No backfill was started yet.')
    : table({
        label: 'Backfills',
        rows,
        keyOf: ({ id }) => id,
        columns: [
          {
            name: 'Stream',
            kind: 'lead fit',
            cell: ({ source, stream }) => h('a', { href: href(['stream', source, stream]) }, `${source}/${stream}`),
          },
          {
            name: 'From, to (UTC)',
            kind: 'line',
            cell: ({ from, to }) => range(from, to),
          },
          { name: 'Progress', kind: 'wide', cell: progress },
          { name: 'Rows', kind: 'right fit', cell: ({ rows }) => figure(rows) },
          { name: 'State', kind: 'fit', cell: state },
          { name: 'Started', kind: 'fit', cell: ({ createdAt }) => fromNow(createdAt) },
          { name: '', kind: 'fit', cell: actions },
        ],
      });

/** @param {Backfill} backfill */
function progress({ source, stream, progress: share, windows, certified, etaSeconds, message }) {
  const all = windows.queued + windows.running + windows.done + windows.failed;
  return h(
    'span',
    { class: 'lag' },
    h(
      'span',
      { class: 'row' },
      h('b', {}, percent(share)),
      h('span', { class: 'muted small' }, `${figure(windows.done)} of ${counted(all, 'window')}`),
      h('span', { class: 'muted small' }, `${percent(certified)} of the range certified`),
      etaSeconds !== null && h('span', { class: 'muted small' }, `about ${duration(etaSeconds)} left`),
      windows.failed > 0 && badge(`${figure(windows.failed)} failed`),
    ),
    progressBar(`Backfill of ${source}/${stream}`, share),
    message && h('span', { class: 'small' }, message),
  );
}

/** @param {Backfill} backfill */
const state = ({ state, running }) => {
  if (state === 'failed') return badge('failed');
  return state === 'queued' ? (running ? 'running' : 'waiting') : state;
};

/** @type {Readonly<Record<BackfillAction, { name: string, done: string }>>} */
const ACTIONS = {
  pause: { name: 'Pause', done: 'is paused; what is being read is finished first' },
  resume: { name: 'Resume', done: 'goes on' },
  cancel: { name: 'Cancel', done: 'is cancelled; what it has read stays' },
  retry: { name: 'Retry', done: 'reads its failed windows again' },
};

/** @param {Backfill} backfill */
const actions = ({ id, source, stream, actions }) =>
  actions.length > 0 &&
  h(
    'span',
    { class: 'row' },
    actions.map((action) => {
      const { name, done } = ACTIONS[action];
      const what = `the backfill of ${source}/${stream}`;
      const act = async () => {
        if (
          action === 'cancel' &&
          !(await confirmed(`Cancel ${what}?`, 'For good. What it has read stays.', 'Cancel the backfill'))
        )
          return;
        await announce(`The backfill of ${source}/${stream} ${done}.`, () =>
          post(`/api/backfills/${encodeURIComponent(id)}/${action}`),
        );
      };
      return h(
        'button',
        { type: 'button', class: 'quiet', 'data-key': action, 'aria-label': `${name} ${what}`, onclick: act },
        name,
      );
    }),
  );

const STREAMS = ['clicks', 'leads', 'sales'];

/**
 * First the price, then the start; a changed field needs a new price. The form is not redrawn by live updates, so that they do not
 * discard what somebody is typing.
 * @param {readonly string[]} sources
 * @param {Record<string, string>} query What is filled in already.
 */
export function backfillForm(
  sources,
  { source = '', stream, from = dayOf(Date.now() - 7 * DAY_MS), to = dayOf(Date.now()) },
) {
  const answer = h('div', { class: 'price', 'aria-live': 'polite' });
  const ask = /** @type {HTMLButtonElement} */ (h('button', { class: 'main' }, 'Show the price'));
  const form = /** @type {HTMLFormElement} */ (
    h(
      'form',
      {
        class: 'panel',
        'data-keep': true,
        'data-key': ['form', source, stream, from, to].join('/'),
        'aria-labelledby': 'form-title',
      },
      h('h2', { id: 'form-title' }, 'Start a backfill'),
      h(
        'div',
        { class: 'fields' },
        field(
          'source',
          'Source',
          h(
            'select',
            { id: 'source', name: 'source' },
            h('option', { value: '' }, 'all'),
            sources.map((name) => h('option', { value: name, selected: name === source }, name)),
          ),
        ),
        h(
          'fieldset',
          { class: 'field' },
          h('legend', {}, 'Streams'),
          h(
            'div',
            {},
            STREAMS.map((name) => check('streams', name, !stream || stream === name)),
          ),
        ),
        dateField('from', 'From (UTC)', from),
        dateField('to', 'To, exclusive (UTC)', to),
        check('force', 'Also what is proven already', false),
        ask,
      ),
      answer,
    )
  );
  form.onchange = () => answer.replaceChildren();
  form.onsubmit = async (event) => {
    event.preventDefault();
    ask.disabled = true;
    answer.replaceChildren(h('p', { class: 'muted' }, 'Asking the service how much there is…'));
    try {
      const request = requestOf(form);
      const price = /** @type {BackfillPrice} */ (await post('/api/backfills/price', request));
      const start = h('button', { type: 'button', class: 'main' }, 'Start the backfill');
      start.onclick = () => startIt(request, answer);
      answer.replaceChildren(...priceOf(price), h('div', { class: 'row' }, start));
      start.focus();
    } catch (error) {
      // Recovery: the form stays as it is, with the reason below it.
      answer.replaceChildren(h('p', { class: 'trouble' }, /** @type {Error} */ (error).message));
    } finally {
      ask.disabled = false;
    }
  };
  return form;
}

/** @param {BackfillRequest} request @param {HTMLElement} answer */
async function startIt(request, answer) {
  await announce('The backfill is on its way.', async () => {
    const { backfills } = await post('/api/backfills', request);
    const text = `${counted(backfills.length, 'backfill')} started: see below.`;
    answer.replaceChildren(h('p', { tabindex: -1 }, text));
    /** @type {HTMLElement} */ (answer.firstElementChild).focus();
  });
}

/** @param {HTMLFormElement} form @returns {BackfillRequest} */
function requestOf(form) {
  const fields = new FormData(form);
  const source = String(fields.get('source'));
  const streams = /** @type {import('../../../model/streams.ts').StreamName[]} */ (fields.getAll('streams'));
  if (streams.length === 0) throw new Error('Choose at least one stream.');
  return {
    ...(source && { source }),
    streams,
    from: String(fields.get('from')),
    to: String(fields.get('to')),
    force: fields.get('force') !== null,
  };
}

/** @param {string} name @param {string} text @param {boolean} checked */
const check = (name, text, checked) =>
  h('label', { class: 'check' }, h('input', { type: 'checkbox', name, value: text, checked }), text);

/** What it will cost: requests and rows for each stream, time for each source. @param {BackfillPrice} price */
export const priceOf = ({ streams, sources, warnings }) => [
  ...doubtList(warnings),
  table({
    label: 'What it will cost',
    isDense: true,
    rows: streams,
    keyOf: ({ source, stream }) => `${source}/${stream}`,
    columns: [
      { name: 'Stream', kind: 'lead', cell: ({ source, stream }) => `${source}/${stream}` },
      { name: 'Proven already', kind: 'right', cell: ({ certified }) => percent(certified) },
      { name: 'Rows to read', kind: 'right', cell: (price) => about(price, price.rows) },
      { name: 'Requests', kind: 'right', cell: (price) => about(price, price.requests) },
    ],
  }),
  h(
    'ul',
    { class: 'plain' },
    Object.entries(sources).map(([source, price]) => h('li', {}, h('b', {}, source), ` ${times(price)}`)),
  ),
];

/** @param {StreamPrice} price @param {number} n */
const about = ({ isCounted }, n) => `${isCounted ? '' : 'about '}${figure(n)}`;

/** @param {SourcePrice} price */
function times({ current, others, pollShare }) {
  const elsewhere = others.map(({ plan, seconds }) => `${plan} ${duration(seconds)}`).join(', ');
  return [
    `takes ${duration(current.seconds)} at ${counted(current.perSecond, 'request')} a second`,
    ...(elsewhere ? [`by plan: ${elsewhere}`] : []),
    ...(pollShare > 0 ? [`syncs go first and use ${percent(pollShare)} of the budget`] : []),
  ].join(' · ');
}
