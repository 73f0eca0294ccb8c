-- Customers that had a lead or a sale, as last seen.
select
  _source as source,
  customer_id,
  customer_external_id as external_id,
  customer_name as name,
  customer_email as email,
  customer_country as country,
  customer_created_at as created_at
from {{ source('attribution', 'customers') }}
