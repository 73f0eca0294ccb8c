import type { Dialect } from './view.ts';

export interface Dimension {
  name: 'link' | 'partner' | 'campaign' | 'country';
  key: string;
  doc: string;
  /** The event's column with the value, or with the id of the link that has it. */
  event: 'link_id' | 'click_country';
  /** The link's column with the value, if the link has it: as last seen, so that a link never has two values. */
  link?: string;
}

export const DIMENSIONS: readonly Dimension[] = [
  { name: 'link', key: 'link_id', event: 'link_id', doc: 'Link; see links.' },
  {
    name: 'partner',
    key: 'partner_id',
    event: 'link_id',
    link: 'link_partner_id',
    doc: 'Partner that the link belongs to, as last seen. Null: none.',
  },
  {
    name: 'campaign',
    key: 'utm_campaign',
    event: 'link_id',
    link: 'link_utm_campaign',
    doc: 'UTM campaign of the link, as last seen. Null: none.',
  },
  {
    name: 'country',
    key: 'country',
    event: 'click_country',
    doc: 'Country of the click, two-letter ISO 3166-1 code. Null: not known.',
  },
];

const LINK = { domain: 'Domain of the link, as last seen.', key: 'Slug of the link, as last seen.' };

const linksOf = ({ table }: Dialect, of: string, id: string): string =>
  `left join ${table('links')} l on l._source = ${of}.source and l.link_id = ${of}.${id}`;

/** The dimension's value for a row `p`, and the join that it needs. */
export const placeOf = (dialect: Dialect, { link }: Dimension, id: string): { place: string; join: string } =>
  link === undefined
    ? { place: `p.${id}`, join: '' }
    : { place: `nullif(l.${link}, '')`, join: linksOf(dialect, 'p', id) };

/** What a view shows per day of a dimension: columns with their descriptions, and the expression of a column if it is not its name. */
export interface Shown {
  date: string;
  columns: Readonly<Record<string, string>>;
  from?: Readonly<Record<string, string>>;
  /** SQL with the columns, and `source`, `date` and the key of the dimension. */
  days: string;
}

/** A view with a row per source, day and value of the dimension; with the columns of a link for links, and whether the day is complete. */
export function viewBy(dialect: Dialect, { name, key, doc }: Dimension, { date, columns, from = {}, days }: Shown) {
  const byLink = name === 'link';
  const { join, is } = dialect.isComplete('d.source', 'd.date');
  const shown = Object.keys(columns).map((column) => (from[column] ? `${from[column]} as ${column}` : `d.${column}`));
  return {
    columns: {
      source: 'Source, as named in the config.',
      date,
      [key]: doc,
      ...(byLink && LINK),
      ...columns,
      is_complete:
        'Whether the whole day is complete in every stream of the source that is synced. Build reports on these days.',
    },
    query: `
  select d.source, d.date, d.${key}, ${byLink ? 'l.link_domain as domain, l.link_key as key, ' : ''}${shown.join(', ')}, ${is} as is_complete
  from (${days}
  ) d ${byLink ? linksOf(dialect, 'd', key) : ''}
  ${join}`,
  };
}
