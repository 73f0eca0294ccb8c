{{ tributary.funnel('l.partner_id') }}
