import { createHash } from 'node:crypto';
import { quoteIdent, quoteLiteral } from '../../cursor/sql.ts';

/** Views for BI, made anew when their text changes. */
export interface View {
  name: string;
  doc: string;
  columns: Readonly<Record<string, string>>;
  query: string;
}

/** Where the cursors of this sink stand: the state's own table when it is in the same database, else a copy beside the data. */
export const CURSOR_COPY = '_cursors';

export function coverageView(schema: string, sink: string, isStateHere: boolean): View {
  const cursors = isStateHere
    ? `tributary.cursors where sink = ${quoteLiteral(sink)}`
    : `${quoteIdent(schema)}.${quoteIdent(CURSOR_COPY)}`;
  return {
    name: 'coverage',
    doc: 'How far each stream is complete. Build reports on complete_through, not on the newest row.',
    columns: {
      source: 'Source, as named in the config.',
      stream: 'clicks, leads or sales.',
      complete_through: 'Every event before this moment is in the table: proven. Null: nothing proven yet.',
      newest_seen: 'Time of the newest event in the table, proven or not.',
      lag: 'From complete_through to now.',
      updated_at: 'When the stream was last committed.',
    },
    query: `select source, stream, complete_through, newest_seen, now() - complete_through as lag, updated_at from ${cursors}`,
  };
}

export function dailyLinkPerformanceView(schema: string): View {
  const table = (name: string): string => `${quoteIdent(schema)}.${quoteIdent(name)}`;
  const perDay = (stream: string, figures: string): string => `
    select _source, link_id, ("timestamp" at time zone 'UTC')::date as date, ${figures}
    from ${table(stream)} where _missing_since is null group by 1, 2, 3`;
  return {
    name: 'daily_link_performance',
    doc: 'Clicks, leads and sales per link and UTC day.',
    columns: {
      source: 'Source, as named in the config.',
      date: 'Day, in UTC.',
      link_id: 'Link; see links.',
      domain: 'Domain of the link, as last seen.',
      key: 'Slug of the link, as last seen.',
      clicks: 'Clicks on that day.',
      leads: 'Leads on that day.',
      sales: 'Sales on that day.',
      sale_amount: 'Value of those sales in cents, over all currencies.',
      sale_currency: 'Their currency; mixed where there were several, which makes sale_amount a sum of unlike things.',
    },
    query: `
  select d._source as source, d.date, d.link_id, l.link_domain as domain, l.link_key as key,
    sum(d.clicks)::bigint as clicks, sum(d.leads)::bigint as leads, sum(d.sales)::bigint as sales,
    sum(d.sale_amount)::bigint as sale_amount,
    case when min(d.least_currency) = max(d.most_currency) then min(d.least_currency)
      when min(d.least_currency) is not null then 'mixed' end as sale_currency
  from (
    ${perDay('clicks', 'count(*) as clicks, 0 as leads, 0 as sales, 0 as sale_amount, null as least_currency, null as most_currency')}
    union all ${perDay('leads', '0, count(*), 0, 0, null, null')}
    union all ${perDay('sales', '0, 0, count(*), sum(sale_amount), min(sale_currency), max(sale_currency)')}
  ) d
  left join ${table('links')} l on l._source = d._source and l.link_id = d.link_id
  group by d._source, d.date, d.link_id, l.link_domain, l.link_key`,
  };
}

/** The comment carries a digest, so that a view that is up to date is left alone. Replaced, never dropped: grants on it stay. */
export const viewComment = ({ doc, query }: View): string =>
  `${doc} Shape ${createHash('sha256').update(query).digest('hex').slice(0, 12)}.`;

export function viewDefinition(schema: string, view: View): string {
  const { columns, query } = view;
  const name = `${quoteIdent(schema)}.${quoteIdent(view.name)}`;
  return [
    `create or replace view ${name} as ${query.trim()};`,
    `comment on view ${name} is ${quoteLiteral(viewComment(view))};`,
    ...Object.entries(columns).map(
      ([column, comment]) => `comment on column ${name}.${quoteIdent(column)} is ${quoteLiteral(comment)};`,
    ),
  ].join('\n');
}
