/** @import { BackfillPrice, BackfillRequest, SourcePrice, StreamPrice } from '../../api-types.ts' */
import { post } from '../app/session.js';
import { html } from './dom.js';
import { doubtList, nameOf, table } from './tables.js';
import { counted, duration, figure, percent } from './words.js';

/** @typedef {{ source: string, stream: StreamPrice['stream'] }} Of */
/** What is known of a stream's price: nothing yet, the price, or why there is none. @typedef {Of & { price?: BackfillPrice, fault?: string }} Asked */

/** A browser opens six connections to a server; live updates and the rest of the page need theirs. */
const AT_ONCE = 3;

/**
 * Asks for the price of each stream by itself and shows each as it comes, so that a slow service is no reason to wait for all of them.
 * @param {HTMLElement} place
 * @param {BackfillRequest} request
 * @param {readonly Of[]} streams
 * @param {AbortController} stop
 * @returns {Promise<BackfillPrice[] | undefined>} Undefined if not every stream has a price.
 */
export async function showPrices(place, request, streams, stop) {
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
        // Recovery: the reason stands where the price would; the other streams are asked for all the same.
        if (!stop.signal.aborted) one.fault = /** @type {Error} */ (error).message;
      }
      // The view was left, so nobody waits for the rest.
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
        <p class="muted">Asking the service how much there is: ${share}</p>
        <button type="button" class="quiet" onclick=${() => stop.abort()}>Stop asking</button>
      </div>`,
    stop.signal.aborted && html`<p>Stopped: ${share} estimated.</p>`,
    ...faults.map((fault) => html`<p class="trouble">${fault}</p>`),
    ...priceOf(asked, prices),
  ].filter((node) => node instanceof Node);
}

/** What it will cost: requests and rows for each stream, time for each source. @param {readonly Asked[]} asked @param {readonly BackfillPrice[]} prices */
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
