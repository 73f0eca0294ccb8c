select
  s.source,
  s.date,
  s.link_id,
  s.currency,
  count(*) as sales,
  cast(sum(s.sale_amount) as bigint) as sale_amount,
  sum(s.revenue) as revenue,
  max(case when c.date is null then 0 else 1 end) = 1 as is_complete
from {{ ref('fct_sales') }} s
left join {{ ref('stg_complete_days') }} c on c.source = s.source and c.date = s.date
where s.missing_since is null
group by 1, 2, 3, 4
