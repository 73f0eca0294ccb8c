/** @import { TopLink, TopLinks } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
import { here } from '../app/screen.js';
import { get } from '../app/session.js';
import { h } from '../parts/dom.js';
import { choice, opening } from '../parts/elements.js';
import { table } from '../parts/tables.js';
import { DAY_MS, dayOf, figure, titled } from '../parts/words.js';

const BY = /** @type {const} */ (['clicks', 'leads', 'sales']);
const DAYS = [7, 30, 90];
const LIMIT = 20;

/** @param {string | undefined} asked */
const byOf = (asked) => BY.find((name) => name === asked) ?? 'clicks';

/** @param {string | undefined} asked */
const daysOf = (asked) => DAYS.find((days) => String(days) === asked) ?? 30;

/** Top links, from the synced tables. @type {View} */
export const links = {
  title: () => 'Links',
  news: ['coverage'],
  load({ query }, signal) {
    const from = dayOf(Date.now() - daysOf(query.days) * DAY_MS);
    return get('/api/links/top', { by: byOf(query.by), from, limit: LIMIT, q: query.q }, signal);
  },
  draw(/** @type {TopLinks} */ found, address) {
    const [by, days] = [byOf(address.query.by), daysOf(address.query.days)];
    const { q } = address.query;
    return [
      opening(
        q ? `Links named “${q}”` : 'Top links',
        found.sink && `Of the last ${days} days, from the tables of ${found.sink}.`,
        q && h('a', { href: here(address, { q: null }) }, '‹ Top links'),
      ),
      h(
        'div',
        { class: 'row' },
        choice(
          'Order by',
          BY.map((name) => ({ name, to: here(address, { by: name }), isChosen: name === by })),
        ),
        choice(
          'How far back',
          DAYS.map((n) => ({ name: `${n} days`, to: here(address, { days: n }), isChosen: n === days })),
        ),
      ),
      h('section', { class: 'panel', 'aria-label': 'Top links' }, list(found, by, q)),
    ];
  },
};

/** @param {TopLinks} found @param {typeof BY[number]} by @param {string | undefined} q */
function list({ sink, links: rows }, by, q) {
  if (sink === null) return h('p', { class: 'empty' }, 'This view needs a Postgres sink, and none can be queried.');
  if (rows.length === 0)
    return h('p', { class: 'empty' }, q ? 'No link of this name or id.' : 'No events in this time.');
  const most = Math.max(1, ...rows.map((link) => link[by]));
  return table({
    label: 'Top links',
    isDense: true,
    rows,
    keyOf: ({ source, linkId }) => `${source}/${linkId}`,
    columns: [
      { name: 'Link', kind: 'lead wide', cell: (link) => nameOf(link, link[by] / most) },
      { name: 'Source', kind: 'fit', cell: ({ source }) => source },
      ...BY.map((name) => ({
        name: titled(name),
        kind: 'right fit',
        cell: (/** @type {TopLink} */ link) => figure(link[name]),
      })),
      { name: 'Revenue', kind: 'right fit', cell: ({ revenue }) => revenue.map(money).join(' · ') },
    ],
  });
}

/** @param {TopLink} link @param {number} share */
const nameOf = ({ linkId, shortLink }, share) =>
  h(
    'span',
    { class: 'ranked' },
    shortLink === null ? h('code', {}, linkId) : h('b', { title: linkId }, shortLink),
    h('span', { class: 'bar', 'aria-hidden': 'true', vars: { '--share': String(share) } }),
  );

/** Intl throws on an invalid currency code. @param {TopLink['revenue'][number]} sum */
const money = ({ currency, amount }) =>
  /^[a-z]{3}$/.test(currency ?? '')
    ? new Intl.NumberFormat('en', { style: 'currency', currency: currency ?? '', currencyDisplay: 'code' }).format(
        amount,
      )
    : `${new Intl.NumberFormat('en').format(amount)} ${currency ?? ''}`.trim();
