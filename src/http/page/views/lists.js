/** @import { AuditTrail, Quarantine, RunRow, SchemaChanges } from '../../api-types.ts' */
/** @import { Address, View } from '../app/screen.js' */
import { sourceNames } from '../app/live.js';
import { here, href } from '../app/screen.js';
import { get } from '../app/session.js';
import { recordActions } from '../parts/actions.js';
import { html } from '../parts/dom.js';
import { opening, orAll, selectField } from '../parts/elements.js';
import { nameOf, runLink, runsTable, table } from '../parts/tables.js';
import { counted, STREAMS, time, zoneName } from '../parts/words.js';

/** Filters by their name in the address and in the API. The values of `source` come from the server. */
const FILTERS = {
  source: { label: 'Source', values: /** @type {readonly string[]} */ ([]) },
  stream: { label: 'Stream', values: STREAMS },
  state: { label: 'Outcome', values: ['running', 'done', 'incomplete', 'refused', 'interrupted', 'failed'] },
  kind: { label: 'Kind', values: ['sync', 're-sweep', 'backfill', 'repair', 'retry'] },
};

/**
 * A list from the API, with filters and links to older entries. The filters are part of the address.
 * @param {{
 *   title: string, path: string, updates: View['updates'], filters?: (keyof typeof FILTERS)[], noun?: string,
 *   heading?: string, about(found: any): string, list(found: any): HTMLElement,
 * }} options
 * @returns {View}
 */
const listView = ({ title, path, updates, filters = [], noun = '', heading = title, about, list }) => ({
  title: () => title,
  updates,
  async load({ query }, signal) {
    const asked = Object.fromEntries([...filters, 'before'].map((name) => [name, query[name]]));
    const [found, sources] = await Promise.all([get(path, asked, signal), filters.includes('source') && sourceNames()]);
    return { found, sources };
  },
  draw({ found, sources }, address) {
    const { before } = address.query;
    return [
      opening(heading, about(found)),
      filters.length > 0 &&
        html`<div class="fields" role="group" aria-label="Filters">
          ${filters.map((name) => filterField(name, name === 'source' ? sources : FILTERS[name].values, address))}
        </div>`,
      html`<section class="panel" aria-label=${heading}>
        ${list(found)}
        ${
          (found.next || before) &&
          html`<nav class="row" aria-label="Pages of ${noun}">
          ${before && html`<a class="button" href=${here(address, { before: null })}>Newest ${noun}</a>`}
          ${found.next && html`<a class="button" href=${here(address, { before: found.next })}>Older ${noun}</a>`}
        </nav>`
        }
      </section>`,
    ];
  },
});

/** @param {keyof typeof FILTERS} name @param {readonly string[]} values @param {Address} address */
const filterField = (name, values, address) =>
  selectField(`filter-${name}`, FILTERS[name].label, orAll(values), {
    chosen: address.query[name],
    onchange({ target }) {
      location.hash = here(address, { [name]: target.value, before: null });
    },
  });

export const runs = listView({
  title: 'Runs',
  path: '/api/runs',
  updates: ['runs'],
  filters: ['source', 'stream', 'state', 'kind'],
  noun: 'runs',
  about: () => `Newest first. Times are ${zoneName()}.`,
  list: (/** @type {{ runs: RunRow[] }} */ found) => runsTable(found.runs),
});

/** Records that could not be used. */
export const quarantine = listView({
  title: 'Quarantine',
  path: '/api/quarantine',
  updates: ['quarantine'],
  filters: ['source', 'stream'],
  noun: 'records',
  about: ({ total }) =>
    total === 0
      ? 'Records that could not be used are kept here, each with its reason.'
      : `${counted(total, 'record')} that could not be used, each kept with its reason. The other records of its page were stored.`,
  list: (/** @type {Quarantine} */ { records }) =>
    table(
      'Records set aside',
      records,
      [
        ['Record', 'fit', ({ id }) => html`<a href=${href(['quarantine', id])}>Record ${id}</a>`],
        ['Stream', 'fit', nameOf],
        ['Last seen', 'fit', ({ lastAt }) => time(lastAt)],
        ['Reason', 'wide', ({ reason }) => reason],
        ['', 'fit', (record) => recordActions(record)],
      ],
      { nothing: 'No records have been set aside.' },
    ),
});

/** Columns that were added for new fields of the service. */
export const schema = listView({
  title: 'Schema',
  heading: 'Schema changes',
  path: '/api/schema-changes',
  updates: ['schema'],
  filters: ['stream'],
  about: () => 'New fields of the service become columns automatically. Nothing is ever dropped.',
  list: (/** @type {SchemaChanges} */ { changes }) =>
    table(
      'Schema changes',
      changes,
      [
        ['Seen', 'fit', ({ at }) => time(at)],
        ['Stream', 'fit', nameOf],
        ['Column', '', ({ column }) => html`<code>${column}</code>`],
        ['From field', '', ({ path }) => html`<code>${path}</code>`],
        ['Change', 'wide', ({ kind, previousKind: was }) => (was === null ? `new, ${kind}` : `${was} became ${kind}`)],
        ['Run', 'fit', ({ runId }) => runLink(runId, 'Run')],
      ],
      {
        keyOf: ({ source, stream, column, kind }) => [source, stream, column, kind].join('/'),
        nothing: 'No new fields so far.',
      },
    ),
});

export const audit = listView({
  title: 'Audit',
  path: '/api/audit',
  updates: [],
  noun: 'entries',
  about: () => `Every change made by a person, newest first. Times are ${zoneName()}.`,
  list: (/** @type {AuditTrail} */ { entries }) =>
    table(
      'Audit',
      entries,
      [
        ['When', 'fit line', ({ at }) => time(at)],
        ['Who', 'fit', ({ actor }) => actor],
        ['What', 'fit', ({ action }) => html`<code>${action}</code>`],
        ['Of what', '', ({ target }) => target],
        ['Details', 'wide', ({ detail }) => details(detail)],
        ['From', 'fit', ({ from }) => from],
      ],
      { nothing: 'No changes have been recorded yet.' },
    ),
});

/** @param {Record<string, unknown>} detail */
const details = (detail) =>
  Object.entries(detail)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
