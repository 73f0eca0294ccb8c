/** @import { TopLink, TopLinks } from '../../api-types.ts' */
/** @import { Column } from '../parts/tables.js' */
/** @import { View } from '../app/screen.js' */
import { here } from '../app/screen.js';
import { get } from '../app/session.js';
import { html } from '../parts/dom.js';
import { choice, empty, opening } from '../parts/elements.js';
import { table } from '../parts/tables.js';
import { STREAMS as BY, daysAgo, figure, titled } from '../parts/words.js';

const DAYS = [7, 30, 90];
const LIMIT = 20;

/** @param {string | undefined} asked */
const byOf = (asked) => BY.find((name) => name === asked) ?? 'clicks';

/** @param {string | undefined} asked */
const daysOf = (asked) => DAYS.find((days) => String(days) === asked) ?? 30;

/** Top links, from the synced tables. @type {View} */
export const links = {
  title: () => 'Links',
  updates: ['coverage'],
  load({ query }, signal) {
    const from = daysAgo(daysOf(query.days));
    return get('/api/links/top', { by: byOf(query.by), from, limit: LIMIT, q: query.q }, signal);
  },
  draw(/** @type {TopLinks} */ found, address) {
    const [by, days] = [byOf(address.query.by), daysOf(address.query.days)];
    const { q } = address.query;
    return [
      opening(
        q ? `Links named “${q}”` : 'Top links',
        found.sink && `Of the last ${days} days, from the tables of ${found.sink}.`,
        q && html`<a href=${here(address, { q: null })}>‹ Top links</a>`,
      ),
      html`<div class="row">
        ${choice('Order by', address, 'by', by, { clicks: 'clicks', leads: 'leads', sales: 'sales' })}
        ${choice('How far back', address, 'days', String(days), { 7: '7 days', 30: '30 days', 90: '90 days' })}
      </div>`,
      html`<section class="panel" aria-label="Top links">${list(found, by, q)}</section>`,
    ];
  },
};

/** @param {TopLinks} found @param {typeof BY[number]} by @param {string | undefined} q */
function list({ sink, links: rows }, by, q) {
  if (sink === null) return empty('This view needs a Postgres sink, and none can be queried.');
  const most = Math.max(1, ...rows.map((link) => link[by]));
  return table(
    'Top links',
    rows,
    [
      ['Link', 'lead wide', (link) => ranked(link, link[by] / most)],
      ['Source', 'fit', ({ source }) => source],
      ...BY.map((name) => /** @type {Column<TopLink>} */ ([titled(name), 'right fit', (link) => figure(link[name])])),
      ['Revenue', 'right fit', ({ revenue }) => revenue.map(money).join(' · ')],
    ],
    {
      keyOf: ({ source, linkId }) => `${source}/${linkId}`,
      kind: 'dense',
      nothing: q ? 'No link with this name or id.' : 'No events in this period.',
    },
  );
}

/** @param {TopLink} link @param {number} share */
const ranked = ({ linkId, shortLink }, share) =>
  html`<span class="stack ranked">
    ${shortLink === null ? html`<code>${linkId}</code>` : html`<b title=${linkId}>${shortLink}</b>`}
    <span class="bar" aria-hidden="true" vars=${{ '--share': share }}></span>
  </span>`;

/** Intl throws on an invalid currency code. @param {TopLink['revenue'][number]} sum */
const money = ({ currency, amount }) =>
  /^[a-z]{3}$/.test(currency ?? '')
    ? new Intl.NumberFormat('en', { style: 'currency', currency: currency ?? '', currencyDisplay: 'code' }).format(
        amount,
      )
    : `${new Intl.NumberFormat('en').format(amount)} ${currency ?? ''}`.trim();
