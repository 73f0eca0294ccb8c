select
  {{ tributary.event_columns() }}
from {{ source('attribution', 'clicks') }}
