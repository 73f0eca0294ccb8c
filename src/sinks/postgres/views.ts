import { createHash } from 'node:crypto';
import { quoteIdent, quoteLiteral } from '../../cursor/database/sql.ts';
import { COVERAGE } from '../../cursor/ledger.ts';
import { UTC_DATE } from './table.ts';

/**
 * Amounts are whole minor units of their currency. For most that is a hundredth; these differ (ISO 4217, as payment services count
 * them). In lower case: some services write USD, some usd.
 */
const ZERO_DECIMAL = [
  ...['bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga'],
  ...['pyg', 'rwf', 'ugx', 'vnd', 'vuv', 'xaf', 'xof', 'xpf'],
] as const;

const THREE_DECIMAL = ['bhd', 'iqd', 'jod', 'kwd', 'lyd', 'omr', 'tnd'] as const;

/** Digits behind the point; two where the currency is not known. */
export const decimalsOf = (currency: string | null): number => {
  const isIn = (list: readonly string[]): boolean => currency !== null && list.includes(currency);
  return isIn(ZERO_DECIMAL) ? 0 : isIn(THREE_DECIMAL) ? 3 : 2;
};

/** Views for BI, recreated when their text changes. */
export interface View {
  name: string;
  doc: string;
  columns: Readonly<Record<string, string>>;
  query: string;
}

/** Where the cursors of this sink stand: the state's own table when it is in the same database, else a copy beside the data. */
export const CURSOR_COPY = '_cursors';

export function coverageView(schema: string, sink: string, isStateHere: boolean): View {
  const { filters, setAside, alsoComplete } = COVERAGE;
  const promise = isStateHere
    ? `since, ${filters} as filters, ${setAside} as set_aside, ${alsoComplete} as also_complete from tributary.cursors c where sink = ${quoteLiteral(sink)}`
    : `since, filters, set_aside, also_complete from ${quoteIdent(schema)}.${quoteIdent(CURSOR_COPY)}`;
  return {
    name: 'coverage',
    doc: 'What is complete of each stream: from since to complete_through. Build reports on these two, not on the oldest and the newest row.',
    // A view that is replaced keeps its columns in their order: new ones come last.
    columns: {
      source: 'Source, as named in the config.',
      stream: 'clicks, leads or sales.',
      complete_through:
        'Every event from since up to here (exclusive) that the filters let through is in the table, except set_aside records that are kept in tributary.quarantine. Null: nothing is proven yet.',
      newest_seen: 'Time of the newest event that the filters let through so far, proven or not.',
      lag: 'From complete_through to now.',
      updated_at: 'When the stream was last committed.',
      since: 'Where completeness is counted from. Of older events only those in also_complete are promised.',
      filters: 'What the stream is narrowed to, as in country=US,CA&trigger=-qr. Null: every event.',
      set_aside: 'Records of the stream that could not be used and are kept in tributary.quarantine.',
      also_complete:
        'Further ranges that are complete in the same sense: backfilled before since, or read beyond a gap.',
    },
    query: `select source, stream, complete_through, newest_seen, now() - complete_through as lag, updated_at, ${promise}`,
  };
}

/**
 * Amounts of two currencies are never added: a day of a link has a row for each. Clicks and leads, which have none, stand on the first
 * of them, so that a day with one currency is one row, and every column adds up over rows.
 */
export function dailyLinkPerformanceView(schema: string): View {
  const table = (name: string): string => `${quoteIdent(schema)}.${quoteIdent(name)}`;
  // By position: a field of the service may become a column called date or currency, and a name would mean that one.
  const perDay = (stream: string, [clicks, leads, sales, amount, currency]: readonly string[]): string => `
      select _source, link_id, ${UTC_DATE} as date, ${clicks} as clicks, ${leads} as leads, ${sales} as sales,
        ${amount} as sale_amount, ${currency} as currency
      from ${table(stream)} where _missing_since is null group by 1, 2, 3, 8`;
  return {
    name: 'daily_link_performance',
    doc: 'Clicks, leads and sales per link and UTC day; a day with sales in several currencies has a row for each.',
    columns: {
      source: 'Source, as named in the config.',
      date: 'Day, in UTC.',
      link_id: 'Link; see links.',
      domain: 'Domain of the link, as last seen.',
      key: 'Slug of the link, as last seen.',
      clicks: 'Clicks on that day; on the first of its rows.',
      leads: 'Leads on that day; on the first of its rows.',
      sales: 'Sales on that day in this currency.',
      sale_amount: 'Value of those sales in minor units of their currency: cents, or whole yen.',
      sale_currency: 'Their currency, ISO 4217, in lower case. Null: the service named none.',
      revenue:
        'Value of those sales in their currency itself: dollars, yen, dinars. Of sales without a currency, a hundredth of sale_amount.',
    },
    query: `
  select d._source as source, d.date, d.link_id, l.link_domain as domain, l.link_key as key,
    sum(d.clicks)::bigint as clicks, sum(d.leads)::bigint as leads, sum(d.sales)::bigint as sales,
    sum(d.sale_amount)::bigint as sale_amount, d.sale_currency, sum(d.sale_amount) * ${majorPerMinor('d.sale_currency')} as revenue
  from (
    select *, case when sales > 0 then currency else min(currency) over (partition by _source, link_id, date) end as sale_currency
    from (${perDay('clicks', ['count(*)', '0', '0', '0', 'null::text'])}
      union all ${perDay('leads', ['0', 'count(*)', '0', '0', 'null::text'])}
      union all ${perDay('sales', ['0', '0', 'count(*)', 'sum(sale_amount)', currencyOf('sale_currency')])}
    ) per_stream
  ) d
  left join ${table('links')} l on l._source = d._source and l.link_id = d.link_id
  group by d._source, d.date, d.link_id, l.link_domain, l.link_key, d.sale_currency`,
  };
}

/** Some services write USD, some usd, and some "" for none. */
export const currencyOf = (column: string): string => `nullif(lower(${column}), '')`;

/** What a minor unit is worth in its currency. */
export const majorPerMinor = (currency: string): string =>
  `case when ${currency} in (${ZERO_DECIMAL.map(quoteLiteral).join(', ')}) then 1 ` +
  `when ${currency} in (${THREE_DECIMAL.map(quoteLiteral).join(', ')}) then 0.001 else 0.01 end`;

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
