-- As last seen with an event: a link that moves to another partner takes its history along.
select
  _source as source,
  link_id,
  link_domain as domain,
  link_key as key,
  link_short_link as short_link,
  link_partner_id as partner_id,
  link_program_id as program_id,
  link_utm_source as utm_source,
  link_utm_medium as utm_medium,
  link_utm_campaign as campaign
from {{ source('attribution', 'links') }}
