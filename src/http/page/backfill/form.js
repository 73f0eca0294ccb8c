/** @import { BackfillPrice, BackfillRequest, SourcePrice, StreamPrice } from '../../api-types.ts' */
import { post } from '../app/session.js';
import { h } from '../dom/h.js';
import { announce } from '../parts/actions.js';
import { dateField, field } from '../parts/elements.js';
import { table } from '../parts/tables.js';
import { counted, duration, figure, percent } from '../words/figures.js';
import { DAY_MS, dayOf } from '../words/time.js';

const STREAMS = ['clicks', 'leads', 'sales'];

/**
 * First the price, then the start: whoever changes a field is asked for the price again. It looks after itself, so that news do not
 * take away what somebody is typing.
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
export const priceOf = ({ streams, sources }) => [
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
