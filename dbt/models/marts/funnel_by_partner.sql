{{ tributary.funnel('partner_id') }}
