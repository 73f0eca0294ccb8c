select
  {{ tributary.event_columns() }},
  event_name,
  customer_id
from {{ source('attribution', 'leads') }}
