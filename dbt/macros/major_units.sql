{# Amounts are whole minor units of their currency: cents for most, whole yen, thousandths of a dinar (ISO 4217). #}
{% macro major_units(amount, currency) -%}
  ({{ amount }}) * case
    when {{ currency }} in ('bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga', 'pyg', 'rwf', 'ugx', 'vnd', 'vuv', 'xaf', 'xof', 'xpf') then 1
    when {{ currency }} in ('bhd', 'iqd', 'jod', 'kwd', 'lyd', 'omr', 'tnd') then 0.001
    else 0.01
  end
{%- endmacro %}
