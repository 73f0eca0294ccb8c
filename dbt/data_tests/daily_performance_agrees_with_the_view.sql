-- The same figures as the view of Tributary, for those who have no dbt.
select coalesce(m.source, v.source) as source, coalesce(m.date, v.date) as date, coalesce(m.link_id, v.link_id) as link_id
from {{ ref('daily_performance') }} m
full join {{ source('attribution', 'daily_link_performance') }} v
  on v.source = m.source and v.date = m.date and coalesce(v.link_id, '') = coalesce(m.link_id, '')
where m.clicks is distinct from v.clicks or m.leads is distinct from v.leads or m.sales is distinct from v.sales
  or m.is_complete is distinct from v.is_complete
