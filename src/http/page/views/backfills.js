/** @import { Backfill, BackfillRequest, Backfills } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
/** @import { Of } from '../parts/price.js' */
import { latestOverview } from '../app/live.js';
import { href } from '../app/screen.js';
import { get, post } from '../app/session.js';
import { actionButton, backfillButton } from '../parts/actions.js';
import { html } from '../parts/dom.js';
import {
  aside,
  badge,
  dateFields,
  opening,
  orAll,
  panel,
  progressBar,
  STREAMS,
  selectField,
} from '../parts/elements.js';
import { showPrices } from '../parts/price.js';
import { nameOf, streamLink, table } from '../parts/tables.js';
import { counted, dayOf, duration, figure, fromNow, percent, range } from '../parts/words.js';

/** Backfills: the form, the running ones and the finished ones. @type {View} */
export const backfills = {
  title: () => 'Backfills',
  news: ['backfills'],
  async load(_address, signal) {
    const [found, overview] = await Promise.all([get('/api/backfills', {}, signal), latestOverview(signal)]);
    return { found, streams: overview().streams.filter(({ stream, configured }) => configured && stream !== 'links') };
  },
  draw: (/** @type {{ found: Backfills, streams: Of[] }} */ { found, streams }, { query }) => [
    opening('Backfills', 'Reads a range of dates. Certified ranges are skipped, and syncs go first.'),
    backfillForm(streams, query),
    panel('Under way and done', list(found.backfills)),
  ],
};

/** @param {Backfill[]} rows */
const list = (rows) =>
  table(
    'Backfills',
    rows,
    [
      ['Stream', 'lead fit', streamLink],
      ['From, to (UTC)', 'line', ({ from, to }) => range(from, to)],
      ['Progress', 'wide', progress],
      ['Rows', 'right fit', rowsOf],
      ['State', 'fit', state],
      ['Started', 'fit', ({ createdAt }) => fromNow(createdAt)],
      ['', 'fit', actions],
    ],
    {
      nothing: [
        'No backfill was given to the workers yet. Those of the command line are among the ',
        html`<a href=${href(['runs'], { kind: 'backfill' })}>runs</a>`,
        '.',
      ],
    },
  );

/** Of how many, while it reads and somebody asked. @param {Backfill} backfill */
const rowsOf = ({ rows, pricedRows, finishedAt }) =>
  pricedRows === null || finishedAt ? figure(rows) : `${figure(rows)} of about ${figure(Math.max(rows, pricedRows))}`;

/** @param {Backfill} backfill */
function progress(backfill) {
  const { progress: share, windows, rowsPerSecond, etaSeconds, message } = backfill;
  const all = windows.queued + windows.running + windows.done + windows.failed;
  // Read again, all of it may be certified before it has begun.
  const isTold = !backfill.force || backfill.state === 'done';
  return html`<span class="stack">
    <span class="row">
      <b>${percent(share)}</b>
      ${aside(`${figure(windows.done)} of ${counted(all, 'window')}`)}
      ${isTold && aside(`${percent(backfill.certified)} of the range certified`)}
      ${rowsPerSecond !== null && aside(`${counted(rowsPerSecond, 'row')}/s`)}
      ${etaSeconds !== null && aside(`about ${duration(etaSeconds)} left`)}
      ${windows.failed > 0 && badge(`${figure(windows.failed)} failed`)}
    </span>
    ${progressBar(`Backfill of ${nameOf(backfill)}`, share)}
    ${message && html`<span class="small">${message}</span>`}
  </span>`;
}

/** @param {Backfill} backfill */
const state = ({ state, running }) => {
  if (state === 'failed') return badge('failed');
  return state === 'queued' ? (running ? 'running' : 'waiting') : state;
};

/** @param {Backfill} backfill */
const actions = ({ actions, ...backfill }) =>
  actions.length > 0 && html`<span class="row">${actions.map((action) => backfillButton(action, backfill))}</span>`;

/**
 * First the price, then the start; a changed field needs a new price. The form is not redrawn by live updates, so that they do not
 * discard what somebody is typing.
 * @param {readonly Of[]} all
 * @param {Record<string, string>} query What is filled in already.
 */
function backfillForm(all, { source = '', stream, from, to = dayOf(Date.now()) }) {
  const sources = [...new Set(all.map((of) => of.source))];
  const answer = html`<div aria-live="polite"></div>`;
  const ask = html`<button class="main">Show the estimate</button>`;
  let stop = new AbortController();
  const onchange = () => {
    stop.abort();
    answer.replaceChildren();
  };
  const form = html`<form class="panel" data-keep data-key="form/${source}/${stream ?? ''}/${from ?? ''}/${to}"
    aria-label="Start a backfill" onchange=${onchange}>
    <h2>Start a backfill</h2>
    <div class="fields">
      ${selectField('source', 'Source', orAll(sources), { chosen: source })}
      <fieldset class="field">
        <legend>Streams</legend>
        <div>${STREAMS.map((name) => check('streams', name, !stream || stream === name))}</div>
      </fieldset>
      ${dateFields({ from, to })}
      ${check('force', 'Read certified ranges again', false)}
      ${ask}
    </div>
    ${answer}
  </form>`;
  form.onsubmit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    ask.disabled = true;
    stop = new AbortController();
    try {
      const request = requestOf(form);
      const chosen = all.filter((of) => isAsked(request, of));
      if (chosen.length === 0) throw new Error(`${request.source} has none of these streams.`);
      const place = html`<div class="price"></div>`;
      answer.replaceChildren(place);
      const prices = await showPrices(place, request, chosen, stop);
      if (!prices) return;
      const rows = prices.flatMap(({ streams }) => streams).map((one) => [nameOf(one), one.rows]);
      const start = actionButton({
        name: 'Start the backfill',
        kind: 'main',
        done: 'The backfill has been queued.',
        act: async () => {
          const { backfills } = await post('/api/backfills', { ...request, pricedRows: Object.fromEntries(rows) });
          const text = `${counted(backfills.length, 'backfill')} started: see below.`;
          answer.replaceChildren(html`<p tabindex="-1">${text}</p>`);
          answer.firstElementChild.focus();
        },
      });
      place.append(html`<div class="row">${start}</div>`);
      start.focus();
    } catch (error) {
      // Recovery: the form stays as it is, with the reason below it.
      answer.replaceChildren(html`<p class="trouble">${/** @type {Error} */ (error).message}</p>`);
    } finally {
      ask.disabled = false;
    }
  };
  return form;
}

/** @param {BackfillRequest} request @param {Of} of */
const isAsked = ({ source, streams = [] }, of) =>
  (source === undefined || source === of.source) && streams.includes(of.stream);

/** @param {HTMLFormElement} form @returns {BackfillRequest} */
function requestOf(form) {
  const fields = new FormData(form);
  const source = String(fields.get('source'));
  const streams = /** @type {Of['stream'][]} */ (fields.getAll('streams'));
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
  html`<label class="check"><input type="checkbox" name=${name} value=${text} checked=${checked}>${text}</label>`;
