with events as (
  select source, date, link_id, null::text as currency, 1 as clicks, 0 as leads, 0 as sales, 0 as sale_amount from {{ ref('stg_clicks') }}
  union all
  select source, date, link_id, null, 0, 1, 0, 0 from {{ ref('stg_leads') }}
  union all
  select source, date, link_id, currency, 0, 0, 1, sale_amount from {{ ref('stg_sales') }}
),
per_day as (
  select source, date, link_id, currency, sum(clicks) as clicks, sum(leads) as leads, sum(sales) as sales, sum(sale_amount) as sale_amount
  from events
  group by source, date, link_id, currency
),
placed as (
  select *, case when sales > 0 then currency else min(currency) over (partition by source, date, link_id) end as sale_currency
  from per_day
)
select
  p.source,
  p.date,
  p.link_id,
  l.domain,
  l.key,
  p.sale_currency as currency,
  sum(p.clicks)::bigint as clicks,
  sum(p.leads)::bigint as leads,
  sum(p.sales)::bigint as sales,
  sum(p.sale_amount)::bigint as sale_amount,
  {{ tributary.major_units('sum(p.sale_amount)', 'p.sale_currency') }} as revenue,
  coalesce(
    p.date >= (c.complete_since at time zone 'UTC')::date and p.date < (c.complete_through at time zone 'UTC')::date, false
  ) as is_complete
from placed p
left join {{ ref('stg_links') }} l on l.source = p.source and l.link_id = p.link_id
left join {{ ref('stg_coverage') }} c on c.source = p.source
group by p.source, p.date, p.link_id, l.domain, l.key, p.sale_currency, c.complete_since, c.complete_through
