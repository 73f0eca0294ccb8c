-- Every mart adds up to the events: none is lost by a join, and none counted twice.
with expected as (
  select
    (select count(*) from {{ ref('stg_clicks') }}) as clicks,
    (select count(*) from {{ ref('stg_leads') }}) as leads,
    (select count(*) from {{ ref('stg_sales') }}) as sales,
    (select coalesce(sum(sale_amount), 0) from {{ ref('stg_sales') }}) as sale_amount
),
found as (
  {% for mart in ['daily_performance', 'funnel_by_link', 'funnel_by_partner', 'funnel_by_campaign'] %}
  select '{{ mart }}' as mart, coalesce(sum(clicks), 0) as clicks, coalesce(sum(leads), 0) as leads, coalesce(sum(sales), 0) as sales,
    coalesce(sum(sale_amount), 0) as sale_amount
  from {{ ref(mart) }}
  {% if not loop.last %}union all{% endif %}
  {% endfor %}
)
select found.* from found join expected on true
where (found.clicks, found.leads, found.sales, found.sale_amount) is distinct from (expected.clicks, expected.leads, expected.sales, expected.sale_amount)
