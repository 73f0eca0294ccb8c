-- A day that begins before the sync did is not complete, unless a backfill has read the rest of it.
select p.source, p.date
from {{ ref('daily_performance') }} p
join {{ source('attribution', 'coverage') }} c on c.source = p.source and c.stream <> 'links'
where p.is_complete
  and (cast(p.date as timestamp) at time zone 'UTC' < c.since or c.complete_through is null
    or cast(p.date + 1 as timestamp) at time zone 'UTC' > c.complete_through)
  and {{ 'len(c.also_complete) = 0' if target.type == 'duckdb' else "c.also_complete = '{}'" }}
