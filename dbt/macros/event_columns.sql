{# What clicks, leads and sales have in common. The day is that of UTC, as complete_days has it. #}
{% macro event_columns() -%}
  _source as source,
  event_id,
  "timestamp" as occurred_at,
  ("timestamp" at time zone 'UTC')::date as date,
  link_id,
  click_id,
  click_country as country,
  click_device as device,
  click_browser as browser,
  click_os as os,
  click_referer as referer,
  click_trigger as trigger,
  _missing_since as missing_since,
  greatest(_synced_at, coalesce(_missing_since, _synced_at)) as synced_at
{%- endmacro %}
