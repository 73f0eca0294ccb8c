-- Events that the service still shows: those it has taken back have _missing_since.
select
  {{ tributary.event_columns() }},
  event_name,
  customer_id
from {{ source('attribution', 'leads') }}
where _missing_since is null
