import type { Dialect } from './view.ts';

/** What days are counted by. */
export interface Dimension {
  name: 'link' | 'partner' | 'campaign' | 'country';
  key: string;
  doc: string;
  /** The column of the event that says it, or leads to the link that does. */
  event: 'link_id' | 'click_country';
  /** The column of the link, where the link says it: as last seen, so that a link is never in two places. */
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

export const IS_COMPLETE =
  'Whether the whole day is complete in every stream of the source that is synced. Build reports on these days.';
export const LINK = { domain: 'Domain of the link, as last seen.', key: 'Slug of the link, as last seen.' };

/** Joins the link of a row, as last seen. */
export const linksOf = ({ table }: Dialect, of: string, id: string): string =>
  `left join ${table('links')} l on l._source = ${of}.source and l.link_id = ${of}.${id}`;
