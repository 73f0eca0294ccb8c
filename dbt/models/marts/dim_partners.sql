-- The service names partners by their id only.
select source, partner_id, count(*) as links, min(created_at) as first_link_created_at
from {{ ref('stg_links') }}
where partner_id is not null
group by 1, 2
