{# Of an incremental model: what was written, or marked as gone, since it was last built. #}
{% macro new_since(stream) -%}
  select * from {{ ref('stg_' ~ stream) }}
  {%- if is_incremental() %}
  where synced_at > (select coalesce(max(synced_at), timestamptz '1970-01-01 00:00:00Z') - interval '{{ var("tributary_lookback") }}' from {{ this }})
  {%- endif %}
{%- endmacro %}
