-- Where each source is complete in all of its streams: reports end here.
select source, max(since) as complete_since, case when bool_and(complete_through is not null) then min(complete_through) end as complete_through
from {{ source('attribution', 'coverage') }}
group by source
