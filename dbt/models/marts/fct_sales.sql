{{ config(materialized='incremental', unique_key=['source', 'event_id'], on_schema_change='append_new_columns') }}
{{ tributary.new_since('sales') }}
