import type { Column } from '../../model/columns.ts';
import { STREAM_NAMES, STREAMS, type StreamName } from '../../model/streams.ts';
import { currencyOf, majorPerMinor } from './money.ts';
import type { Dialect, View } from './view.ts';

/** The columns that most queries need: no deprecated names, nothing personal. */
const KEPT = [
  ...['event_name', 'click_id', 'link_id', 'link_domain', 'link_key', 'link_short_link', 'link_url'],
  ...['link_partner_id', 'link_folder_id', 'link_tags', 'link_utm_source', 'link_utm_medium', 'link_utm_campaign'],
  ...['click_country', 'click_region', 'click_city', 'click_device', 'click_browser', 'click_os', 'click_trigger'],
  ...['click_referer', 'customer_id', 'customer_external_id', 'sale_amount', 'sale_invoice_id', 'metadata'],
] as const;

const DOCS = new Map(STREAM_NAMES.flatMap((name) => STREAMS[name].columns.map((column) => [column.name, column])));

/** The three streams in one view, without events that the service no longer shows, as in the daily views. */
export function eventsView(dialect: Dialect): View {
  return {
    name: 'events',
    doc: 'Clicks, leads and sales in one list, in the columns that are asked for most; events that the service no longer shows are left out.',
    columns: {
      source: 'Source, as named in the config.',
      event: 'click, lead or sale.',
      event_id: docOf('event_id'),
      timestamp: docOf('timestamp'),
      date: 'The same, as a day in UTC.',
      ...Object.fromEntries(KEPT.map((name) => [name, docOf(name)])),
      sale_currency: 'Currency, ISO 4217, in lower case. Null: no sale, or the service named none.',
      revenue: 'sale_amount in the currency itself: dollars, yen, dinars.',
      ...(dialect.completeAt && {
        arrival:
          'late: first seen after its day had been complete, so it changed a finished report. backfilled: read more than an hour after it happened, when its day was not complete yet. on time: within the hour.',
      }),
      first_synced_at: 'When the row was first written.',
      synced_at: 'When the row was last written: new, or changed by the service.',
    },
    reads: STREAM_NAMES,
    query: STREAM_NAMES.map((stream) => selectOf(dialect, stream)).join('\n  union all'),
  };
}

function selectOf(dialect: Dialect, stream: StreamName): string {
  const has = new Map<string, Column>(STREAMS[stream].columns.map((column) => [column.name, column]));
  const value = (name: string): string =>
    has.has(name) ? `e.${name}` : `null::${dialect.types[DOCS.get(name)?.kind ?? 'text']}`;
  const currency = stream === 'sales' ? currencyOf('e.sale_currency') : 'null::text';
  const revenue = stream === 'sales' ? `e.sale_amount * ${majorPerMinor(currency)}` : 'null::numeric';
  const complete = dialect.completeAt?.(stream, 'e');
  const arrival = complete
    ? [
        `case when e._first_synced_at > ${complete.at} then 'late'
      when e._first_synced_at > e."timestamp" + interval '1 hour' then 'backfilled' else 'on time' end as arrival`,
      ]
    : [];
  const columns = [
    ...['e._source as source', `'${STREAMS[stream].event}' as event`, 'e.event_id', 'e."timestamp"'],
    `${dialect.utcDate('e')} as date`,
    ...KEPT.map((name) => `${value(name)} as ${name}`),
    ...[`${currency} as sale_currency`, `${revenue} as revenue`, ...arrival],
    ...['e._first_synced_at as first_synced_at', 'e._synced_at as synced_at'],
  ];
  return `
  select ${columns.join(', ')}
  from ${dialect.table(stream)} e ${complete?.join ?? ''} where e._missing_since is null`;
}

function docOf(name: string): string {
  const column = DOCS.get(name);
  if (!column) throw new Error(`no stream has a column ${name}`);
  return column.doc;
}
