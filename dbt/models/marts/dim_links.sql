select * from {{ ref('stg_links') }}
