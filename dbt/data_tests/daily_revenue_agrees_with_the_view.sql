select coalesce(m.source, v.source) as source, coalesce(m.date, v.date) as date, coalesce(m.link_id, v.link_id) as link_id
from {{ ref('daily_revenue') }} m
full join {{ source('attribution', 'daily_link_revenue') }} v
  on v.source = m.source and v.date = m.date and coalesce(v.link_id, '') = coalesce(m.link_id, '')
    and coalesce(v.sale_currency, '') = coalesce(m.currency, '')
where m.sales is distinct from v.sales or m.sale_amount is distinct from v.sale_amount or m.is_complete is distinct from v.is_complete
