select
  {{ tributary.event_columns() }},
  event_name,
  customer_id,
  sale_invoice_id as invoice_id,
  sale_payment_processor as payment_processor,
  sale_amount,
  nullif(lower(sale_currency), '') as currency,
  {{ tributary.major_units('sale_amount', "nullif(lower(sale_currency), '')") }} as revenue
from {{ source('attribution', 'sales') }}
