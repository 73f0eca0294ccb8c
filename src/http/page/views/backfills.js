/** @import { Backfill, BackfillPrice, BackfillRequest, Backfills, SourcePrice, StreamPrice } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
import { latestOverview } from '../app/live.js';
import { href } from '../app/screen.js';
import { get, post } from '../app/session.js';
import { actionButton, backfillButton } from '../parts/actions.js';
import { html } from '../parts/dom.js';
import { aside, badge, dateFields, opening, orAll, panel, progressBar, selectField } from '../parts/elements.js';
import { doubtList, nameOf, streamLink, table } from '../parts/tables.js';
import { counted, dayOf, duration, figure, fromNow, percent, range, STREAMS } from '../parts/words.js';

/** @typedef {{ source: string, stream: StreamPrice['stream'] }} Of */

/** Backfills: the form, the running ones and the finished ones. @type {View} */
export const backfills = {
  title: () => 'Backfills',
  updates: ['backfills'],
  async load(_address, signal) {
    const [found, overview] = await Promise.all([get('/api/backfills', {}, signal), latestOverview(signal)]);
    return { found, streams: overview().streams.filter(({ stream, configured }) => configured && stream !== 'links') };
  },
  draw: (/** @type {{ found: Backfills, streams: Of[] }} */ { found, streams }, { query }) => [
    opening('Backfills', 'Reads a range of dates. Certified ranges are skipped, and syncs go first.'),
    backfillForm(streams, query),
    panel('Running and finished', list(found.backfills)),
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
        'No backfill has been queued yet. Backfills of the command line are listed under ',
        html`<a href=${href(['runs'], { kind: 'backfill' })}>runs</a>`,
        '.',
      ],
    },
  );

/** Shows the estimated total while the backfill runs, if it has an estimate. @param {Backfill} backfill */
const rowsOf = ({ rows, pricedRows, finishedAt }) =>
  pricedRows === null || finishedAt ? figure(rows) : `${figure(rows)} of about ${figure(Math.max(rows, pricedRows))}`;

/** @param {Backfill} backfill */
function progress(backfill) {
  const { progress: share, windows, rowsPerSecond, etaSeconds, message } = backfill;
  const all = windows.queued + windows.running + windows.done + windows.failed;
  // With `force`, the whole range may have been certified before the backfill begins.
  const showsCertified = !backfill.force || backfill.state === 'done';
  return html`<span class="stack">
    <span class="row">
      <b>${percent(share)}</b>
      ${aside(`${figure(windows.done)} of ${counted(all, 'window')}`)}
      ${showsCertified && aside(`${percent(backfill.certified)} of the range certified`)}
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
 * First shows the price, then a start button; a changed field needs a new price. Live updates do not redraw the form, so that they do
 * not discard what somebody is typing.
 * @param {readonly Of[]} all
 * @param {Record<string, string>} query The initial values.
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

/** A stream with its price or the error, if its request has ended. @typedef {Of & { price?: BackfillPrice, fault?: string }} Asked */

/** A browser opens six connections to a server; live updates and the rest of the page need theirs. */
const AT_ONCE = 3;

/**
 * Requests the price of each stream separately and shows each when it arrives, so that one slow source does not delay the others.
 * @param {HTMLElement} place
 * @param {BackfillRequest} request
 * @param {readonly Of[]} streams
 * @param {AbortController} stop
 * @returns {Promise<BackfillPrice[] | undefined>} Undefined if not every stream has a price.
 */
async function showPrices(place, request, streams, stop) {
  /** @type {Asked[]} */
  const asked = streams.map((of) => ({ ...of }));
  const waiting = [...asked];
  const draw = () => place.replaceChildren(...drawing(asked, stop));
  const next = async () => {
    for (let one = waiting.shift(); one && !stop.signal.aborted; one = waiting.shift()) {
      const body = { ...request, source: one.source, streams: [one.stream] };
      try {
        one.price = await post('/api/backfills/price', body, stop.signal);
      } catch (error) {
        // Recovery: the reason is shown instead of the price; the other streams are still requested.
        if (!stop.signal.aborted) one.fault = /** @type {Error} */ (error).message;
      }
      // The user left the view, so the rest is not needed.
      if (!place.isConnected) stop.abort();
      draw();
    }
  };
  draw();
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  const prices = asked.flatMap(({ price }) => price ?? []);
  return prices.length === asked.length ? prices : undefined;
}

/** @param {readonly Asked[]} asked @param {AbortController} stop @returns {Node[]} */
function drawing(asked, stop) {
  const prices = asked.flatMap(({ price }) => price ?? []);
  const faults = [...new Set(asked.flatMap(({ fault }) => fault ?? []))];
  const ended = asked.filter(({ price, fault }) => price || fault).length;
  const isOver = stop.signal.aborted || ended === asked.length;
  const share = `${ended} of ${counted(asked.length, 'stream')}`;
  return [
    !isOver &&
      html`<div class="row">
        <p class="muted">Estimating: ${share}</p>
        <button type="button" class="quiet" onclick=${() => stop.abort()}>Stop estimating</button>
      </div>`,
    stop.signal.aborted && html`<p>Stopped: ${share} estimated.</p>`,
    ...faults.map((fault) => html`<p class="trouble">${fault}</p>`),
    ...priceOf(asked, prices),
  ].filter((node) => node instanceof Node);
}

/** The cost: requests and rows by stream, time by source. @param {readonly Asked[]} asked @param {readonly BackfillPrice[]} prices */
const priceOf = (asked, prices) => [
  doubtList(prices.flatMap(({ warnings }) => warnings)),
  table(
    'What it will cost',
    asked,
    [
      ['Stream', 'lead', nameOf],
      ['Proven already', 'right', priced(({ certified }) => percent(certified))],
      ['Rows to read', 'right', priced((price) => about(price, price.rows))],
      ['Requests', 'right', priced((price) => about(price, price.requests))],
    ],
    { keyOf: nameOf, kind: 'dense' },
  ),
  html`<ul>
    ${[...new Set(prices.flatMap(({ sources }) => Object.keys(sources)))].map(
      (source) =>
        html`<li><b>${source}</b> ${times(together(prices.flatMap(({ sources }) => sources[source] ?? [])))}</li>`,
    )}
  </ul>`,
];

/** @param {(price: StreamPrice) => string} text */
const priced =
  (text) =>
  (/** @type {Asked} */ { price }) =>
    price?.streams[0] ? text(price.streams[0]) : '–';

/** @param {StreamPrice} price @param {number} n */
const about = ({ isCounted }, n) => `${isCounted ? '' : 'about '}${figure(n)}`;

/** Streams of a source share its budget, so their times add up. @param {readonly SourcePrice[]} prices @returns {SourcePrice} */
const together = (prices) =>
  prices.reduce((all, { current, others, pollShare }) => ({
    current: { ...current, seconds: all.current.seconds + current.seconds },
    others: others.map((plan, i) => ({ ...plan, seconds: plan.seconds + (all.others[i]?.seconds ?? 0) })),
    pollShare: Math.min(1, all.pollShare + pollShare),
  }));

/** @param {SourcePrice} price */
function times({ current, others, pollShare }) {
  const elsewhere = others.map(({ plan, seconds }) => `${plan} ${duration(seconds)}`).join(', ');
  return [
    `takes ${duration(current.seconds)} at ${counted(current.perSecond, 'request')} a second`,
    ...(elsewhere ? [`by plan: ${elsewhere}`] : []),
    ...(pollShare > 0 ? [`syncs go first and use ${percent(pollShare)} of the budget`] : []),
  ].join(' · ');
}
