-- Links that had an event, as last seen: a link that moves to another partner takes its history along.
select
  _source as source,
  link_id,
  link_domain as domain,
  link_key as key,
  link_short_link as short_link,
  link_url as url,
  nullif(link_partner_id, '') as partner_id,
  link_program_id as program_id,
  link_utm_source as utm_source,
  link_utm_medium as utm_medium,
  nullif(link_utm_campaign, '') as campaign,
  link_created_at as created_at
from {{ source('attribution', 'links') }}
