with events as (
  select source, date, link_id, 1 as clicks, 0 as leads, 0 as sales from {{ ref('fct_clicks') }} where missing_since is null
  union all
  select source, date, link_id, 0, 1, 0 from {{ ref('fct_leads') }} where missing_since is null
  union all
  select source, date, link_id, 0, 0, 1 from {{ ref('fct_sales') }} where missing_since is null
),
per_day as (
  select
    source, date, link_id, cast(sum(clicks) as bigint) as clicks, cast(sum(leads) as bigint) as leads, cast(sum(sales) as bigint) as sales
  from events
  group by 1, 2, 3
)
select p.*, l.domain, l.key, c.date is not null as is_complete
from per_day p
left join {{ ref('dim_links') }} l on l.source = p.source and l.link_id = p.link_id
left join {{ ref('stg_complete_days') }} c on c.source = p.source and c.date = p.date
