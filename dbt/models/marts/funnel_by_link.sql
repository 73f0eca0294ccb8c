{{ tributary.funnel('link_id') }}
