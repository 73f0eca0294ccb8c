{# Generated from the view daily_link_performance: what an amount in minor units is worth in its currency. #}
{% macro major_units(amount, currency) -%}
  ({{ amount }}) * case when {{ currency }} in ('bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga', 'pyg', 'rwf', 'ugx', 'vnd', 'vuv', 'xaf', 'xof', 'xpf') then 1 when {{ currency }} in ('bhd', 'iqd', 'jod', 'kwd', 'lyd', 'omr', 'tnd') then 0.001 else 0.01 end
{%- endmacro %}
