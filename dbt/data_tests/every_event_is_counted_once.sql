-- Every mart adds up to the events: none is lost by a join or left behind by an incremental run, and none counted twice.
with expected as (
  select
    (select count(*) from {{ source('attribution', 'clicks') }} where _missing_since is null) as clicks,
    (select count(*) from {{ source('attribution', 'leads') }} where _missing_since is null) as leads,
    (select count(*) from {{ source('attribution', 'sales') }} where _missing_since is null) as sales
),
found as (
  {% for mart in ['daily_performance', 'funnel_by_link', 'funnel_by_partner', 'funnel_by_campaign'] %}
  select '{{ mart }}' as mart, coalesce(sum(clicks), 0) as clicks, coalesce(sum(leads), 0) as leads, coalesce(sum(sales), 0) as sales
  from {{ ref(mart) }}
  {% if not loop.last %}union all{% endif %}
  {% endfor %}
)
select found.* from found cross join expected
where found.clicks <> expected.clicks or found.leads <> expected.leads or found.sales <> expected.sales
