/** @import { RunDetail } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
import { href } from '../app/address.js';
import { get } from '../app/ask.js';
import { h } from '../dom/h.js';
import { facts } from '../parts/facts.js';
import { opening } from '../parts/opening.js';
import { outcome } from '../parts/runs-table.js';
import { table } from '../parts/table.js';
import { duration, figure, titled } from '../words/figures.js';
import { time } from '../words/time.js';

/** One run, with everything that was odd about it. @type {View} */
export const run = {
  title: ({ parts }) => `Run ${parts[0]}`,
  news: ['runs'],
  load: ({ parts }, signal) => get(`/api/runs/${encodeURIComponent(parts[0] ?? '')}`, {}, signal),
  draw(/** @type {RunDetail} */ one) {
    const { id, kind, source, stream, startedAt, finishedAt, durationSeconds, contradictions, misfits, schemaChanges } =
      one;
    return [
      opening(`${titled(kind)} of ${source}/${stream}`, `Run ${id}`, h('a', { href: '#/runs' }, '‹ Runs')),
      h(
        'div',
        { class: 'panel' },
        facts([
          ['Outcome', outcome(one)],
          ['Stream', h('a', { href: href(['stream', source, stream]) }, `${source}/${stream}`)],
          ['Started', time(startedAt)],
          ['Finished', finishedAt && time(finishedAt)],
          ['Took', durationSeconds !== null && duration(durationSeconds)],
          ['Rows read', figure(one.read)],
          ['New', figure(one.new)],
          ['Changed', figure(one.changed)],
          ['Unchanged', figure(one.unchanged)],
          ['Requests', figure(one.requests)],
        ]),
      ),
      ...counts('Fields that contradicted their alias', contradictions),
      ...counts('Values that did not fit their column', misfits),
      ...(schemaChanges.length === 0
        ? []
        : [
            h(
              'section',
              { class: 'panel', 'data-key': 'schema', 'aria-label': 'Schema changes' },
              h('h2', {}, 'Schema changes'),
              h(
                'ul',
                { class: 'plain' },
                schemaChanges.map((change) => h('li', {}, change)),
              ),
            ),
          ]),
    ];
  },
};

/** Nothing where there is nothing. @param {string} title @param {Record<string, number>} byColumn */
function counts(title, byColumn) {
  const rows = Object.entries(byColumn);
  if (rows.length === 0) return [];
  return [
    h(
      'section',
      { class: 'panel', 'data-key': title, 'aria-label': title },
      h('h2', {}, title),
      table({
        label: title,
        rows,
        keyOf: ([column]) => column,
        columns: [
          { name: 'Column', cell: ([column]) => h('code', {}, column) },
          { name: 'Times', kind: 'right fit', cell: ([, n]) => figure(n) },
        ],
      }),
    ),
  ];
}
