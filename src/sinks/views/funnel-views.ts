import { DIMENSIONS, type Dimension, placeOf, viewBy } from './dimensions.ts';
import type { Dialect, View } from './view.ts';

/**
 * From click to lead to sale, by the day of the click. Counts people, not events: a person who signs up twice is one lead, and one who
 * buys every month is one customer. The first touch is the click of a person's first lead; the last touch is the click of the last lead
 * or sale up to the first sale.
 */
export const funnelViews = (dialect: Dialect): View[] =>
  DIMENSIONS.filter(({ name }) => name !== 'country').map((dimension) => funnelView(dialect, dimension));

const COUNTS = {
  clicks: 'Clicks on that day.',
  leads: 'People whose first touch was one of these clicks and who became a lead, until now.',
  customers: 'Those of them who bought, until now.',
  last_touch_leads: 'People whose last touch was one of these clicks and who became a lead.',
  last_touch_customers: 'Those of them who bought.',
};

const MEDIANS = {
  median_hours_to_lead: 'Half of the leads of these clicks came within so many hours of the click.',
  median_hours_to_sale: 'Half of the first sales of these clicks came within so many hours of the click.',
};

function funnelView(dialect: Dialect, dimension: Dimension): View {
  const { name, key } = dimension;
  const { place, join } = placeOf(dialect, dimension, 'link_id');
  const all = [
    ...Object.keys(COUNTS).map((column) => `sum(u.${column})::bigint as ${column}`),
    ...Object.keys(MEDIANS).map((column) => `max(u.${column}) as ${column}`),
  ];
  return {
    name: `funnel_by_${name}`,
    doc: `From click to lead to sale per ${name} and UTC day of the click. Counts people, by first and by last touch.`,
    reads: ['clicks', 'leads', 'sales', 'links', 'coverage'],
    ...viewBy(dialect, dimension, {
      date: 'Day of the click, in UTC.',
      columns: { ...COUNTS, ...MEDIANS },
      days: `
    select u.source, u.date, u.${key}, ${all.join(', ')}
    from (
      select p.source, p.date, ${place} as ${key}, sum(p.clicks) as clicks, 0 as leads, 0 as customers, 0 as last_touch_leads,
        0 as last_touch_customers, null::double precision as median_hours_to_lead, null::double precision as median_hours_to_sale
      from (
        select e._source as source, ${dialect.utcDate('e')} as date, e.link_id, count(*) as clicks
        from ${dialect.table('clicks')} e where e._missing_since is null group by 1, 2, 3
      ) p ${join} group by 1, 2, 3
      union all
      select p.source, ${dialect.utcDay('p.click_at')} as date, ${place} as ${key}, 0,
        count(*) filter (where p.is_first and p.lead_at is not null), count(*) filter (where p.is_first and p.sale_at is not null),
        count(*) filter (where p.is_last and p.lead_at is not null), count(*) filter (where p.is_last and p.sale_at is not null),
        ${median('p.lead_at')}, ${median('p.sale_at')}
      from (${touches(dialect)}) p ${join} group by 1, 2, 3
    ) u group by 1, 2, 3`,
    }),
  };
}

const median = (at: string): string =>
  `percentile_cont(0.5) within group (order by extract(epoch from ${at} - p.click_at)::double precision / 3600) filter (where p.is_first and ${at} is not null)`;

/** The first and the last touch of every person, one row if they are the same. An event without a customer counts as a person. */
function touches({ table }: Dialect): string {
  const columns =
    'e._source as source, e.customer_id as person, e.click_id, e.link_id, e."timestamp" as seen_at, e.click_timestamp';
  // Filtered outside the union: Postgres then merges the two streams in the order of their index on customers, without a sort.
  const conversions = (where: string): string => {
    const streams = ['leads', 'sales'].map(
      (stream) => `
              select ${columns}, ${stream === 'sales'} as is_sale, e._missing_since from ${table(stream)} e`,
    );
    return `(${streams.join(' union all')}
            ) e where e._missing_since is null and ${where}`;
  };
  // `offset 0` prevents flattening: the planner would look up a click for every use of click_at, and group before it filters days.
  return `
        select t.source, t.link_id, t.lead_at, t.sale_at, t.nth = 1 as is_first, t.is_last,
          -- Some services put the time of the lead or the sale where that of the click belongs.
          case when t.click_timestamp < t.seen_at then t.click_timestamp else coalesce((
            select c."timestamp" from ${table('clicks')} c where c._source = t.source and c.event_id = t.click_id), t.seen_at) end as click_at
        from (
          select o.*, o.seen_at <= coalesce(o.sale_at, 'infinity'::timestamptz) and coalesce(o.next_at > coalesce(o.sale_at, 'infinity'::timestamptz), true) as is_last
          from (
            select e.*, row_number() over w as nth, lead(e.seen_at) over w as next_at,
              min(case when not e.is_sale then e.seen_at end) over w as lead_at, min(case when e.is_sale then e.seen_at end) over w as sale_at
            from ${conversions('e.person is not null')}
            window w as (partition by e.source, e.person order by e.seen_at rows between unbounded preceding and unbounded following)
            union all
            select e.*, 1, null, case when not e.is_sale then e.seen_at end, case when e.is_sale then e.seen_at end
            from ${conversions('e.person is null')}
          ) o
        ) t where t.nth = 1 or t.is_last offset 0`;
}
