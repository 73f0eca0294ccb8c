/** @import { Backfill, BackfillAction, Backfills } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
import { href } from '../app/address.js';
import { sourceNames } from '../app/overview.js';
import { get, post } from '../app/session.js';
import { backfillForm } from '../backfill/form.js';
import { h } from '../dom/h.js';
import { announce, confirmed } from '../parts/actions.js';
import { badge, opening, progressBar } from '../parts/elements.js';
import { table } from '../parts/tables.js';
import { counted, duration, figure, percent } from '../words/figures.js';
import { fromNow, range } from '../words/time.js';

/** Reading a range of dates, on purpose. @type {View} */
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
            kind: 'fit line',
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
