/** @import { BackfillPrice, SourcePrice, StreamPrice } from '../../api-types.ts' */
import { h } from '../dom/h.js';
import { table } from '../parts/table.js';
import { counted, duration, figure, percent } from '../words/figures.js';

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
