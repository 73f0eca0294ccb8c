-- Links as last seen: all of them where they are listed, else those that had an event. A link that moves to another partner takes its history along.
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
  link_title as title,
  link_archived as is_archived,
  link_expires_at as expires_at,
  link_created_at as created_at,
  _listed_at as listed_at,
  _missing_since as missing_since
from {{ source('attribution', 'links') }}
