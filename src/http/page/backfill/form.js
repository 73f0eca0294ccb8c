/** @import { BackfillPrice, BackfillRequest } from '../../api-types.ts' */
import { post } from '../app/ask.js';
import { h } from '../dom/h.js';
import { announce } from '../parts/announce.js';
import { dateField, field } from '../parts/field.js';
import { counted } from '../words/figures.js';
import { DAY_MS, dayOf } from '../words/time.js';
import { priceOf } from './price.js';

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
