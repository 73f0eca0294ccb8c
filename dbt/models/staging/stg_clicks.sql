-- Events that the service still shows: those it has taken back have _missing_since.
select
  {{ tributary.event_columns() }}
from {{ source('attribution', 'clicks') }}
where _missing_since is null
