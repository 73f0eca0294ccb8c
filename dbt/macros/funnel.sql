{#
  Clicks, leads and sales of one dimension of the links, per currency. Amounts of two currencies are never added: a dimension with sales
  in several has a row for each. Clicks and leads have no currency and stand on the first of them, so that every count adds up over rows.
#}
{% macro funnel(dimension) %}
with events as (
  select source, link_id, null::text as currency, 1 as clicks, 0 as leads, 0 as sales, 0 as sale_amount, null::text as customer_id
  from {{ ref('stg_clicks') }}
  union all
  select source, link_id, null, 0, 1, 0, 0, customer_id from {{ ref('stg_leads') }}
  union all
  select source, link_id, currency, 0, 0, 1, sale_amount, customer_id from {{ ref('stg_sales') }}
),
placed as (
  select e.*, {{ dimension }} as dimension
  from events e
  left join {{ ref('stg_links') }} l on l.source = e.source and l.link_id = e.link_id
),
counted as (
  select
    source, dimension,
    case when sales > 0 then currency else min(currency) over (partition by source, dimension) end as currency,
    clicks, leads, sales, sale_amount, customer_id
  from placed
)
select
  source,
  dimension as {{ dimension.split('.')[1] }},
  currency,
  sum(clicks)::bigint as clicks,
  sum(leads)::bigint as leads,
  sum(sales)::bigint as sales,
  count(distinct customer_id) filter (where sales > 0) as paying_customers,
  sum(sale_amount)::bigint as sale_amount,
  {{ tributary.major_units('sum(sale_amount)', 'currency') }} as revenue,
  sum(leads)::numeric / nullif(sum(clicks), 0) as leads_per_click,
  sum(sales)::numeric / nullif(sum(leads), 0) as sales_per_lead
from counted
group by source, dimension, currency
{% endmacro %}
