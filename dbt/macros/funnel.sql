{#
  Clicks, leads and sales of one dimension of the links: one row each, whatever the currencies. Money is in daily_revenue.
#}
{% macro funnel(dimension) %}
with events as (
  select source, link_id, 1 as clicks, 0 as leads, 0 as sales, cast(null as text) as customer_id from {{ ref('fct_clicks') }} where missing_since is null
  union all
  select source, link_id, 0, 1, 0, customer_id from {{ ref('fct_leads') }} where missing_since is null
  union all
  select source, link_id, 0, 0, 1, customer_id from {{ ref('fct_sales') }} where missing_since is null
)
select
  e.source,
  l.{{ dimension }},
  cast(sum(e.clicks) as bigint) as clicks,
  cast(sum(e.leads) as bigint) as leads,
  cast(sum(e.sales) as bigint) as sales,
  count(distinct case when e.sales > 0 then e.customer_id end) as paying_customers,
  cast(sum(e.leads) as double precision) / nullif(sum(e.clicks), 0) as leads_per_click,
  cast(sum(e.sales) as double precision) / nullif(sum(e.leads), 0) as sales_per_lead
from events e
left join {{ ref('dim_links') }} l on l.source = e.source and l.link_id = e.link_id
group by 1, 2
{% endmacro %}
