-- With what they did; amounts are in fct_sales, by currency.
with leads as (
  select source, customer_id, min(occurred_at) as first_lead_at, count(*) as leads
  from {{ ref('fct_leads') }} where missing_since is null group by 1, 2
),
sales as (
  select source, customer_id, min(occurred_at) as first_sale_at, max(occurred_at) as last_sale_at, count(*) as sales
  from {{ ref('fct_sales') }} where missing_since is null group by 1, 2
)
select
  c.*,
  l.first_lead_at,
  s.first_sale_at,
  s.last_sale_at,
  coalesce(l.leads, 0) as leads,
  coalesce(s.sales, 0) as sales
from {{ ref('stg_customers') }} c
left join leads l on l.source = c.source and l.customer_id = c.customer_id
left join sales s on s.source = c.source and s.customer_id = c.customer_id
