-- The UTC days that are complete from midnight to midnight in every stream of their source.
select d.source, d.date
from {{ source('attribution', 'complete_days') }} d
join {{ source('attribution', 'coverage') }} c on c.source = d.source and c.stream <> 'links'
group by d.source, d.date
having count(distinct d.stream) = count(distinct c.stream)
