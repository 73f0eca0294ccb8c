/** @import { Backfill, BackfillAction, Backfills } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
/** @import { BackfillRequest, BackfillStart } from '../../api-types.ts' */

import { latestOverview } from '../app/live.js';
import { href } from '../app/screen.js';
import { get, post } from '../app/session.js';
import { actionButton, announce, confirmed } from '../parts/actions.js';
import { h } from '../parts/dom.js';
import { badge, dateField, field, opening, progressBar } from '../parts/elements.js';
import { showPrices } from '../parts/price.js';
import { table } from '../parts/tables.js';
import { counted, DAY_MS, dayOf, duration, figure, fromNow, percent, range } from '../parts/words.js';

/** @typedef {{ source: string, stream: import('../../../model/streams.ts').StreamName }} Of */

/** Backfills: the form, the running ones and the finished ones. @type {View} */
export const backfills = {
  title: () => 'Backfills',
  news: ['backfills'],
  async load(_address, signal) {
    const [found, overview] = await Promise.all([get('/api/backfills', {}, signal), latestOverview(signal)]);
    return { found, streams: overview().streams.filter(({ stream, configured }) => configured && stream !== 'links') };
  },
  draw(/** @type {{ found: Backfills, streams: Of[] }} */ { found, streams }, address) {
    return [
      opening('Backfills', 'Reads a range of dates. Certified ranges are skipped, and syncs go first.'),
      backfillForm(streams, address.query),
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
    ? h(
        'p',
        { class: 'empty' },
        'No backfill was given to the workers yet. Those of the command line are among the ',
        h('a', { href: href(['runs'], { kind: 'backfill' }) }, 'runs'),
        '.',
      )
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
          { name: 'Rows', kind: 'right fit', cell: rowsOf },
          { name: 'State', kind: 'fit', cell: state },
          { name: 'Started', kind: 'fit', cell: ({ createdAt }) => fromNow(createdAt) },
          { name: '', kind: 'fit', cell: actions },
        ],
      });

/** Of how many, while it reads and somebody asked. @param {Backfill} backfill */
const rowsOf = ({ rows, pricedRows, finishedAt }) =>
  pricedRows === null || finishedAt ? figure(rows) : `${figure(rows)} of about ${figure(Math.max(rows, pricedRows))}`;

/** @param {Backfill} backfill */
function progress(backfill) {
  const {
    source,
    stream,
    progress: share,
    windows,
    certified,
    force,
    state,
    rowsPerSecond,
    etaSeconds,
    message,
  } = backfill;
  const all = windows.queued + windows.running + windows.done + windows.failed;
  return h(
    'span',
    { class: 'stack' },
    h(
      'span',
      { class: 'row' },
      h('b', {}, percent(share)),
      h('span', { class: 'muted small' }, `${figure(windows.done)} of ${counted(all, 'window')}`),
      // Read again, all of it may be certified before it has begun.
      (!force || state === 'done') &&
        h('span', { class: 'muted small' }, `${percent(certified)} of the range certified`),
      rowsPerSecond !== null && h('span', { class: 'muted small' }, `${counted(rowsPerSecond, 'row')}/s`),
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
          !(await confirmed(`Cancel ${what}?`, 'This cannot be undone. What it has read stays.', 'Cancel the backfill'))
        )
          return;
        await announce(`The backfill of ${source}/${stream} ${done}.`, () =>
          post(`/api/backfills/${encodeURIComponent(id)}/${action}`),
        );
      };
      return actionButton({ class: 'quiet', 'data-key': action, 'aria-label': `${name} ${what}` }, name, act);
    }),
  );

const STREAMS = ['clicks', 'leads', 'sales'];

/**
 * First the price, then the start; a changed field needs a new price. The form is not redrawn by live updates, so that they do not
 * discard what somebody is typing.
 * @param {readonly Of[]} all
 * @param {Record<string, string>} query What is filled in already.
 */
export function backfillForm(
  all,
  { source = '', stream, from = dayOf(Date.now() - 7 * DAY_MS), to = dayOf(Date.now()) },
) {
  const sources = [...new Set(all.map((of) => of.source))];
  const answer = h('div', { 'aria-live': 'polite' });
  const ask = /** @type {HTMLButtonElement} */ (h('button', { class: 'main' }, 'Show the estimate'));
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
        check('force', 'Read certified ranges again', false),
        ask,
      ),
      answer,
    )
  );
  let stop = new AbortController();
  form.onchange = () => {
    stop.abort();
    answer.replaceChildren();
  };
  form.onsubmit = async (event) => {
    event.preventDefault();
    ask.disabled = true;
    stop = new AbortController();
    try {
      const request = requestOf(form);
      const chosen = all.filter((of) => isAsked(request, of));
      if (chosen.length === 0) throw new Error(`${request.source} has none of these streams.`);
      const place = h('div', { class: 'price' });
      answer.replaceChildren(place);
      const prices = await showPrices(place, request, chosen, stop);
      if (!prices) return;
      const rows = prices.flatMap(({ streams }) => streams).map((one) => [`${one.source}/${one.stream}`, one.rows]);
      const start = actionButton({ class: 'main' }, 'Start the backfill', () =>
        startIt({ ...request, pricedRows: Object.fromEntries(rows) }, answer),
      );
      place.append(h('div', { class: 'row' }, start));
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

/** @param {BackfillRequest} request @param {Of} of */
const isAsked = ({ source, streams = [] }, of) =>
  (source === undefined || source === of.source) && streams.includes(of.stream);

/** @param {BackfillStart} request @param {HTMLElement} answer */
async function startIt(request, answer) {
  await announce('The backfill has been queued.', async () => {
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
