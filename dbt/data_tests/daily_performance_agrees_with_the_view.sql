-- The same figures as attribution.daily_link_performance, for those who have no dbt.
select coalesce(m.source, v.source) as source, coalesce(m.date, v.date) as date, coalesce(m.link_id, v.link_id) as link_id
from {{ ref('daily_performance') }} m
full join {{ source('attribution', 'daily_link_performance') }} v
  on (v.source, v.date, coalesce(v.link_id, ''), coalesce(v.sale_currency, '')) = (m.source, m.date, coalesce(m.link_id, ''), coalesce(m.currency, ''))
where (m.clicks, m.leads, m.sales, m.revenue) is distinct from (v.clicks, v.leads, v.sales, v.revenue)
