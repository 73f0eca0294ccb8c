/** @import { Runs } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
import { sourceNames } from '../app/overview.js';
import { get } from '../app/session.js';
import { h } from '../parts/dom.js';
import { opening } from '../parts/elements.js';
import { filters, older, runsTable } from '../parts/tables.js';

const LIMIT = 50;

/** What was done when, and what it cost. @type {View} */
export const runs = {
  title: () => 'Runs',
  news: ['runs'],
  async load({ query: { source, stream, state, kind, before } }, signal) {
    const [found, sources] = await Promise.all([
      get('/api/runs', { source, stream, state, kind, before, limit: LIMIT }, signal),
      sourceNames(),
    ]);
    return { found, sources };
  },
  draw(/** @type {{ found: Runs, sources: string[] }} */ { found, sources }, address) {
    return [
      opening('Runs', 'The newest first. Times are UTC.'),
      filters(address, [
        { name: 'source', label: 'Source', values: sources },
        { name: 'stream', label: 'Stream', values: ['clicks', 'leads', 'sales'] },
        {
          name: 'state',
          label: 'Outcome',
          values: ['running', 'done', 'incomplete', 'refused', 'interrupted', 'failed'],
        },
        { name: 'kind', label: 'Kind', values: ['sync', 'backfill', 'retry'] },
      ]),
      h('section', { class: 'panel', 'aria-label': 'Runs' }, runsTable(found.runs), older(address, found.next, 'runs')),
    ];
  },
};
